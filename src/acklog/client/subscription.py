"""The share consumer: takes records of a group, hands them out, signs them off.

Strategy: heartbeats keep the membership and bring the partitions (membership.py); for each node that leads some of
them there is a share session (share_link.py). `poll` fetches from all of them at once and returns what comes first.
What the subscriber decides goes with the next fetch, or on its own after `tell_after` seconds, whichever comes first;
`flush` waits until the server has confirmed it. The next records may be taken while earlier ones are unsettled.

Bounded: a fetch brings about `max_bytes` from each node, at most one fetch per node is under way, and no more than
`max_unsettled` records are held.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from acklog.client.calls import SHARE_FETCH
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.errors import (
    AcknowledgementFailure,
    AcknowledgementsRefused,
    ClientClosed,
    TooManyUnsettled,
)
from acklog.client.membership import Membership
from acklog.client.places import LOOK_AGAIN, Places
from acklog.client.received import Received
from acklog.client.share_link import PASSING, Fetched, ShareLink
from acklog.client.share_session import Key, Limits
from acklog.errors import AcklogError
from acklog.wire.acknowledgements import ACCEPT, REJECT, RELEASE
from acklog.wire.error_code import ErrorCode

ANSWER_GRACE = 1.0  # seconds that an empty answer may come later than asked for
MOST_FAILURES = 1000  # kept until `flush` raises them


class Subscription:
    """A member of a share group; made by `Client.subscribe`, used with `async with`.

    `max_records`: how many records a poll asks for; `strict`: not one more than that, else whole batches are taken,
    which is faster; `max_bytes`: bytes that a fetch brings at most, about; `max_unsettled`: how many records may be
    held without a decision; `tell_after`: seconds after which decisions are sent even if nobody polls.
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
        max_unsettled: int = 100_000,
        tell_after: float = 0.1,
    ) -> None:
        self.group, self.topics = group, list(topics)
        self._cluster = cluster
        self._max_records, self._strict, self._max_bytes = max_records, strict, max_bytes
        self._max_unsettled, self._tell_after = max_unsettled, tell_after
        self._membership = Membership(cluster, group, topics)
        self._places = Places(cluster)
        self._links: dict[int, ShareLink] = {}
        self._holders: dict[tuple[str, int], tuple[ShareLink, Key]] = {}
        self._ready: deque[Received] = deque()
        self._failures: deque[AcknowledgementFailure] = deque(maxlen=MOST_FAILURES)
        self._polling = asyncio.Lock()
        self._teller: asyncio.Task[None] | None = None
        self._closed = False

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
        await self._membership.join()

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
            if wanted <= 0:
                raise TooManyUnsettled(
                    f'{self.unsettled} records are held; sign some off before taking more (max_unsettled)'
                )
            return await self._poll_until(asyncio.get_running_loop().time() + wait, wanted)

    async def __aiter__(self) -> AsyncIterator[Received]:
        """Records one after the other, without end."""
        while True:
            for record in await self.poll():
                yield record

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
        limits = Limits(int(wait * 1000), self._max_bytes, wanted, self._strict)
        for node in by_node:
            if node not in self._links:
                self._links[node] = ShareLink(self._cluster, node, self.group, self.member_id, self._places.names)
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

    def accept(self, record: Received) -> None:
        """It is done: it is never delivered to this group again."""
        self._decide(record, ACCEPT)

    def reject(self, record: Received) -> None:
        """It cannot be processed by anybody: it is not delivered again."""
        self._decide(record, REJECT)

    def release(self, record: Received) -> None:
        """Hand it back: it is delivered again at once, or after the group's backoff."""
        self._decide(record, RELEASE)

    async def release_at(self, record: Received, when: datetime | int) -> None:
        """Hand it back to be delivered again at a time named: a datetime with a time zone, or ms since 1970.

        Raises Unsupported where the server is not acklog, which alone knows of such times; ValueError for a datetime
        without a time zone."""
        if isinstance(when, datetime):
            if when.tzinfo is None:
                raise ValueError('a time of release needs a time zone')
            when = int(when.timestamp() * 1000)
        link, _ = self._holder(record)
        if link is not None:
            await link.check_release_at()
        self._decide(record, RELEASE, when)

    async def release_after(self, record: Received, seconds: float) -> None:
        """Hand it back to be delivered again after so many seconds by this machine's clock; as `release_at`."""
        await self.release_at(record, int((time.time() + seconds) * 1000))

    async def renew(self, records: Received | Iterable[Received]) -> None:
        """Hold these records for another lock's duration from now on.

        Returns when the server has confirmed it. Raises Unsupported where it cannot renew, Refused when one is no
        longer held, the connection's errors. While a poll waits, the renewal waits with it: at most the poll's
        `wait`."""
        by_place: dict[tuple[str, int], list[int]] = {}
        for record in [records] if isinstance(records, Received) else records:
            by_place.setdefault((record.topic, record.partition), []).append(record.offset)
        for place, offsets in by_place.items():
            link, key = self._holders.get(place, (None, None))
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
        return self._holders.get((record.topic, record.partition), (None, None))

    def _decide(self, record: Received, type_: int, release_at: int | None = None) -> None:
        if self._closed:
            raise ClientClosed('the subscription was closed')
        link, key = self._holder(record)
        if link is None or key is None or not link.session.of(key).decide(record.offset, type_, release_at):
            self._failures.append(
                AcknowledgementFailure(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.offset,
                    ErrorCode.INVALID_RECORD_STATE,
                    'this member does not hold the record',
                )
            )
        elif self._teller is None or self._teller.done():
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
        if self._closed:
            raise ClientClosed('the subscription was closed')
        if self._membership.failure is not None:
            raise self._membership.failure

    async def close(self) -> None:
        """Tell what was decided, give back the rest, leave the group. Records without a decision go to others at once.

        Acknowledgements that the server refuses now are raised by `async with`, or passed over."""
        if self._closed:
            return
        self._closed = True
        if self._teller is not None:
            self._teller.cancel()
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
