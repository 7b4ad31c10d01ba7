"""A share partition: which records of one partition a group has been given, has finished, and is still owed.

Strategy: this class is the face. Each call does what is due at `now`, checks the whole request, then records events;
an event is what changes the state (`state.py`), live as in recovery. After a call, `take_events` gives what the
journal must keep before the answer leaves (rule 12). Neither clock nor I/O: `now` (ms on the owner's clock) comes in
and never decreases; `next_deadline` says when `advance` is wanted next.

The parts: `acquire.py` (three steps), `acknowledge.py` (checking), `failing.py` (failed deliveries), `snapshot.py`,
`status.py` (what can be read). Rules named in comments are those of docs/design.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyroaring import BitMap64

from acklog.core import acquire as acquiring
from acklog.core import events as ev
from acklog.core import status, tokens
from acklog.core.acknowledge import Acknowledgement, check
from acklog.core.acquire import Acquired, Batch, LogBatch
from acklog.core.events import Ack, Cause, Event, Return
from acklog.core.failing import GIVEN_UP, REJECTED, TOO_LONG, ShareConfig, Times, fail
from acklog.core.locks import Lock
from acklog.core.offsets import Offsets, Range, chosen, ranges, span, within
from acklog.core.snapshot import snapshot
from acklog.core.state import Reservation, ShareState
from acklog.core.tokens import Outcome, TokenAck
from acklog.core.waiting import Dues
from acklog.errors import InvalidRecordState

__all__ = ['Ack', 'Acquired', 'Event', 'LogBatch', 'Reservation', 'ShareConfig', 'SharePartition']


class SharePartition:
    """The state of one (group, topic id, partition).

    `config` may be replaced at any time. `start`: the offset from which the group begins. `seed` makes the jitter of
    this partition's backoff differ from others'. `locks`: the numbers of its locks are above it.
    """

    __slots__ = ('config', 'seed', 'state')

    def __init__(self, config: ShareConfig, start: int = 0, seed: int = 0, locks: int = 0) -> None:
        self.config, self.seed = config, seed
        self.state = ShareState(start)
        self.state.lock_number = locks

    # -- what can be read ----------------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The smallest offset that is neither done nor dead, else `end`; so it can move back."""
        return status.start(self.state)

    @property
    def end(self) -> int:
        """Nothing from here on has been taken from the log."""
        return self.state.end

    @property
    def epoch(self) -> int:
        """Of the state; a seek starts a new one."""
        return self.state.epoch

    @property
    def locks(self) -> int:
        """The number of the latest lock."""
        return self.state.lock_number

    @property
    def clock(self) -> int:
        """The last `now` (ms) that an event kept: the owner's clock may not fall below it (rule 11)."""
        return self.state.clock

    @property
    def in_flight(self) -> int:
        """Records acquired, pending or dying: what counts against the limit."""
        return self.state.in_flight

    @property
    def available(self) -> int:
        """Records that could be taken now, reserved ones included."""
        return self.state.available

    def counts(self) -> status.Counts:
        """How many records are where."""
        return status.counts(self.state)

    def holders(self) -> dict[str, status.Holder]:
        """Who holds acquired records."""
        return status.holders(self.state)

    def held_by(self, member: str) -> list[Range]:
        """What a member holds."""
        return ranges(self.state.locks.held.get(member, BitMap64()))

    @property
    def owed(self) -> int:
        """Records below `end` that are neither done nor dead."""
        return len(self.state.owed)

    def owed_between(self, first: int, end: int) -> int:
        """How many of these are owed; `end` not included."""
        return int(self.state.owed.range_cardinality(first, end))

    def attempts_of(self, offset: int) -> int:
        """How many deliveries of a record have failed."""
        return self.state.attempts.of(offset)

    def lock_of(self, offset: int) -> Lock | None:
        """The lock that holds a record."""
        return self.state.locks.of(offset)

    def state_of(self, offset: int) -> status.Record:
        """One record."""
        return status.record(self.state, offset)

    @property
    def moving_from(self) -> int | None:
        """The smallest offset that waits for a time, is in somebody's hands, or dead."""
        return self.state.moving_from

    @property
    def kept_from(self) -> int:
        """The log is needed from here on: for what is owed and for dead ones, which may be redriven."""
        dead = self.state.dead
        return min(dead.min(), self.start) if dead else self.start

    def totals(self) -> status.Totals:
        """What has gone for good without the group's doing."""
        return status.Totals(self.state.lost, self.state.expired)

    def waiting(self) -> BitMap64:
        """Those that wait."""
        return self.state.waiting.copy()

    def dead(self) -> BitMap64:
        """The dead ones."""
        return self.state.dead.copy()

    def deaths(self, offsets: BitMap64) -> list[status.Dead]:
        """What is known of a few dead ones, in order."""
        return status.deaths(self.state, offsets)

    def next_due(self) -> int | None:
        """When the first of those that wait comes, or has waited as long as it may (ms)."""
        return self.state.next_due()

    def dues(self, offsets: BitMap64) -> list[int]:
        """When a few waiting ones fall due (ms), in order."""
        return status.dues(self.state, offsets)

    def dying(self) -> dict[str, BitMap64]:
        """Those whose dead letter is still to be written, by reason."""
        found = ((reason, offsets & self.state.dying) for reason, offsets in self.state.reasons.items())
        return {reason: offsets for reason, offsets in found if offsets}

    @property
    def is_burying(self) -> bool:
        """Dead letters of some are still to be written."""
        return bool(self.state.dying)

    def why_nothing(self, log_end: int) -> str:
        """Why an acquire just gave nothing: 'limit', 'held', 'waiting', 'nothing new', or 'something': try again."""
        return status.why_nothing(self.state, log_end, self.config.max_in_flight)

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def soonest(self) -> int:
        """No deadline is before this (ms); it may be too early, and costs nothing to know."""
        return self.state.soonest

    def next_deadline(self) -> int | None:
        """When something falls due or a lock runs out next (ms); None: never."""
        return self.state.next_deadline()

    def advance(self, now: int) -> None:
        """Do all that is due. Every other call with a `now` does this first."""
        state = self.state
        if now < state.soonest:
            return
        state.come_due(now)
        expired = state.locks.run_out(now)
        if expired:
            self._fail(expired, Cause.EXPIRED, now)
        too_long = state.waited_too_long(now)
        if too_long:
            state.record(ev.GivenUp(now, too_long, TOO_LONG, self.config.dead_letter_topic))
        state.next_deadline()

    def clock_stepped(self, by: int) -> None:
        """The owner's clock was set by `by` ms: locks and delays move along, named instants do not (rule 11)."""
        self.state.record(ev.ClockStepped(by))

    # -- acquire -------------------------------------------------------------------------------------------------------

    def reserve(self, now: int, member: str, count: int, strict: bool, log_end: int) -> Reservation | None:
        """Step 1 of 3: what to read for `member`, who wants `count` records. None: there is nothing to take.

        `strict`: no more than `count` (record-limit mode); else the batch that reaches it is taken whole. `log_end`:
        where taking from the log stops. What is reserved is hidden from other readers until `acquire` or
        `release_reservation`.
        """
        self.advance(now)
        state, config = self.state, self.config
        count = min(count, config.max_in_flight - state.in_flight)
        return acquiring.reserve(state, member, count, strict, log_end, config.attempts_limit)

    def release_reservation(self, reservation: Reservation) -> None:
        """Give up a reservation. One that has ended already is left alone."""
        acquiring.release(self.state, reservation)

    def acquire(self, now: int, reservation: Reservation, batches: Sequence[Batch]) -> Acquired:
        """Step 3 of 3: take what was read, in order of offsets; the reservation ends.

        What is decided here is decided from how things are now: of the batches, available offsets are taken, oldest
        first, then, if the reservation has the tail, what lies beyond `end`. A batch that was not read whole does not
        count as read. Nothing is taken by a reservation from before a seek.
        """
        self.advance(now)
        state, config = self.state, self.config
        if not reservation.open:
            return Acquired(None, [], 0)
        if acquiring.as_reserved(state, reservation, batches):
            reservation.open = False
            state.reservations.clear()
            lock, until, offsets = state.lock_number + 1, now + config.lock_ms, reservation.offsets
            state.record(ev.Taken(now, lock, reservation.member, until, offsets, state.end, None))
            return Acquired(lock, acquiring.delivered(state, offsets), until)
        acquiring.release(state, reservation)
        room = config.max_in_flight - state.in_flight
        selection = acquiring.select(state, reservation, batches, now, room, config.attempts_limit)
        if selection.skipped:
            state.record(ev.Skipped(selection.skipped))
        offsets = selection.offsets
        if not offsets:
            if selection.end > state.end:
                state.record(selection.event(now, state.lock_number, '', 0))
            return Acquired(None, [], 0)
        lock, until = state.lock_number + 1, now + config.lock_ms
        state.record(selection.event(now, lock, reservation.member, until))
        return Acquired(lock, acquiring.delivered(state, offsets), until)

    # -- acknowledge ---------------------------------------------------------------------------------------------------

    def acknowledge(
        self,
        now: int,
        member: str,
        acks: Sequence[Acknowledgement],
        *,
        at: int | None = None,
        lock: int | None = None,
        transaction: bool = False,
    ) -> None:
        """Settle all of `acks` or, by InvalidRecordState, none (rule 3).

        An acknowledgement is `(first, last, kind)`, or with a fourth value, the instant (ms) before which a RELEASE
        is not to come back (None: as `at` says, for all of them; that None too: the backoff decides), or with a fifth,
        the subscriber's own words about a RELEASE or REJECT. `kind` is one Ack for the range or `bytes` with one for
        each offset. `lock`: only what that acquire took. `transaction`: they take effect with `end_transaction`,
        without words; RENEW does at once.
        """
        self.advance(now)
        settlement = check(self.state, member, acks, at, lock)
        for (kind, when), offsets in settlement.groups.items():
            if transaction and kind != Ack.RENEW:
                self._pend(member, Ack(kind), offsets, when)
            else:
                self._settle(member, kind, offsets, now, when)
        if settlement.times:
            self._release(member, settlement.times, now, transaction)
        if not transaction:
            for offsets, words in settlement.said:
                self.state.record(ev.Said(offsets, words))

    def settle(self, now: int, acks: Sequence[TokenAck]) -> list[Outcome]:
        """Settle each of `acks` that its lock still holds: 'ok', 'renewed' or, where it does not, 'lost'. One that was
        settled before gives the same answer, or 'settled' if it was in another way."""
        self.advance(now)
        outcomes, todo = tokens.judge(self.state, acks)
        remembered = tokens.answered(todo)
        for lock, held in todo.items():
            self.acknowledge(now, held.member, held.acks, lock=lock)
        for event in remembered:
            self.state.record(event)
        return outcomes

    def _release(self, member: str, times: dict[int, int], now: int, transaction: bool) -> None:
        """Each with a time of its own."""
        if not transaction:
            self._fail(BitMap64(times), Cause.RELEASED, now, times)
            return
        for offset, at in times.items():
            self._pend(member, Ack.RELEASE, span(offset, offset), at)

    def _settle(self, member: str, kind: int, offsets: BitMap64, now: int, at: int | None) -> None:
        state, config = self.state, self.config
        if kind in (Ack.ACCEPT, Ack.GAP):
            state.record(ev.Settled(offsets))
        elif kind == Ack.RELEASE:
            self._fail(offsets, Cause.RELEASED, now, at)
        elif kind == Ack.REJECT:
            state.record(ev.Died(offsets, REJECTED, config.dead_letter_topic, False, now, member))
        else:
            state.record(ev.Renewed(offsets, now + config.lock_ms))

    def _pend(self, member: str, kind: Ack, offsets: BitMap64, at: int | None) -> None:
        if kind is Ack.RELEASE and at is not None:
            self.state.record(ev.Deferred(offsets, at))
        self.state.record(ev.Pended(member, kind, offsets))

    def _fail(self, offsets: BitMap64, cause: Cause, now: int, at: Times = None) -> None:
        fail(self.state, self.config, self.seed, offsets, cause, now, at)

    def end_transaction(self, now: int, member: str, commit: bool) -> None:
        """The member's transaction ended: what it acknowledged in it happens, or comes back unattempted."""
        self.advance(now)
        for (holder, kind), offsets in list(self.state.pending.items()):
            if holder == member and commit:
                self._settle(member, kind, offsets.copy(), now, None)
            elif holder == member:
                self.state.record(ev.Returned(offsets.copy(), Return.ABORTED))

    def defer(self, now: int, offset: int, at: int, deliveries: int | None = None) -> None:
        """If the current delivery of an acquired record fails, it comes back no earlier than `at` (ms).

        `deliveries`, where given, must be the record's number. Raises InvalidRecordState.
        """
        self.advance(now)
        state = self.state
        if offset < 0 or state.locks.of(offset) is None or deliveries not in (None, state.deliveries.of(offset)):
            raise InvalidRecordState(f'{offset} is not held, or not in that delivery')
        state.record(ev.Deferred(span(offset, offset), at))

    # -- members -------------------------------------------------------------------------------------------------------

    def lost(self, now: int, member: str) -> None:
        """Its connections are gone or its session timed out: a failed delivery of all that it holds (rule 6)."""
        self.advance(now)
        held = self.state.locks.held.get(member)
        if held is not None:
            self._fail(held.copy(), Cause.LOST, now)

    def left(self, now: int, member: str) -> None:
        """A clean leave, or a new session: what it holds comes back unattempted, as often as the limit (rules 6, 7)."""
        self.advance(now)
        held = self.state.locks.held.get(member)
        if held is None:
            return
        limit = self.config.attempts_limit
        again, spent = BitMap64(), BitMap64()
        for leaves, group in self.state.leaves.classes(held.copy()):
            if limit is not None and leaves >= limit:
                spent |= group
            else:
                again |= group
        if again:
            self.state.record(ev.Returned(again, Return.LEFT))
        if spent:
            self._fail(spent, Cause.LEFT, now)

    # -- the server and the log ----------------------------------------------------------------------------------------

    def restarted(self, now: int, session_ms: int) -> None:
        """The server is back: every lock holds at least `session_ms` more (rule 7). Comes before any `advance`."""
        self.state.record(ev.Restarted(now + session_ms))

    def cut(self, log_end: int) -> None:
        """The log came back shorter than the state (power loss): forget what is beyond it."""
        if log_end < self.state.end:
            self.state.record(ev.Cut(log_end))

    def log_starts_at(self, offset: int) -> int:
        """Records below are gone for good. Returns how many of them the group had not settled (rule 8)."""
        state = self.state
        lost = state.owed.range_cardinality(0, offset) + max(0, offset - state.end)
        if lost or (state.dead and state.dead.min() < offset):
            state.record(ev.LogStarted(offset))
        return lost

    def dead_letter_written(self, offsets: Offsets | int) -> None:
        """The dead letters of these stand; those not dying are passed over."""
        named = (offsets,) if isinstance(offsets, int) else offsets
        written = chosen(named, self.state.dying)
        if written:
            self.state.record(ev.DeadLettersWritten(written))

    # -- operators -----------------------------------------------------------------------------------------------------

    def redrive(self, offsets: Offsets, due: Callable[[int], Dues] | None = None) -> int:
        """Dead ones become available as new, to this group only, or wait first: `due(how many)` says until when (ms),
        for all or each in order. Returns how many."""
        redriven = chosen(offsets, self.state.dead)
        if redriven:
            self.state.record(ev.Redriven(redriven, None if due is None else due(len(redriven))))
        return len(redriven)

    def expire_dead(self, before: int) -> int:
        """Those that died before that instant (ms) have been kept long enough. Returns how many."""
        expired = self.state.told.burials.before(before) & self.state.dead
        if expired:
            self.state.record(ev.DeadExpired(expired))
        return len(expired)

    def discard(self, offsets: Offsets) -> int:
        """Dead ones are done. Returns how many."""
        discarded = chosen(offsets, self.state.dead)
        if discarded:
            self.state.record(ev.Discarded(discarded))
        return len(discarded)

    def give_up(self, now: int, offsets: Offsets, reason: str = GIVEN_UP) -> int:
        """Waiting and available ones die. Returns how many."""
        self.advance(now)
        given_up = chosen(offsets, self.state.all_free() | self.state.waiting)
        if given_up:
            self.state.record(ev.GivenUp(now, given_up, reason, self.config.dead_letter_topic))
        return len(given_up)

    def move(self, now: int, offsets: Offsets, due: int) -> int:
        """Waiting ones get another time (ms); one that has come means now. Returns how many."""
        self.advance(now)
        moved = chosen(offsets, self.state.waiting)
        if moved:
            self.state.record(ev.Moved(now, moved, due))
            self.advance(now)
        return len(moved)

    def replayable(self, first: int, last: int, batches: Sequence[Batch]) -> BitMap64:
        """What is done in a range and in the log (`batches`)."""
        state = self.state
        there = BitMap64()
        for batch in batches:
            if not batch[2]:
                records = span(batch[0], batch[1])
                there |= records - batch[4] if len(batch) > 3 and batch[4] else records
        return within(there, max(first, 0), min(last, state.end - 1)) - state.owed - state.dead

    def replay(self, first: int, last: int, batches: Sequence[Batch]) -> int:
        """What is done in a range and in the log (`batches`) becomes available, as new. Returns how many."""
        replayed = self.replayable(first, last, batches)
        if replayed:
            self.state.record(ev.Replayed(replayed))
        return len(replayed)

    def seek(self, target: int) -> None:
        """A new epoch of the state: all before is settled, all from there on is to come (rule 10)."""
        self.state.record(ev.Sought(self.state.epoch + 1, target))

    # -- journal and recovery ------------------------------------------------------------------------------------------

    def take_events(self) -> list[Event]:
        """What has happened since the last call, in order, for the journal."""
        events, self.state.events = self.state.events, []
        return events

    def fold(self, event: Event) -> None:
        """Apply an event of the journal or of a snapshot."""
        self.state.apply(event)

    def snapshot(self) -> list[Event]:
        """Events that rebuild this state in any share partition that folds them."""
        return list(snapshot(self.state))

    def captured(self) -> Iterator[Event]:
        """The same, worked out while it is read: elsewhere, and while this state goes on, if need be."""
        return snapshot(self.state)
