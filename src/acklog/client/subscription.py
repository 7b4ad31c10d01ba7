"""The share consumer: takes records of a group, hands them out, signs them off.

Strategy: heartbeats keep the membership and bring the partitions (membership.py); for each node that leads some of
them there is a share session (share_link.py). `poll` fetches from all of them at once and returns what comes first.
What the subscriber decides goes with the next fetch, or on its own after `tell_after` seconds, whichever comes first;
`flush` waits until the server has confirmed it. The next records may be taken while earlier ones are unsettled.

While the subscriber is busy with what it has, the next fetch is under way (`ahead`), and the locks of all that it holds
are renewed after a third of their time (renewal.py). A server answers the requests of a session in their order, so what
is decided while a fetch waits there is told when that is over: as long as records are held, fetches wait shortly.

Bounded: a fetch brings about `max_bytes` from each node, at most one fetch per node is under way, and no more than
`max_unsettled` records are held.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Any

from acklog.client.calls import SHARE_FETCH
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.connection import ACKLOG_FEATURE
from acklog.client.errors import (
    AcknowledgementFailure,
    AcknowledgementsRefused,
    ClientClosed,
    TooManyUnsettled,
    Unsupported,
)
from acklog.client.membership import Membership
from acklog.client.places import LOOK_AGAIN, Places
from acklog.client.received import Holder, Received
from acklog.client.renewal import Renewal
from acklog.client.share_link import GRACE_FEATURE, PASSING, Fetched, ShareLink
from acklog.client.share_session import Key, Limits
from acklog.client.times import Delay, Instant, instant, milliseconds
from acklog.errors import AcklogError
from acklog.wire.acknowledgements import ACCEPT, REJECT, RELEASE
from acklog.wire.error_code import ErrorCode

HELD_WAIT = 0.1  # seconds that a fetch waits at most while there are records about which something may be decided
AHEAD_WAIT = 0.5  # seconds that a fetch waits which nobody waits for
ANSWER_GRACE = 1.0  # seconds that an empty answer may come later than asked for
GRACE = 10.0  # seconds
MOST_WORDS = 1000  # characters
MOST_FAILURES = 1000  # kept until `flush` raises them

_NOBODY: tuple[None, None] = (None, None)


class Subscription:
    """A member of a share group; made by `Client.subscribe`, used with `async with`.

    `max_records`: how many records a poll asks for; `strict`: not one more than that, else whole batches are taken,
    which is faster; `max_bytes`: bytes that a fetch brings at most, about; `max_unsettled`: how many records may be
    held without a decision, None for any number; `tell_after`: seconds after which decisions are sent even if nobody
    polls; `ahead`: fetch the next records while the ones taken are worked on (None: where they are taken by `async
    for`); `renew`: renew the locks of what is held, for as long as it is held; `grace`: seconds that it may be without
    a connection and keeps what it holds (None: 10 where the server knows of it, which only acklog does; another number
    raises Unsupported elsewhere).
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        max_records: int = 500,
        strict: bool = False,
        max_bytes: int = 16 << 20,
        max_unsettled: int | None = 100_000,
        tell_after: float = 0.1,
        ahead: bool | None = None,
        renew: bool = True,
        grace: float | None = None,
    ) -> None:
        self.group, self.topics = group, list(topics)
        self._cluster = cluster
        self.holder: Holder = self  # what records are given to settle themselves
        self.knows_times = False  # whether the server is acklog, with times of release and words; known from `start` on
        self._links: dict[int, ShareLink] = {}
        self._max_records, self._strict, self._max_bytes = max_records, strict, max_bytes
        self._max_unsettled = sys.maxsize if max_unsettled is None else max_unsettled
        self._tell_after, self.ahead = tell_after, ahead
        self._grace = grace
        self._renewal = Renewal(self._links) if renew else None
        self._membership = Membership(cluster, group, topics)
        self._places = Places(cluster)
        self._holders: dict[tuple[str, int], tuple[ShareLink, Key]] = {}
        self._ready: deque[Received] = deque()
        self._failures: deque[AcknowledgementFailure] = deque(maxlen=MOST_FAILURES)
        self._polling = asyncio.Lock()
        self._teller: asyncio.Task[None] | None = None
        self.closed = False

    async def __aenter__(self) -> Subscription:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if kind is None:
            self._raise_failures()

    async def start(self) -> None:
        """Join the group. Raises Unsupported where the server has no share groups, Refused, the connection's errors."""
        connection = await self._cluster.connection(ANY_NODE)
        connection.version(SHARE_FETCH)
        self.knows_times = ACKLOG_FEATURE in connection.features
        if self._grace and GRACE_FEATURE not in connection.features:
            raise Unsupported(
                f'the server at {connection.address} is not acklog: it gives no grace to lost connections'
            )
        await self._membership.join()
        if self._renewal is not None:
            self._renewal.start()

    @property
    def member_id(self) -> str:
        """The id that this member has in the group."""
        return self._membership.id

    @property
    def unsettled(self) -> int:
        """Number of records handed out, by `poll` or the iterator, about which nothing has been decided yet."""
        return sum(link.session.held for link in self._links.values())

    @property
    def lock_seconds(self) -> float:
        """How long a record is held before it goes to somebody else; 0 before the server has said."""
        return max((link.lock_ms for link in self._links.values()), default=0) / 1000

    # --- taking

    async def poll(self, wait: float = 0.5, *, max_records: int | None = None) -> list[Received]:
        """Take records: as soon as there are some, or an empty list after `wait` seconds.

        `max_records`: how many to ask for, instead of the subscription's. Raises TooManyUnsettled, Refused when the
        server ended the membership or denies a topic, ClientClosed. Lost connections are made again meanwhile.
        """
        async with self._polling:
            self._check()
            if self._ready:
                records = list(self._ready)
                self._ready.clear()
                return records
            wanted = min(max_records or self._max_records, self._max_unsettled - self.unsettled)
            if wanted <= 0 and not any(link.fetching for link in self._links.values()):
                raise TooManyUnsettled(
                    f'{self.unsettled} records are held; sign some off before taking more (max_unsettled)'
                )
            records = await self._poll_until(asyncio.get_running_loop().time() + wait, wanted)
            if records and self.ahead:
                self._fetch_ahead(max_records or self._max_records)
            return records

    async def __aiter__(self) -> AsyncIterator[Received]:
        """Records one after the other, without end."""
        if self.ahead is None:
            self.ahead = True
        ready = self._ready
        while True:
            while ready:
                yield ready.popleft()
            ready.extend(await self.poll())

    def _fetch_ahead(self, wanted: int) -> None:
        """Fetch where nothing is under way, if there is room for it. The next poll finds it."""
        wanted = min(wanted, self._max_unsettled - self.unsettled)
        if wanted > 0:
            for link in self._links.values():
                if link.wanted:
                    link.start(link.wanted, self._limits(AHEAD_WAIT, wanted))

    def _limits(self, wait: float, wanted: int) -> Limits:
        if self.unsettled:
            wait = min(wait, HELD_WAIT, self.lock_seconds / 10)
        return Limits(int(wait * 1000), self._max_bytes, wanted, self._strict)

    async def _poll_until(self, deadline: float, wanted: int) -> list[Received]:
        loop = asyncio.get_running_loop()
        while True:
            self._check()
            self._membership.changed.clear()
            left = deadline - loop.time()
            tasks = await self._start_fetches(max(0.0, left), wanted)
            if not tasks and left <= 0:
                return []
            records = await self._first_of(tasks, left)
            if records or loop.time() >= deadline:
                return records

    async def _start_fetches(self, wait: float, wanted: int) -> list[asyncio.Task[Fetched]]:
        by_node = await self._places.by_node(self._membership.assignment)
        limits = self._limits(wait, wanted)
        for node in by_node:
            if node not in self._links:
                names = self._places.names
                grace = GRACE if self._grace is None else self._grace
                self._links[node] = ShareLink(
                    self._cluster, node, self.group, self.member_id, names, self.holder, grace
                )
        for link in self._links.values():
            keys = by_node.get(link.node, ())
            if keys or link.session.partitions or link.session.has_decisions:
                for key in keys:
                    self._holders[self._places.names[key[0]], key[1]] = link, key
                link.start(keys, limits)
        return [link.fetching for link in self._links.values() if link.fetching is not None]

    async def _first_of(self, tasks: Sequence[asyncio.Task[Fetched]], left: float) -> list[Received]:
        """What the first fetch that is done has brought; nothing when the assignment changes first."""
        change = asyncio.create_task(self._membership.changed.wait())
        waiting: list[asyncio.Task[Any]] = [*tasks] if tasks else [change]
        try:
            await asyncio.wait(waiting, timeout=self._patience(tasks, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
        records: list[Received] = []
        for link in self._links.values():
            if link.fetching is not None and link.fetching.done():
                task, link.fetching = link.fetching, None
                records += await self._collect(link, task)
        return records

    def _patience(self, tasks: Sequence[asyncio.Task[Fetched]], left: float) -> float:
        left = max(0.0, left)
        if tasks:
            return left + ANSWER_GRACE  # the server waits that long itself
        return min(left, LOOK_AGAIN) if self._membership.assignment else left  # there is something, but where?

    async def _collect(self, link: ShareLink, task: asyncio.Task[Fetched]) -> list[Received]:
        self._note_failures(link)
        try:
            fetched = task.result()
        except PASSING:
            self._places.forget()
            await asyncio.sleep(0.05)
            return []
        if fetched.moved:
            self._places.forget()
        return fetched.records

    # --- deciding

    def accept(self, records: Received | Iterable[Received]) -> None:
        """It is done: it is never delivered to this group again. Of many records at once this is faster."""
        if isinstance(records, Received):
            self._decide(records, ACCEPT)
            return
        topic, partition, decide = '', -1, None
        for record in records:
            if decide is None or record[1] != partition or record[0] != topic:
                topic, partition = record[:2]
                link, key = self._holder(record)
                decide = None if link is None or key is None or self.closed else link.session.of(key).decide
            if decide is None or not decide(record[2], ACCEPT):
                self._decide(record, ACCEPT)  # says what is wrong
        self._tell()

    def reject(self, record: Received, *, reason: str = '') -> None:
        """It cannot be processed by anybody: it is not delivered again. `reason`: your own words about it, of which the
        first 1,000 characters are kept; raises Unsupported where the server is not acklog."""
        if reason:
            self._check_knows(record, "keep the subscriber's words")
        self._decide(record, REJECT, words=reason[:MOST_WORDS] or None)

    def release(
        self, record: Received, *, after: Delay | None = None, at: Instant | None = None, reason: str = ''
    ) -> None:
        """Hand it back: it is delivered again at once, or after the group's backoff.

        `after`: not before so many seconds, counted from when the server has it; `at`: not before that time, a datetime
        with a time zone or ms since 1970; `reason`: your own words. These three raise Unsupported where the server is
        not acklog, which alone knows of them; ValueError for a datetime without a zone, for less than no time, for both
        times."""
        delay = None if after is None else milliseconds(after)
        when = None if at is None else instant(at)
        if delay is not None and when is not None:
            raise ValueError('a record is released after some time or at an instant, not both')
        if delay is not None or when is not None:
            self._check_knows(record, 'release a record until a time named')
        if reason:
            self._check_knows(record, "keep the subscriber's words")
        self._decide(record, RELEASE, when, delay, reason[:MOST_WORDS] or None)

    async def release_at(self, record: Received, when: Instant) -> None:
        """`release` with `at`."""
        self.release(record, at=when)

    async def release_after(self, record: Received, seconds: float) -> None:
        """`release` with `after`."""
        self.release(record, after=seconds)

    def _check_knows(self, record: Received, what: str) -> None:
        link, _ = self._holder(record)
        if link is not None and not link.knows_times:
            raise Unsupported(f'the server at {link.address} is not acklog: it cannot {what}')

    async def renew(self, records: Received | Iterable[Received]) -> None:
        """Hold these records for another lock's duration from now on.

        Returns when the server has confirmed it. Raises Unsupported where it cannot renew, Refused when one is no
        longer held, the connection's errors. While a poll waits, the renewal waits with it: at most the poll's
        `wait`."""
        by_place: dict[tuple[str, int], list[int]] = {}
        for record in [records] if isinstance(records, Received) else records:
            by_place.setdefault((record.topic, record.partition), []).append(record.offset)
        for place, offsets in by_place.items():
            link, key = self._holders.get(place, _NOBODY)
            if link is not None and key is not None:
                await link.renew(key, offsets)

    async def flush(self) -> None:
        """Return when the server has confirmed all that was decided before.

        Raises AcknowledgementsRefused for those since the last flush that it did not take (other ones were applied),
        and the connection's errors."""
        self._check()
        for link in list(self._links.values()):
            try:
                await link.acknowledge()
            finally:
                self._note_failures(link)
        self._raise_failures()

    def _holder(self, record: Received) -> tuple[ShareLink | None, Key | None]:
        return self._holders.get((record.topic, record.partition), _NOBODY)

    def holds(self, record: Received) -> bool:
        """Whether it is still this member's to decide on: not decided, its lock not known to have run out."""
        link, key = self._holder(record)
        return link is not None and key is not None and record.offset in link.session.of(key).open

    def _decide(
        self,
        record: Received,
        type_: int,
        release_at: int | None = None,
        after: int | None = None,
        words: str | None = None,
    ) -> None:
        if self.closed:
            raise ClientClosed('the subscription was closed')
        link, key = self._holders.get((record[0], record[1]), _NOBODY)
        if link is None or key is None or not link.session.of(key).decide(record[2], type_, release_at, after, words):
            words_of_it = 'this member does not hold the record'
            self._failures.append(
                AcknowledgementFailure(*record[:3], record[2], ErrorCode.INVALID_RECORD_STATE, words_of_it)
            )
        else:
            self._tell()

    def _tell(self) -> None:
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell_later())

    async def _tell_later(self) -> None:
        """Tell the server what was decided, where no poll does it first, until there is nothing to tell."""
        while any(link.session.has_decisions for link in self._links.values()):
            await asyncio.sleep(self._tell_after)
            for link in list(self._links.values()):
                try:
                    await link.acknowledge()
                except PASSING:
                    continue  # told again next time
                finally:
                    self._note_failures(link)

    def _note_failures(self, link: ShareLink) -> None:
        self._failures.extend(link.session.failures)
        link.session.failures.clear()

    def _raise_failures(self) -> None:
        if self._failures:
            failures = list(self._failures)
            self._failures.clear()
            raise AcknowledgementsRefused(failures)

    # --- the end

    def _check(self) -> None:
        if self.closed:
            raise ClientClosed('the subscription was closed')
        if self._membership.failure is not None:
            raise self._membership.failure

    async def close(self) -> None:
        """Tell what was decided, give back the rest, leave the group. Records without a decision go to others at once.

        Acknowledgements that the server refuses now are raised by `async with`, or passed over."""
        if self.closed:
            return
        self.closed = True
        if self._teller is not None:
            self._teller.cancel()
        if self._renewal is not None:
            await self._renewal.stop()
        fetches = [link.fetching for link in self._links.values() if link.fetching is not None]
        if fetches:
            await self._membership.leave()  # acklog answers the fetches of a member that leaves at once
            await asyncio.wait(fetches, timeout=self._cluster.timeout)
        for task in fetches:
            task.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        for link in self._links.values():
            try:
                await link.close()
            except AcklogError:
                link.session.lost(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._note_failures(link)
        await self._membership.leave()
        await self._cluster.drop_purpose(f'share {self.member_id}')
