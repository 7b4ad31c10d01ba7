"""A share partition: which records of one partition a group has been given, has finished, and is still owed.

Strategy: this class is the face for those who deliver. Each call does what is due at `now`, checks the whole request,
then records events; an event is what changes the state (`apply.py`), live as in recovery. After a call, `take_events`
gives what the journal must keep before the answer leaves (rule 12). Neither clock nor I/O: `now` (ms on the owner's
clock) comes in, and decreases only where `clock_stepped` says so; `next_deadline` says when `advance` is wanted next.
Rules named in comments are those of docs/design.md.

Beside it, each a file of that name: `status` (what can be read), `operators` (redrive, seek, ...), `tokens` (settling
by the number of a lock), `later` (what was published for later). Below it: `acquire`, `acknowledge` (checking),
`settling`, `failing`; `state` (where offsets are), `history` (what is remembered of them), `events` and `snapshot`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyroaring import BitMap64

from acklog.core import acquire as acquiring
from acklog.core import events as ev
from acklog.core import settling
from acklog.core.acknowledge import Acknowledgement, check
from acklog.core.acquire import Acquired, Batch, LogBatch
from acklog.core.apply import apply, record
from acklog.core.events import Event
from acklog.core.failing import TOO_LONG, fail
from acklog.core.kinds import Ack, Cause, Return, When
from acklog.core.offsets import Offsets, chosen
from acklog.core.share_config import ShareConfig
from acklog.core.snapshot import snapshot
from acklog.core.state import Reservation, ShareState
from acklog.core.status import Status

__all__ = ['Ack', 'Acquired', 'Event', 'LogBatch', 'Reservation', 'ShareConfig', 'SharePartition']


class SharePartition:
    """The state of one (group, topic id, partition).

    `config` may be replaced at any time. `start`: the offset from which the group begins. `locks`: the numbers of its
    locks are above it. `status`: what can be read.
    """

    __slots__ = ('config', 'state', 'status')

    def __init__(self, config: ShareConfig, start: int = 0, locks: int = 0) -> None:
        self.config = config
        self.state = ShareState(start)
        self.state.lock_number = locks
        self.status = Status(self.state)

    @property
    def end(self) -> int:
        """Nothing from here on has been taken from the log."""
        return self.state.end

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def soonest(self) -> int:
        """No deadline is before this (ms); it may be too early, and costs nothing to know."""
        return self.state.soonest

    def next_deadline(self) -> int | None:
        """When something falls due or a lock runs out next (ms); None: never."""
        return self.state.next_deadline()

    def reconfigure(self, config: ShareConfig) -> None:
        """From now on this counts. Who is reading what it has reserved acquires by it as well."""
        self.config = config
        self.state.changes += 1

    def advance(self, now: int) -> None:
        """Do all that is due. Every other call with a `now` does this first."""
        state = self.state
        if now < state.soonest:
            return
        state.come_due(now)
        expired = state.locks.run_out(now)
        if expired:
            fail(state, self.config, expired, Cause.EXPIRED, now)
        too_long = state.waited_too_long(now)
        if too_long:
            record(state, ev.GivenUp(now, too_long, TOO_LONG, self.config.dead_letter_topic))
        state.next_deadline()

    def clock_stepped(self, now: int, by: int) -> ev.ClockStepped:
        """The owner's clock, which shows `now`, is set by `by` ms, forward or back: locks and delays move along, named
        instants do not (rule 11). Comes after `advance(now)`. The event is returned and not among those of
        `take_events`: it is the same for all share partitions of the owner."""
        event = ev.ClockStepped(now, by)
        apply(self.state, event)
        return event

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
            record(state, ev.Taken(now, lock, reservation.member, until, offsets, state.end, None))
            return Acquired(lock, acquiring.delivered(state, offsets), until)
        acquiring.release(state, reservation)
        room = config.max_in_flight - state.in_flight
        selection = acquiring.select(state, reservation, batches, now, room, config.attempts_limit)
        if selection.skipped:
            record(state, ev.Skipped(selection.skipped))
        offsets = selection.offsets
        if not offsets:
            if selection.end > state.end:
                record(state, selection.event(now, state.lock_number, '', 0))
            return Acquired(None, [], 0)
        lock, until = state.lock_number + 1, now + config.lock_ms
        record(state, selection.event(now, lock, reservation.member, until))
        return Acquired(lock, acquiring.delivered(state, offsets), until)

    def why_nothing(self, log_end: int) -> str:
        """Why an acquire just gave nothing (see `Status.why_nothing`)."""
        return self.status.why_nothing(log_end, self.config.max_in_flight)

    # -- acknowledge ---------------------------------------------------------------------------------------------------

    def acknowledge(
        self,
        now: int,
        member: str,
        acks: Sequence[Acknowledgement],
        *,
        at: When | None = None,
        lock: int | None = None,
        transaction: bool = False,
    ) -> None:
        """Settle all of `acks` or, by InvalidRecordState, none (rule 3).

        An acknowledgement is `(first, last, kind)`, or with a fourth value, before which a RELEASE is not to come back
        (None: as `at` says, for all of them; that None too: the backoff decides), or with a fifth, the subscriber's
        own words about a RELEASE or REJECT. `kind` is one Ack for the range or `bytes` with one for each offset.
        `lock`: only what that acquire took. `transaction`: they take effect with `end_transaction`, without words;
        RENEW does at once.
        """
        self.advance(now)
        settlement = check(self.state, member, acks, at, lock)
        if transaction:
            settling.pend_all(self.state, self.config, member, settlement, now)
        else:
            settling.settle_all(self.state, self.config, member, settlement, now)

    def end_transaction(self, now: int, member: str, commit: bool) -> None:
        """The member's transaction ended: what it acknowledged in it happens, or comes back unattempted."""
        self.advance(now)
        settling.end_transaction(self.state, self.config, member, commit, now)

    def defer(self, now: int, offset: int, at: When, deliveries: int | None = None) -> None:
        """If the current delivery of an acquired record fails, it comes back no earlier than `at`.

        `deliveries`, where given, must be the record's number. Raises InvalidRecordState.
        """
        self.advance(now)
        settling.defer(self.state, now + self.config.cut_ms, offset, at, deliveries)

    # -- members -------------------------------------------------------------------------------------------------------

    def lost(self, now: int, member: str) -> None:
        """Its connections are gone or its session timed out: a failed delivery of all that it holds (rule 6)."""
        self.advance(now)
        held = self.state.locks.held.get(member)
        if held is not None:
            fail(self.state, self.config, held.copy(), Cause.LOST, now)

    def left(self, now: int, member: str) -> None:
        """A clean leave, or a new session: what it holds comes back unattempted, as often as the limit (rules 6, 7)."""
        self.advance(now)
        held = self.state.locks.held.get(member)
        if held is not None:
            self._come_back(held.copy(), now)

    def unsent(self, now: int, lock: int, offsets: Offsets) -> int:
        """The answer with these never reached who took them: those that acquire `lock` still holds come back as after a
        clean leave (rule 6). Returns how many."""
        self.advance(now)
        under = self._under(lock, offsets)
        if under:
            self._come_back(under, now)
        return len(under)

    def spare(self, now: int, lock: int, offsets: Offsets) -> int:
        """Of what acquire `lock` took there is no room for these in the answer: those that it still holds come back as
        if they had not been taken. Returns how many."""
        self.advance(now)
        under = self._under(lock, offsets)
        if under:
            record(self.state, ev.Returned(under, Return.SPARE))
        return len(under)

    def _under(self, lock: int, offsets: Offsets) -> BitMap64:
        """Those that are held by that acquire."""
        return self.state.locks.under(lock, chosen(offsets, self.state.acquired()))

    def _come_back(self, offsets: BitMap64, now: int) -> None:
        """Unattempted, as often as the limit."""
        limit = self.config.attempts_limit
        again, spent = BitMap64(), BitMap64()
        for leaves, group in self.state.history.leaves.classes(offsets):
            if limit is not None and leaves >= limit:
                spent |= group
            else:
                again |= group
        if again:
            record(self.state, ev.Returned(again, Return.LEFT))
        if spent:
            fail(self.state, self.config, spent, Cause.LEFT, now)

    # -- the server and the log ----------------------------------------------------------------------------------------

    def restarted(self, now: int, session_ms: int) -> None:
        """The server is back: every lock holds at least `session_ms` more (rule 7). Comes before any `advance`."""
        record(self.state, ev.Restarted(now + session_ms))

    def cut(self, log_end: int) -> None:
        """The log came back shorter than the state (power loss): forget what is beyond it."""
        if log_end < self.state.end:
            record(self.state, ev.Cut(log_end))

    def log_starts_at(self, offset: int) -> int:
        """Records below are gone for good. Returns how many of them the group had not settled (rule 8)."""
        state = self.state
        lost = state.owed.range_cardinality(0, offset) + max(0, offset - state.end)
        if lost or (state.dead and state.dead.min() < offset):
            record(state, ev.LogStarted(offset))
        return lost

    def dead_letters_written(self, offsets: Offsets) -> None:
        """The dead letters of these stand; those not dying are passed over."""
        written = chosen(offsets, self.state.dying)
        if written:
            record(self.state, ev.DeadLettersWritten(written))

    # -- journal and recovery ------------------------------------------------------------------------------------------

    def take_events(self) -> list[Event]:
        """What has happened since the last call, in order, for the journal."""
        events, self.state.events = self.state.events, []
        return events

    def fold(self, event: Event) -> None:
        """Apply an event of the journal or of a snapshot."""
        apply(self.state, event)

    def snapshot(self) -> Iterator[Event]:
        """Events that rebuild this state in any share partition that folds them. What it is is settled now; it is
        worked out while they are read: elsewhere, and while this state goes on, if need be."""
        return snapshot(self.state)
