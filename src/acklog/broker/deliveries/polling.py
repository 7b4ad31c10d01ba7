"""Taking records for one member from several partitions, waiting for some if need be: what ShareFetch and members over
HTTP have in common.

- Partitions take turns; one poll ends at `max_records` or `max_bytes`, whichever is first, and has at least one batch.
- Nothing there: waits for records that arrive, come back or fall due, until `until`. Who has waited longest is woken
  first. A member that leaves, or whose connection goes, is answered at once and takes nothing.
- Nothing is answered before the journal has what was acquired.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from acklog.broker import eager
from acklog.broker.answers import answer_to
from acklog.broker.api import Caller, Refused
from acklog.broker.deliveries.taking import Taken, take
from acklog.broker.deliveries.waiting import Waiter
from acklog.broker.refusals import no_group, no_topic_id
from acklog.errors import AcklogError, LogError
from acklog.log.promise import Promise
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.core.share_session import SessionKey

Key = tuple[bytes, int]  # topic id, partition
Found = dict[Key, Taken | tuple[ErrorCode, str | None]]

LONGEST_WAIT_MS = 300_000
AT_A_TIME = 100  # partitions that are looked at before others have their turn


class Poll:
    """One poll. `keys`: the partitions to look at now, the one whose turn it is first; where it raises Refused, so does
    the poll. `turn`: called with how many have had their turn.

    `strict`: no more than `max_records`; else the batch that reaches it is taken whole."""

    def __init__(
        self,
        broker: Broker,
        caller: Caller,
        member: SessionKey,
        keys: Callable[[], Collection[Key]],
        turn: Callable[[int], None],
        *,
        max_records: int,
        max_bytes: int,
        max_wait_ms: int,
        strict: bool,
    ) -> None:
        self.broker = broker
        self.caller = caller
        self.member = member
        self.keys, self.turn = keys, turn
        self.strict = strict
        self.max_records = max_records
        self.max_bytes = min(max_bytes, broker.fetch_max_bytes)
        wait_ms = min(max(max_wait_ms, 0), LONGEST_WAIT_MS)
        self._until = broker.clock() - broker.clock_set_by + wait_ms  # by a clock that nobody sets
        self.found: Found = {}
        self._turns: dict[Key, Promise[LogError | None] | None] = {}  # of the journal, that tell what was taken
        self.deliveries: list[ShareDelivery] = []

    @property
    def until(self) -> int:
        """When it is over (ms)."""
        return self._until + self.broker.clock_set_by

    async def run(self) -> Found:
        """What there is by partition, in the journal already, or why it cannot be had; empty: nothing came in time.
        Raises Refused."""
        await self._look()
        if self.found or self.until <= self.broker.clock():
            return self.found
        again = True  # something may have come to a partition while the next was looked at
        while not self.found and not self.broker.stopping and self.caller.room():
            if again and any(delivery.something() for delivery in self.deliveries):
                again = False
                await self._look()
                continue
            waiter = await self._wait()
            if waiter.ended:
                self._pass_on()
                break
            again = True
            if waiter.source is None or not await self._look_at(waiter.source):
                await self._look()
        return self.found

    async def _wait(self) -> Waiter:
        """Until something happens to one of the partitions that were looked at, to the member or to its connection."""
        waiter, key = Waiter(), (self.member.group, self.member.member)
        waiting = self.broker.deliveries.waiting
        waiting.setdefault(key, set()).add(waiter)
        self.caller.on_close[waiter.end] = None
        for delivery in self.deliveries:
            delivery.waiters[waiter] = None
            delivery.foresight.look()
        try:
            await waiter.wait(self.broker.timer, self.until)
        finally:  # also when whoever polls is cancelled
            for delivery in self.deliveries:
                delivery.waiters.pop(waiter, None)
            self.caller.on_close.pop(waiter.end, None)
            waiting[key].discard(waiter)
            if not waiting[key]:
                del waiting[key]
        return waiter

    def _pass_on(self) -> None:
        """It may have been woken for something that it does not take: the next one may."""
        for delivery in self.deliveries:
            if delivery.waiters:
                delivery.offer()

    def _keys(self) -> Collection[Key]:
        try:
            return self.keys()
        except Refused:
            self._pass_on()
            raise

    async def _look(self) -> None:
        """One round over the partitions."""
        keys = list(self._keys())
        self.deliveries = []
        records, left, visited = self.max_records, min(self.max_bytes, self.caller.room()), 0
        for key in keys if left > 0 else ():
            visited += 1
            if visited % AT_A_TIME == 0:
                await eager.turn()
            taken = await self._take(key, records, left)
            if isinstance(taken, Taken):
                records -= taken.records
                left -= taken.size
                if records <= 0 or left <= 0:
                    break
        if visited < len(keys):
            await self._begin(keys[visited:])
        if self.found:
            await self._written()
            self.turn(visited)
        self._pass_on()

    async def _look_at(self, source: ShareDelivery) -> bool:
        """Only at the partition that woke it, for there may be thousands; true if there was something. What the others
        have got since is offered to the next one that waits, or found at the next poll."""
        key = (source.topic_id, source.index)
        left = min(self.max_bytes, self.caller.room())
        if left <= 0 or key not in self._keys() or await self._take(key, self.max_records, left) is None:
            return False
        await self._written()
        source.offer()
        return True

    async def _written(self) -> None:
        """What of it is not in the journal was not taken: it may have got lost while others were looked at."""
        journal = self.broker.deliveries.journal
        latest = journal.pending()
        journal.hurry()
        for key, turn in self._turns.items():
            try:
                await journal.confirmed(turn)
            except LogError as error:
                self.found[key] = answer_to(error)
        if latest is not None:
            await latest  # that the group has begun on others; where that got lost it begins anew

    async def _begin(self, keys: Iterable[Key]) -> None:
        """Partitions whose turn has not come: the group begins on all at the same time, so that it misses nothing of
        one that is published before it is looked at, and its lag tells of all."""
        group = self.broker.catalog.groups.get(self.member.group)
        if group is None:
            return
        pace = eager.Pace()
        for key in keys:
            await pace.keep()
            if self.broker.deliveries.find(group, *key) is None:
                with contextlib.suppress(AcklogError):  # it is said when its turn comes
                    await self._delivery(key)

    async def _take(self, key: Key, records: int, left: int) -> Taken | None:
        try:
            delivery = await self._delivery(key)
            if self.caller.closed:
                return None
            taken = await take(delivery, self.member.member, records, left, strict=self.strict)
        except AcklogError as error:
            self.found[key] = answer_to(error)
            return None
        self.deliveries.append(delivery)
        if taken is not None:
            self.found[key] = taken
            self._turns[key] = self.broker.deliveries.journal.pending()
        return taken

    async def _delivery(self, key: Key) -> ShareDelivery:
        broker = self.broker
        topic = broker.catalog.topics_by_id.get(key[0])
        if topic is None:
            raise no_topic_id()
        broker.authorize(self.caller, 'READ', 'TOPIC', topic.name)
        group = broker.catalog.groups.get(self.member.group)
        if group is None:
            raise no_group(self.member.group)
        return await broker.deliveries.get(group, *key)
