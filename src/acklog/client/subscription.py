"""The share consumer: takes records of a group, hands them out, signs them off.

Strategy: heartbeats keep the membership and bring the partitions (membership.py); for each node that leads some of
them there is a share session (share_link.py). `poll` fetches from all of them at once and returns what comes first
(fetching.py). What the subscriber decides goes with the next fetch, or on its own after `tell_after` seconds, whichever
comes first (holding.py); `flush` waits until the server has confirmed it. The next records may be taken while earlier
ones are unsettled.

While the subscriber is busy with what it has, the next fetch is under way (`ahead`), and the locks of all that it holds
are renewed after a third of their time (renewal.py).

Bounded: a fetch brings about `max_bytes` from each node, at most one fetch per node is under way, and no more than
`max_unsettled` records are held.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType

from acklog.client.admin import Admin
from acklog.client.arguments import check_text, check_wait, check_whole
from acklog.client.beginning import begin_new_group
from acklog.client.calls import SHARE_FETCH
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.connection import ACKLOG_FEATURE
from acklog.client.errors import TooManyUnsettled, Unsupported
from acklog.client.fetching import Fetching
from acklog.client.holding import Holding
from acklog.client.membership import Membership
from acklog.client.named import check_names, look_for_topics
from acklog.client.options import check_subscription
from acklog.client.places import Places
from acklog.client.received import Holder, Received, check_record
from acklog.client.renewal import Renewal
from acklog.client.share_link import GRACE_FEATURE, ShareLink
from acklog.client.times import Delay, Instant, instant, milliseconds
from acklog.errors import AcklogError
from acklog.wire.acknowledgements import ACCEPT, REJECT, RELEASE
from acklog.wire.error_code import ErrorCode

GRACE = 10.0  # seconds
MOST_WORDS = 1000  # characters


class Subscription:
    """A member of a share group; made by `Client.subscribe`, used with `async with`.

    `max_records`: how many records a poll asks for; `strict`: not one more than that, else whole batches are taken,
    which is faster; `max_bytes`: bytes that a fetch brings at most, about; `max_unsettled`: how many records may be
    held without a decision, None for any number; `tell_after`: seconds after which decisions are sent even if nobody
    polls; `ahead`: fetch the next records while the ones taken are worked on (None: where they are taken by `async
    for`); `renew`: renew the locks of what is held, for as long as it is held; `grace`: seconds that it may be without
    a connection and keeps what it holds (None: 10 where the server knows of it, which only acklog does; another number
    raises Unsupported elsewhere); `begin`: where the group begins if it does not exist yet, 'earliest' or 'latest'
    (None: as its configs say, 'latest' unless set). Raises ValueError without a topic, and for numbers out of range;
    TypeError; Refused for names that no topic or group can have.
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
        begin: str | None = None,
    ) -> None:
        check_names(group, topics)
        check_subscription(max_records, max_bytes, max_unsettled, tell_after, grace, begin)
        self.group, self.topics = group, list(topics)
        self._cluster = cluster
        self.holder: Holder = self  # what records are given to settle themselves
        self.knows_times = False  # whether the server is acklog, with times of release and words; known from `start` on
        self.ahead = ahead
        self._max_records = max_records
        self._max_unsettled = sys.maxsize if max_unsettled is None else max_unsettled
        self._grace, self._begin = grace, begin
        self._membership = Membership(cluster, group, topics)
        self._places = Places(cluster)
        self._holding = Holding(tell_after)
        self._fetching = Fetching(
            self._holding, self._membership, self._places, self._link, max_bytes=max_bytes, strict=strict
        )
        self._renewal = Renewal(self._holding.links) if renew else None
        self._ready: deque[Received] = deque()  # taken by the iterator, not handed out yet
        self._polling = asyncio.Lock()

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
            self._holding.raise_failures()

    async def start(self) -> None:
        """Join the group. Topics that do not exist yet are waited for, and a warning in the log says so. Raises
        Unsupported where the server has no share groups, Refused (also for names that it keeps for itself), the
        connection's errors."""
        self._holding.check_open()
        if self._membership.joined:
            return
        connection = await self._cluster.connection(ANY_NODE)
        connection.version(SHARE_FETCH)
        self.knows_times = ACKLOG_FEATURE in connection.features
        if self._grace and GRACE_FEATURE not in connection.features:
            raise Unsupported(
                f'the server at {connection.address} is not acklog: it gives no grace to lost connections'
            )
        await look_for_topics(self._cluster, self.group, self.topics, on_acklog=self.knows_times)
        if self._begin is not None:
            await begin_new_group(Admin(self._cluster), self.group, self._begin)
        await self._membership.join()
        if self._renewal is not None:
            self._renewal.start()

    def _link(self, node: int) -> ShareLink:
        grace = GRACE if self._grace is None else self._grace
        return ShareLink(self._cluster, node, self.group, self.member_id, self._places.names, self.holder, grace)

    @property
    def member_id(self) -> str:
        """The id that this member has in the group."""
        return self._membership.id

    @property
    def closed(self) -> bool:
        return self._holding.closed

    @property
    def unsettled(self) -> int:
        """Number of records handed out, by `poll` or the iterator, about which nothing has been decided yet."""
        return self._holding.unsettled

    @property
    def lock_seconds(self) -> float:
        """How long a record is held before it goes to somebody else; 0 before the server has said."""
        return self._holding.lock_seconds

    # --- taking

    async def poll(self, wait: float = 0.5, *, max_records: int | None = None) -> list[Received]:
        """Take records: as soon as there are some, or an empty list after `wait` seconds.

        `max_records`: how many to ask for, instead of the subscription's. Raises TooManyUnsettled, Refused when the
        server ended the membership or denies a topic, ClientClosed. Lost connections are made again meanwhile.
        """
        check_wait(wait)
        if max_records is not None:
            check_whole('max_records', max_records, 1)
        async with self._polling:
            self._fetching.check()
            if self._ready:
                records = list(self._ready)
                self._ready.clear()
                return records
            most = self._max_records if max_records is None else max_records
            wanted = min(most, self._max_unsettled - self.unsettled)
            if wanted <= 0 and not self._fetching.under_way:
                raise TooManyUnsettled(
                    f'{self.unsettled} records are held; sign some off before taking more (max_unsettled)'
                )
            records = await self._fetching.until(asyncio.get_running_loop().time() + wait, wanted)
            room = self._max_unsettled - self.unsettled
            if records and self.ahead and room > 0:
                self._fetching.ahead(min(most, room))
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

    # --- deciding

    def accept(self, records: Received | Iterable[Received]) -> None:
        """It is done: it is never delivered to this group again. Of many records at once this is faster."""
        if isinstance(records, Received):
            self._holding.decide(records, ACCEPT)
        else:
            try:
                self._holding.accept_all(records)
            except (TypeError, IndexError) as error:  # a look at each beforehand would cost
                raise TypeError(f'records that the subscription gave are wanted, not {records!r:.100}') from error

    def reject(self, record: Received, *, reason: str = '') -> None:
        """It cannot be processed by anybody: it is not delivered again. `reason`: your own words about it, of which the
        first 1,000 characters are kept; raises Unsupported where the server is not acklog."""
        check_record(record)
        check_text('a reason', reason)
        if reason:
            self._holding.check_acklog(record, "keep the subscriber's words")
        self._holding.decide(record, REJECT, words=_words(reason))

    def release(
        self, record: Received, *, after: Delay | None = None, at: Instant | None = None, reason: str = ''
    ) -> None:
        """Hand it back: it is delivered again at once, or after the group's backoff.

        `after`: not before so many seconds, counted from when the server has it; `at`: not before that time, a datetime
        with a time zone or ms since 1970; `reason`: your own words. These three raise Unsupported where the server is
        not acklog, which alone knows of them; ValueError for a datetime without a zone, for less than no time, for both
        times."""
        check_record(record)
        check_text('a reason', reason)
        delay = None if after is None else milliseconds(after)
        when = None if at is None else instant(at)
        if delay is not None and when is not None:
            raise ValueError('a record is released after some time or at an instant, not both')
        if delay is not None or when is not None:
            self._holding.check_acklog(record, 'release a record until a time named')
        if reason:
            self._holding.check_acklog(record, "keep the subscriber's words")
        self._holding.decide(record, RELEASE, when, delay, _words(reason))

    async def release_at(self, record: Received, when: Instant) -> None:
        """`release` with `at`."""
        self.release(record, at=when)

    async def release_after(self, record: Received, seconds: float) -> None:
        """`release` with `after`."""
        self.release(record, after=seconds)

    async def renew(self, records: Received | Iterable[Received]) -> None:
        """Hold these records for another lock's duration from now on.

        Returns when the server has confirmed it. Raises Unsupported where it cannot renew, Refused when one is no
        longer held, the connection's errors. While a poll waits, the renewal waits with it: at most the poll's
        `wait`."""
        self._holding.check_open()
        chosen = [records] if isinstance(records, Received) else list(records)
        for record in chosen:
            check_record(record)
        await self._holding.renew(chosen)

    async def flush(self) -> None:
        """Return when the server has confirmed all that was decided before.

        Raises AcknowledgementsRefused for those since the last flush that it did not take (other ones were applied),
        and the connection's errors."""
        self._fetching.check()
        await self._holding.tell_all()
        self._holding.raise_failures()

    def holds(self, record: Received) -> bool:
        """Whether it is still this member's to decide on: not decided, its lock not known to have run out."""
        check_record(record)
        return self._holding.holds(record)

    # --- the end

    async def close(self) -> None:
        """Tell what was decided, give back the rest, leave the group. Records without a decision go to others at once.

        Acknowledgements that the server refuses now are raised by `async with`, or passed over."""
        if self.closed:
            return
        self._holding.end()
        if self._renewal is not None:
            await self._renewal.stop()
        fetches = self._fetching.under_way
        if fetches:
            await self._membership.leave()  # acklog answers the fetches of a member that leaves at once
            await asyncio.wait(fetches, timeout=self._cluster.timeout)
        for task in fetches:
            task.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        for link in self._holding.links.values():
            try:
                await link.close()
            except AcklogError:
                link.session.lost(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._holding.note_failures(link)
        await self._membership.leave()
        await self._cluster.drop_purpose(f'share {self.member_id}')


def _words(reason: str) -> str | None:
    """As they are sent: an error's text may hold what no UTF-8 can say, as a file's name does."""
    return reason[:MOST_WORDS].encode(errors='replace').decode() or None
