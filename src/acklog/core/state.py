"""The state of a share partition, and how each event changes it.

Strategy: every offset below `end` is in exactly one place, or done, which is not stored:

    free        available (those reserved by a reader are in its Reservation meanwhile)
    waiting     the set; the times are in `named` (instants that clients named), `delayed` (computed from a delay) and
                `limited` (when they will have waited as long as they may, and die)
    locks       acquired
    pending     acknowledged inside an open transaction
    dying, dead

`owed` is all of these but the dead ones. Live calls decide and then `record` an event; recovery calls `apply` with
events from the journal. Both change the state here and nowhere else, so recovery cannot come out differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.counters import Counter
from acklog.core.locks import Locks
from acklog.core.offsets import Range, above, below, ranges, within
from acklog.core.told import Told
from acklog.core.waiting import Dues, Waiting

NEVER = (1 << 63) - 1
LOCKS_LOST = 1 << 20  # more than a power loss can have taken from the journal: their numbers are not given again
ANSWERED = 4096  # locks and kinds that are remembered for repeats


class Reservation:
    """Offsets held back for one reader between `reserve` and `acquire`: memory only, counted nowhere.

    `tail`: the offset from which the reader also reads on in the log, else None; only one open reservation has it.
    """

    __slots__ = ('changes', 'count', 'generation', 'member', 'offsets', 'open', 'strict', 'tail')

    def __init__(
        self, member: str, count: int, strict: bool, offsets: BitMap64, tail: int | None, state: ShareState
    ) -> None:
        self.member, self.count, self.strict, self.offsets, self.tail = member, count, strict, offsets, tail
        self.generation, self.changes, self.open = state.generation, state.changes, True

    @property
    def wanted(self) -> list[Range]:
        """The available offsets to read, before the tail."""
        return ranges(self.offsets)


class ShareState:
    """Where every offset is. Offsets and times (ms) as in `events`."""

    __slots__ = (
        'answered',
        'attempts',
        'changes',
        'clock',
        'dead',
        'deferred',
        'delayed',
        'deliveries',
        'dying',
        'end',
        'epoch',
        'events',
        'expired',
        'free',
        'generation',
        'leaves',
        'limited',
        'lock_number',
        'locks',
        'lost',
        'named',
        'owed',
        'pending',
        'reasons',
        'reservations',
        'soonest',
        'told',
        'waiting',
    )

    def __init__(self, start: int = 0) -> None:
        self.epoch = self.lock_number = self.clock = self.generation = 0
        self.changes = 0  # grows whenever anything becomes otherwise
        self.lost = self.expired = 0  # see `KeptTotals`
        self.answered: dict[tuple[int, ev.Ack], BitMap64] = {}  # by lock number and kind, oldest first
        self.reservations: list[Reservation] = []
        self.events: list[ev.Event] = []
        self._begin(start)

    def _begin(self, end: int) -> None:
        self.end = end
        self.free, self.owed = BitMap64(), BitMap64()
        self.waiting, self.named, self.delayed, self.limited = BitMap64(), Waiting(), Waiting(), Waiting()
        self.locks = Locks()
        self.soonest = NEVER  # no deadline is before this; it may be too early
        self.pending: dict[tuple[str, ev.Ack], BitMap64] = {}
        self.dying, self.dead = BitMap64(), BitMap64()
        self.reasons: dict[str, BitMap64] = {}  # of dying and dead ones
        self.deferred: dict[int, int] = {}  # said for the current delivery of acquired and pending ones
        self.deliveries, self.attempts, self.leaves = Counter(), Counter(), Counter()
        self.told = Told()
        for reservation in self.reservations:
            reservation.offsets.clear()
        self.generation += 1

    def record(self, event: ev.Event) -> None:
        """Let it happen, and remember it for the journal."""
        self.changes += 1
        self.events.append(event)
        self._APPLY[type(event)](self, event)

    def apply(self, event: ev.Event) -> None:
        """Let it happen, as the journal says that it has."""
        self.changes += 1
        self._APPLY[type(event)](self, event)

    def come_due(self, now: int) -> None:
        """What waits until `now` or earlier becomes available."""
        if now < self.soonest:
            return
        for times in (self.named, self.delayed):
            first = times.first()
            if first is not None and first <= now:
                due = times.pop_due(now)
                self.waiting -= due
                self.free |= due
                self.changes += 1

    def waited_too_long(self, now: int) -> BitMap64:
        """Take out those that have waited as long as they may. They are in no place then: an event must follow."""
        first = self.limited.first()
        if first is None or first > now:
            return BitMap64()
        offsets = self.limited.pop_due(now)
        self.waiting -= offsets
        self.changes += 1
        return offsets

    def next_deadline(self) -> int | None:
        """The earliest instant at which something falls due or a lock runs out; None if nothing will."""
        firsts = (self.named.first(), self.delayed.first(), self.limited.first(), self.locks.first_deadline())
        first = min((first for first in firsts if first is not None), default=None)
        self.soonest = NEVER if first is None else first
        return first

    # -- where offsets are ---------------------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """How many are available, reserved ones included."""
        return len(self.free) + sum(len(reservation.offsets) for reservation in self.reservations)

    @property
    def in_flight(self) -> int:
        """How many are acquired, pending or dying."""
        count = len(self.owed) - len(self.free) - len(self.waiting)
        for reservation in self.reservations:
            count -= len(reservation.offsets)
        return count

    def next_due(self) -> int | None:
        """When the first of those that wait comes or, having waited too long, dies; None if none waits."""
        firsts = (self.named.first(), self.delayed.first(), self.limited.first())
        return min((first for first in firsts if first is not None), default=None)

    @property
    def moving_from(self) -> int | None:
        """The smallest offset that waits, is in flight or dead; None if none is."""
        sets = (self.waiting, self.dying, self.dead, *self.locks.held.values(), *self.pending.values())
        return min((offsets.min() for offsets in sets if offsets), default=None)

    def all_free(self) -> BitMap64:
        """The available ones, reserved ones included."""
        result = self.free.copy()
        for reservation in self.reservations:
            result |= reservation.offsets
        return result

    def acquired(self) -> BitMap64:
        """All that are locked."""
        result = BitMap64()
        for held in self.locks.held.values():
            result |= held
        return result

    # -- moving offsets ------------------------------------------------------------------------------------------------

    def _from_flight(self, offsets: BitMap64) -> None:
        """Out of locks and open transactions."""
        if self.pending:
            for key, pending in list(self.pending.items()):
                part = pending & offsets
                offsets = offsets - part
                pending -= part
                if not pending:
                    del self.pending[key]
        self.locks.release(offsets)

    def _from_queue(self, offsets: BitMap64) -> None:
        """Out of the available and the waiting ones."""
        self.free -= offsets
        for reservation in self.reservations:
            reservation.offsets -= offsets
        if self.waiting.isdisjoint(offsets):
            return
        self.waiting -= offsets
        if self.waiting:
            for times in (self.named, self.delayed, self.limited):
                times.remove(offsets)
        else:
            self.named, self.delayed, self.limited = Waiting(), Waiting(), Waiting()

    def _wait(self, offsets: BitMap64, due: Dues | None, until: ev.Until) -> None:
        if due is None:
            self.free |= offsets
        else:
            self.waiting |= offsets
            self.soonest = min(self.soonest, due if isinstance(due, int) else min(due))
            self.times(until).put(offsets, due)

    def times(self, until: ev.Until) -> Waiting:
        """The times of those whose wait ends so."""
        return self.delayed if until == ev.Until.DELAY else self.named if until == ev.Until.NAMED else self.limited

    def _lock(self, number: int, member: str, until: int, offsets: BitMap64, since: int) -> None:
        self.soonest = min(self.soonest, until)
        self.locks.add(number, member, until, offsets, since)

    def _undefer(self, offsets: BitMap64) -> None:
        deferred = self.deferred
        if not deferred:
            return
        if len(offsets) < len(deferred):
            for offset in offsets:
                deferred.pop(offset, None)
        else:
            for offset in [offset for offset in deferred if offset in offsets]:
                del deferred[offset]

    def _forget_counts(self, offsets: BitMap64) -> None:
        for counter in (self.deliveries, self.attempts, self.leaves):
            if counter.planes:
                counter.clear(offsets)
        if self.told.words or self.told.causes:
            self.told.forget(offsets)
        if self.deferred:
            self._undefer(offsets)

    def _bury(self, offsets: BitMap64, reason: str, dying: bool, at: int, member: str) -> None:
        self.told.burials.put(offsets, at or self.clock, member)
        self._reason(offsets, reason, dying)

    def _reason(self, offsets: BitMap64, reason: str, dying: bool) -> None:
        having = self.reasons.setdefault(reason, BitMap64())
        having |= offsets
        if dying:
            self.dying |= offsets
        else:
            self.owed -= offsets
            self.dead |= offsets

    def _unbury(self, offsets: BitMap64) -> None:
        self.dead -= offsets
        self.dying -= offsets
        self.told.burials.remove(offsets)
        for reason, having in list(self.reasons.items()):
            having -= offsets
            if not having:
                del self.reasons[reason]

    def _as_new(self, offsets: BitMap64) -> None:
        self.owed |= offsets
        self.free |= offsets

    # -- events --------------------------------------------------------------------------------------------------------

    def _taken(self, event: ev.Taken) -> None:
        self.clock = event.now
        self.come_due(event.now)
        offsets, end = event.offsets, self.end
        if event.end > end:
            self.end = event.end
            self.owed |= within(offsets, end, event.end)
            if event.later is not None:
                later, due = event.later
                self.owed |= later
                self._wait(later, due, ev.Until.NAMED)
        if offsets:
            self.free -= offsets
            self.lock_number = event.lock
            self.deliveries.add(offsets)
            self._lock(event.lock, event.member, event.until, offsets, event.now)

    def _settled(self, event: ev.Settled) -> None:
        offsets = event.offsets
        self._from_flight(offsets)
        self.owed -= offsets
        self._forget_counts(offsets)

    def _skipped(self, event: ev.Skipped) -> None:
        self._from_queue(event.offsets)
        self.owed -= event.offsets
        self._forget_counts(event.offsets)

    def _failed(self, event: ev.Failed) -> None:
        self._from_flight(event.offsets)
        self._undefer(event.offsets)
        self.attempts.add(event.offsets)
        self.told.failed(event.offsets, event.cause)
        self._wait(event.offsets, event.due, event.until)

    def _died(self, event: ev.Died) -> None:
        self._from_flight(event.offsets)
        self._undefer(event.offsets)
        if event.failed:
            self.attempts.add(event.offsets)
        self.told.forget(event.offsets)
        self._bury(event.offsets, event.reason, event.dying, event.now, event.member)

    def _said(self, event: ev.Said) -> None:
        self.told.said(event.offsets, event.words)

    def _answered(self, event: ev.Answered) -> None:
        known = self.answered.setdefault((event.lock, event.kind), BitMap64())
        known |= event.offsets
        while len(self.answered) > ANSWERED:
            del self.answered[next(iter(self.answered))]

    def _given_up(self, event: ev.GivenUp) -> None:
        self.clock = event.now
        self.waited_too_long(event.now)  # these are in the event
        self._from_queue(event.offsets)
        self._bury(event.offsets, event.reason, event.dying, event.now, '')

    def _returned(self, event: ev.Returned) -> None:
        self._from_flight(event.offsets)
        self._undefer(event.offsets)
        if event.why is ev.Return.LEFT:
            self.leaves.add(event.offsets)
        self.free |= event.offsets

    def _renewed(self, event: ev.Renewed) -> None:
        self.soonest = min(self.soonest, event.until)
        self.locks.renew(event.offsets, event.until)

    def _deferred(self, event: ev.Deferred) -> None:
        self.deferred.update(dict.fromkeys(event.offsets, event.at))

    def _pended(self, event: ev.Pended) -> None:
        self.locks.release(event.offsets)
        pending = self.pending.setdefault((event.member, event.ack), BitMap64())
        pending |= event.offsets

    def _dead_letters_written(self, event: ev.DeadLettersWritten) -> None:
        self.dying -= event.offsets
        self.owed -= event.offsets
        self.dead |= event.offsets

    def _redriven(self, event: ev.Redriven) -> None:
        self._unbury(event.offsets)
        self._forget_counts(event.offsets)
        self.owed |= event.offsets
        self._wait(event.offsets, event.due, ev.Until.NAMED)

    def _discarded(self, event: ev.Discarded) -> None:
        self._unbury(event.offsets)
        self._forget_counts(event.offsets)

    def _dead_expired(self, event: ev.DeadExpired) -> None:
        self.expired += len(event.offsets)
        self._unbury(event.offsets)
        self._forget_counts(event.offsets)

    def _moved(self, event: ev.Moved) -> None:
        self.clock = event.now
        self._from_queue(event.offsets)
        self._wait(event.offsets, event.due, ev.Until.NAMED)

    def _replayed(self, event: ev.Replayed) -> None:
        self._as_new(event.offsets)

    def _sought(self, event: ev.Sought) -> None:
        self.epoch = event.epoch
        self._begin(event.target)

    def _log_started(self, event: ev.LogStarted) -> None:
        owed = below(self.owed, event.offset)
        self.lost += len(owed) + max(0, event.offset - self.end)
        self._forget(owed, below(self.dead, event.offset))
        self.end = max(self.end, event.offset)

    def _cut(self, event: ev.Cut) -> None:
        bound = event.log_end
        self._forget(above(self.owed, bound), above(self.dead, bound))
        self.end = min(self.end, bound)
        self.generation += 1

    def _forget(self, owed: BitMap64, dead: BitMap64) -> None:
        flying = owed - self.all_free() - self.waiting - self.dying
        self._from_flight(flying)
        self._from_queue(owed - flying)
        self._unbury(owed | dead)
        self._forget_counts(owed | dead)
        self.owed -= owed

    def _restarted(self, event: ev.Restarted) -> None:
        self.locks.extend_all(event.until)
        self.lock_number += LOCKS_LOST

    def _clock_stepped(self, event: ev.ClockStepped) -> None:
        self.locks.shift(event.by)
        self.delayed.shift(event.by)
        self.limited.shift(event.by)
        self.next_deadline()

    # -- events of a snapshot ------------------------------------------------------------------------------------------

    def _began(self, event: ev.Began) -> None:
        self._begin(event.end)
        self.epoch, self.lock_number, self.clock = event.epoch, event.locks, event.clock
        self.lost = self.expired = 0
        self.answered.clear()

    def _kept(self, event: ev.Kept) -> None:
        if event.place == 'available':
            self._as_new(event.offsets)
        else:
            if event.place == 'dying':
                self.owed |= event.offsets
            self._reason(event.offsets, event.reason, event.place == 'dying')

    def _kept_waiting(self, event: ev.KeptWaiting) -> None:
        self.owed |= event.offsets
        self._wait(event.offsets, event.due, event.until)

    def _kept_lock(self, event: ev.KeptLock) -> None:
        self.owed |= event.offsets
        self._lock(event.lock, event.member, event.until, event.offsets, event.since)

    def _kept_deaths(self, event: ev.KeptDeaths) -> None:
        self.told.burials.put(event.offsets, event.at, event.member)

    def _kept_cause(self, event: ev.KeptCause) -> None:
        self.told.caused(event.offsets, event.cause)

    def _kept_totals(self, event: ev.KeptTotals) -> None:
        self.lost, self.expired = event

    def _kept_pending(self, event: ev.KeptPending) -> None:
        self.owed |= event.offsets
        pending = self.pending.setdefault((event.member, event.ack), BitMap64())
        pending |= event.offsets

    def _kept_count(self, event: ev.KeptCount) -> None:
        counter: Counter = getattr(self, event.counter)
        counter.restore(event.bit, event.offsets)

    _APPLY: ClassVar[dict[type, Callable[[ShareState, Any], None]]] = {
        ev.Taken: _taken,
        ev.Settled: _settled,
        ev.Skipped: _skipped,
        ev.Failed: _failed,
        ev.Died: _died,
        ev.Said: _said,
        ev.Answered: _answered,
        ev.GivenUp: _given_up,
        ev.Returned: _returned,
        ev.Renewed: _renewed,
        ev.Deferred: _deferred,
        ev.Pended: _pended,
        ev.DeadLettersWritten: _dead_letters_written,
        ev.Redriven: _redriven,
        ev.Discarded: _discarded,
        ev.DeadExpired: _dead_expired,
        ev.Moved: _moved,
        ev.Replayed: _replayed,
        ev.Sought: _sought,
        ev.LogStarted: _log_started,
        ev.Cut: _cut,
        ev.Restarted: _restarted,
        ev.ClockStepped: _clock_stepped,
        ev.Began: _began,
        ev.Kept: _kept,
        ev.KeptWaiting: _kept_waiting,
        ev.KeptLock: _kept_lock,
        ev.KeptDeaths: _kept_deaths,
        ev.KeptCause: _kept_cause,
        ev.KeptTotals: _kept_totals,
        ev.KeptPending: _kept_pending,
        ev.KeptCount: _kept_count,
    }
