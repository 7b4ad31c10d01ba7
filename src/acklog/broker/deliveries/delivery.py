"""A share partition at work: core's state joined to the log it reads, the journal it writes and the members that wait.

Strategy: every decision is one synchronous step of `core`; its events are recorded in the same step, and the caller
awaits the journal before it answers. Between reserving and acquiring the log is read, which may take time: what was
reserved is checked again by `acquire`. When the journal lost a write, `state` is ahead of it; the delivery is then
`fenced` until it has been folded anew, and answers with an error meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from acklog.broker.deliveries.excerpts import SMALL, Excerpts
from acklog.broker.eager import turn
from acklog.broker.journal.format import ShareKey
from acklog.core import offsets, operators
from acklog.core.acknowledge import Acknowledgement as CoreAcknowledgement
from acklog.core.acquire import Batch
from acklog.core.later import pass_over
from acklog.core.offsets import Offsets
from acklog.errors import Damaged, Failed, OutOfRange
from acklog.wire.acknowledgements import Acknowledgement
from acklog.wire.record_batch import Span, is_control, spans

if TYPE_CHECKING:
    from acklog.broker.deliveries.waiting import Waiter
    from acklog.broker.journal.journal import Journal
    from acklog.broker.partition import Partition
    from acklog.broker.time import Clock, Timer
    from acklog.core.events import Event
    from acklog.core.share_partition import Acquired, Reservation, SharePartition

T = TypeVar('T')
Buffer = bytes | memoryview

SMALL_GAP = 16  # offsets
MAX_WORDS = 1000  # characters of what a subscriber says about a record; more is cut off


class Taken(NamedTuple):
    """Records handed to a member: whole batches, and which offsets of them are its own."""

    buffers: list[Buffer]
    size: int  # bytes
    ranges: Sequence[tuple[int, int, int]]  # (first, last, deliveries)
    records: int
    lock: int  # number of the acquire
    until: int  # ms: its deadline


class Piece(NamedTuple):
    """One batch as it was read: in `data`, at the span's position."""

    span: Span
    data: memoryview


class ShareDelivery:
    """One group's share partition of one partition."""

    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        state: SharePartition,
        journal: Journal,
        clock: Clock,
        timer: Timer,
        excerpts: Excerpts,
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = state
        self.journal = journal
        self.fenced = False
        self.read_committed = False
        self.paused = False  # nothing is delivered (the whole group is paused)
        self.watch: Callable[[Sequence[Event]], None] | None = None  # is told what has happened
        self.owes: Callable[[ShareDelivery], None] | None = None  # is told when dead letters are to be written
        self.oldest: tuple[int, int] | None = None  # an offset and its time (ms), when last looked at
        self.waiters: dict[Waiter, None] = {}
        self._clock, self._timer = clock, timer
        self._armed: int | None = None
        self._excerpts = excerpts
        partition.deliveries[key.group] = self

    @property
    def topic_id(self) -> bytes:
        return self.key.topic

    @property
    def index(self) -> int:
        return self.key.partition

    @property
    def log_end(self) -> int:
        """Where taking stops."""
        log = self.partition.log
        return log.stable_end if self.read_committed else log.visible_end

    # -- taking --------------------------------------------------------------------------------------------------------

    async def take(self, member: str, count: int, max_bytes: int, *, strict: bool) -> Taken | None:
        """Acquire up to `count` records for `member` (rule 2); None if there is nothing. The events are recorded, not
        yet written. Raises LogError."""
        while self.delivers():
            await self._pass_over()
            now = self._clock()
            reservation = self.state.reserve(now, member, count, strict, self.log_end)
            self.decided()
            if reservation is None:
                return None
            state, end = self.state, self.state.end
            try:
                pieces = await self._read(reservation, max_bytes)
            except OutOfRange as error:
                state.release_reservation(reservation)
                if error.offset >= error.start:
                    raise
                self.log_starts_at(error.start)
                continue
            except BaseException:
                state.release_reservation(reservation)
                raise
            if state is not self.state or not self.delivers():
                state.release_reservation(reservation)
                continue  # folded anew meanwhile (then the reservation is of no state that counts), or paused
            now = self._clock()
            acquired = state.acquire(now, reservation, self._batches(pieces, now))
            self.decided()
            if acquired.lock is not None:
                return self._taken(pieces, acquired)
            if state.end == end:
                return None  # somebody else was faster; otherwise only gaps were passed: go on behind them
        return None

    def _batches(self, pieces: list[Piece], now: int) -> Sequence[Batch]:
        """What was read, as core wants it."""
        later = self.partition.later
        batches = [(p.span.first, p.span.last, is_control(p.span.attributes)) for p in pieces]
        return batches if later is None else later.batches(self.key.group, batches, self.state.end, now)

    async def _pass_over(self) -> None:
        """Where the log goes on with records that are all for later, they need not be read to wait."""
        later = self.partition.later
        while later is not None and self.delivers():
            now = self._clock()
            run = later.run(self.key.group, self.state.end, self.log_end, now)
            if run is None:
                return
            pass_over(self.state, now, *run)
            self.decided()
            await turn()

    async def _read(self, reservation: Reservation, max_bytes: int) -> list[Piece]:
        """The batches that hold what is reserved, in order, as far as `max_bytes` go (at least one)."""
        pieces: list[Piece] = []
        left = max_bytes
        for first, stop in self._to_read(reservation):
            position = max(first, pieces[-1].span.last + 1) if pieces else first
            while position < stop:
                if left <= 0 and pieces:
                    return pieces
                kept = None if reservation.tail == first else self._excerpts.find(self.key, position)
                if kept is not None and position >= self.partition.log.start:
                    pieces.append(Piece(*kept))
                    position = kept[0].last + 1
                    left -= kept[0].size
                    continue
                try:
                    read = await self.partition.log.read(position, max(left, 1), up_to=stop)
                except Damaged:
                    if pieces:  # what lies before it can be had
                        return pieces
                    raise
                if not read.data:
                    break
                view = memoryview(read.data)
                pieces.extend([Piece(span, view) for span in spans(view)])
                position = pieces[-1].span.last + 1
                left -= len(view)
        return pieces

    def _to_read(self, reservation: Reservation) -> list[tuple[int, int]]:
        """The stretches [first, stop) that hold what is reserved. Small gaps are read with them: a read costs more."""
        stretches: list[tuple[int, int]] = []
        for first, last in offsets.ranges(reservation.offsets):
            if stretches and first - stretches[-1][1] <= SMALL_GAP:
                stretches[-1] = (stretches[-1][0], last + 1)
            else:
                stretches.append((first, last + 1))
        if reservation.tail is not None:
            missing = reservation.count - len(reservation.offsets)
            stretches.append((reservation.tail, min(self.log_end, reservation.tail + missing)))
        return stretches

    def something(self) -> bool:
        """There is something to take now."""
        return not self.paused and self.state.why_nothing(self.log_end) == 'something'

    def _taken(self, pieces: Sequence[Piece], acquired: Acquired) -> Taken:
        """The batches that hold acquired offsets, or of such with few of them these; neighbours are in one buffer."""
        buffers: list[Buffer] = []
        run: tuple[memoryview, int, int] | None = None  # data, position, end
        ranges = acquired.ranges
        at = 0
        for span, data in pieces:
            while at < len(ranges) and ranges[at][1] < span.first:
                at += 1
            if at == len(ranges):
                break
            first, last, _ = ranges[at]
            if first > span.last:
                continue
            part = None
            if (first > span.first or last < span.last) and span.size > SMALL:
                part = self._excerpts.of(self.key, span, data, _within(ranges, at, span.first, span.last))
            end = span.position + span.size
            if part is None and run is not None and run[0] is data and run[2] == span.position:
                run = data, run[1], end
                continue
            if run is not None:
                buffers.append(run[0][run[1] : run[2]])
            run = (data, span.position, end) if part is None else None
            if part is not None:
                buffers.append(part)
        if run is not None:
            buffers.append(run[0][run[1] : run[2]])
        records = sum(last - first + 1 for first, last, _ in ranges)
        return Taken(buffers, sum(map(len, buffers)), ranges, records, acquired.lock or 0, acquired.until)

    # -- what members say ----------------------------------------------------------------------------------------------

    def acknowledge(self, member: str, acks: Sequence[Acknowledgement]) -> None:
        """All or, by InvalidRecordState, none (rule 3). Recorded, not yet written."""
        self.check()
        now = self._clock()
        self.state.acknowledge(now, member, [_for_core(ack, now) for ack in acks])
        self.decided()

    def lost(self, member: str) -> None:
        """Its connections are gone: what it held has failed (rule 6)."""
        if not self.fenced:
            self.state.lost(self._clock(), member)
            self.decided()

    def left(self, member: str) -> None:
        """It said goodbye: what it held is returned, not counted as failed (rule 6)."""
        if not self.fenced:
            self.state.left(self._clock(), member)
            self.decided()

    # -- operators and the log -----------------------------------------------------------------------------------------

    async def seek(self, target: int) -> None:
        """A new epoch of the state that begins at `target` (rule 10); written when it returns."""
        self.change(lambda state: operators.seek(state, target))
        await self.journal.written()

    def change(self, change: Callable[[SharePartition], T]) -> T:
        """Change the state, by an operator's wish. Recorded, not yet written."""
        self.check()
        self.state.advance(self._clock())
        result = change(self.state)
        self.state.advance(self._clock())
        self.decided()
        return result

    def dead_letters_written(self, offsets: Offsets) -> None:
        """Of those that are still to be dead: their dead letters stand."""
        if not self.fenced:
            self.state.dead_letters_written(offsets)
            self.decided()

    def log_starts_at(self, offset: int) -> int:
        """Records below are gone for good (rule 8). Returns how many of them the group was still to get."""
        if self.fenced:
            return 0  # when it has been folded anew it looks where the log starts
        lost = self.state.log_starts_at(offset)
        self.decided()
        return lost

    def expire_dead(self, before: int) -> int:
        """Those that died before that instant (ms) have been kept long enough. Returns how many."""
        if self.fenced:
            return 0
        expired = operators.expire_dead(self.state, before)
        self.decided()
        return expired

    def end(self) -> None:
        """The group or the topic is no more: waiters are answered, locks are fenced, the journal knows."""
        self.partition.deliveries.pop(self.key.group, None)
        self.fenced = True
        self.journal.end(self.key)
        self.wake_all()

    def delivers(self) -> bool:
        """Not paused. Raises Failed."""
        self.check()
        return not self.paused

    def check(self) -> None:
        """Raises Failed while the state is not to be trusted."""
        if self.fenced:
            raise Failed('the state of this share partition is being read anew from its journal')

    # -- after a decision ----------------------------------------------------------------------------------------------

    def decided(self) -> None:
        """After each step of the state: journal its events, mind its next deadline, wake who can have something."""
        events = self.state.take_events()
        if events:
            self.journal.record(self.key, events)
            if self.watch is not None:
                self.watch(events)
            if self.owes is not None and self.state.status.is_burying:
                self.owes(self)
        self.arm()
        if self.waiters:
            self.offer()

    def arm(self) -> None:
        """Be called at the state's next deadline. One call at a time is asked for; a later deadline waits for it."""
        if self._armed is not None and self._armed <= self.state.soonest:
            return
        deadline = self.state.next_deadline()
        if deadline is not None and (self._armed is None or deadline < self._armed):
            self._armed = deadline
            self._timer.at(deadline, self._due)

    def _due(self) -> None:
        now = self._clock()
        if self._armed is not None and self._armed <= now:
            self._armed = None
        if not self.fenced:
            self.state.advance(now)
            self.decided()

    # -- who waits -----------------------------------------------------------------------------------------------------

    def offer(self) -> None:
        """Wake the next one that waits, if there is something to take."""
        if self.waiters and not self.fenced and self.something():
            self.wake()

    def wake(self) -> None:
        """Wake the one that has waited longest. When it has taken its share it offers the rest to the next."""
        while self.waiters:
            waiter = next(iter(self.waiters))
            del self.waiters[waiter]
            if waiter.wake(self):
                return

    def wake_all(self) -> None:
        for waiter in list(self.waiters):
            waiter.wake()
        self.waiters.clear()


def _for_core(ack: Acknowledgement, now: int) -> CoreAcknowledgement:
    first, last, types, at = ack[:4]
    kinds = types[0] if len(types) == 1 else types
    if len(ack) == 4:
        return (first, last, kinds) if at is None else (first, last, kinds, at)
    after, words = ack[4:]
    if at is None and after is not None:
        at = now + max(after, 0)
    return first, last, kinds, at, None if words is None else words[:MAX_WORDS]


def _within(ranges: Sequence[tuple[int, int, int]], at: int, first: int, last: int) -> list[tuple[int, int]]:
    """What of the ranges from the one at `at` on, which ends in `first..last` or behind, lies in there."""
    found = []
    while at < len(ranges) and ranges[at][0] <= last:
        found.append((max(ranges[at][0], first), min(ranges[at][1], last)))
        at += 1
    return found
