"""What can be read of a share partition: counts, holders, one record, why an acquire gave nothing (rule 9)."""

from __future__ import annotations

from array import array
from typing import Literal, NamedTuple

from pyroaring import BitMap64

from acklog.core.history import RELEASED
from acklog.core.locks import Lock
from acklog.core.offsets import Range, ranges
from acklog.core.state import ShareState

RecordState = Literal['available', 'waiting', 'acquired', 'pending', 'dying', 'dead', 'done', 'not taken']


class Record(NamedTuple):
    """One record as its group sees it. Times in ms; None where the state has no such thing."""

    state: RecordState
    deliveries: int = 0
    attempts: int = 0
    leaves: int = 0
    member: str | None = None  # who has it; of a dying or dead one, who had it last
    lock: int | None = None
    lock_until: int | None = None
    due: int | None = None  # of a waiting one
    deferred: int | None = None  # of an acquired or pending one: if this delivery fails
    reason: str | None = None  # why it died, else why its last delivery failed
    words: str | None = None  # of its subscriber about that
    died: int | None = None
    since: int | None = None  # when its lock was taken


class Dead(NamedTuple):
    """A dead record. `died`: ms; `member`: who had it, '' nobody."""

    offset: int
    reason: str
    words: str | None
    died: int | None
    attempts: int
    member: str


class Totals(NamedTuple):
    """How many records the log lost before the group had settled them, and how many dead ones were kept as long as
    configured.
    """

    lost: int
    expired: int


class Counts(NamedTuple):
    """How many records are where."""

    available: int
    waiting: int
    acquired: int
    pending: int
    dying: int
    dead: int


class Holder(NamedTuple):
    """What a member holds: so many records, the first of which comes back at `until` (ms), the oldest of which it has
    had since `since`."""

    held: int
    until: int
    since: int


class Status:
    """A share partition for whoever only looks; always as it is now."""

    __slots__ = ('_state',)

    def __init__(self, state: ShareState) -> None:
        self._state = state

    # -- all of it -----------------------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The smallest offset that is neither done nor dead, else the end; so it can move back."""
        return self._state.owed.min() if self._state.owed else self._state.end

    @property
    def epoch(self) -> int:
        """Of the state; a seek starts a new one."""
        return self._state.epoch

    @property
    def lock_number(self) -> int:
        """The number of the latest lock."""
        return self._state.lock_number

    @property
    def in_flight(self) -> int:
        """Records acquired, pending or dying: what counts against the limit."""
        return self._state.in_flight

    @property
    def owed(self) -> int:
        """Records below the end that are neither done nor dead."""
        return len(self._state.owed)

    def owed_between(self, first: int, end: int) -> int:
        """How many of these are owed; `end` not included."""
        return int(self._state.owed.range_cardinality(first, end))

    @property
    def moving_from(self) -> int | None:
        """The smallest offset that waits for a time, is in somebody's hands, or dead; None if none is."""
        state = self._state
        sets = (state.waiting.offsets, state.dying, state.dead, *state.locks.held.values(), *state.pending.values())
        return min((offsets.min() for offsets in sets if offsets), default=None)

    @property
    def kept_from(self) -> int:
        """The log is needed from here on: for what is owed and for dead ones, which may be redriven."""
        dead = self._state.dead
        return min(dead.min(), self.start) if dead else self.start

    def counts(self) -> Counts:
        """How many records are where."""
        state = self._state
        pending = sum(len(offsets) for offsets in state.pending.values())
        acquired = sum(len(offsets) for offsets in state.locks.held.values())
        waiting = len(state.waiting.offsets)
        return Counts(state.available, waiting, acquired, pending, len(state.dying), len(state.dead))

    def totals(self) -> Totals:
        """What has gone for good without the group's doing."""
        return Totals(self._state.lost, self._state.expired)

    def why_nothing(self, log_end: int, max_in_flight: int) -> str:
        """Why an acquire just gave nothing: 'limit', 'held', 'waiting', 'nothing new', or 'something' if it need not
        have."""
        state = self._state
        in_flight = state.in_flight
        if in_flight >= max_in_flight:
            return 'limit'
        if state.available or state.end < log_end:
            return 'something'
        if in_flight:
            return 'held'
        return 'waiting' if state.waiting.offsets else 'nothing new'

    # -- one record ----------------------------------------------------------------------------------------------------

    def attempts_of(self, offset: int) -> int:
        """How many deliveries of a record have failed."""
        return self._state.history.attempts.of(offset)

    def record(self, offset: int) -> Record:
        """One record. Looks through the waiting times when it is a waiting one."""
        state, history = self._state, self._state.history
        if offset >= state.end or offset < 0:
            return Record('not taken')
        if offset not in state.owed and offset not in state.dead:
            return Record('done')
        attempts = history.attempts.of(offset)
        base = Record(
            'available',
            history.deliveries.of(offset),
            attempts,
            history.leaves.of(offset),
            deferred=history.deferred.get(offset, (None,))[0],
            reason=history.failure(offset) or (RELEASED if attempts else None),
            words=history.words.get(offset),
        )
        if offset in state.waiting.offsets:
            return base._replace(state='waiting', due=state.waiting.due_of(offset))
        if offset in state.dead or offset in state.dying:
            death = history.burials.of(offset)
            died, member = (None, '') if death is None else death
            place: RecordState = 'dead' if offset in state.dead else 'dying'
            return base._replace(state=place, reason=history.reason(offset), died=died, member=member)
        lock = state.locks.of(offset)
        if lock is not None:
            return base._replace(
                state='acquired', member=lock.member, lock=lock.number, lock_until=lock.until, since=lock.since
            )
        for (member, _), offsets in state.pending.items():
            if offset in offsets:
                return base._replace(state='pending', member=member)
        return base

    # -- who holds what ------------------------------------------------------------------------------------------------

    def holders(self) -> dict[str, Holder]:
        """Who holds acquired records. Looks at every lock."""
        result: dict[str, Holder] = {}
        locks = self._state.locks
        for lock in locks:
            known = result.get(lock.member)
            until = lock.until if known is None else min(lock.until, known.until)
            since = lock.since if known is None else min(lock.since, known.since)
            result[lock.member] = Holder(len(locks.held[lock.member]), until, since)
        return result

    def held_by(self, member: str) -> list[Range]:
        """What a member holds."""
        return ranges(self._state.locks.held.get(member, BitMap64()))

    def lock_of(self, offset: int) -> Lock | None:
        """The lock that holds a record."""
        return self._state.locks.of(offset)

    # -- waiting, dying and dead ones ----------------------------------------------------------------------------------

    def waiting(self) -> BitMap64:
        """Those that wait."""
        return self._state.waiting.offsets.copy()

    @property
    def waits(self) -> bool:
        """Whether any waits."""
        return bool(self._state.waiting.offsets)

    def due_apart(self, now: int) -> array[int]:
        """Offsets that fall due up to `now`, in order, but for those that have their instant in common with many."""
        return self._state.waiting.due_apart(now).to_array()

    def next_due(self) -> int | None:
        """When the first of those that wait comes, or has waited as long as it may (ms)."""
        return self._state.waiting.first()

    def dues(self, offsets: BitMap64) -> list[int]:
        """When a few waiting ones fall due (ms), in order."""
        return self._state.waiting.dues(offsets)

    @property
    def is_burying(self) -> bool:
        """Dead letters of some are still to be written."""
        return bool(self._state.dying)

    def dying(self) -> BitMap64:
        """Those whose dead letter is still to be written."""
        return self._state.dying.copy()

    def dead(self) -> BitMap64:
        """The dead ones."""
        return self._state.dead.copy()

    def deaths(self, offsets: BitMap64) -> list[Dead]:
        """What is known of a few dead ones, in order."""
        history = self._state.history
        known = history.burials.among(offsets)
        result = []
        for offset in offsets:
            died, member = known.get(offset, (None, ''))
            words, attempts = history.words.get(offset), history.attempts.of(offset)
            result.append(Dead(offset, history.reason(offset), words, died, attempts, member))
        return result
