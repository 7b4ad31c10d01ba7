"""What can be read of a share partition: counts, holders, one record, why an acquire gave nothing (rule 9)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pyroaring import BitMap64

from acklog.core.state import ShareState
from acklog.core.told import RELEASED

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


def counts(state: ShareState) -> Counts:
    """How many records are where."""
    pending = sum(len(offsets) for offsets in state.pending.values())
    acquired = sum(len(offsets) for offsets in state.locks.held.values())
    return Counts(state.available, len(state.waiting), acquired, pending, len(state.dying), len(state.dead))


def holders(state: ShareState) -> dict[str, Holder]:
    """Who holds acquired records. Looks at every lock."""
    result: dict[str, Holder] = {}
    for lock in state.locks:
        known = result.get(lock.member)
        until = lock.until if known is None else min(lock.until, known.until)
        since = lock.since if known is None else min(lock.since, known.since)
        result[lock.member] = Holder(len(state.locks.held[lock.member]), until, since)
    return result


def record(state: ShareState, offset: int) -> Record:
    """One record. Looks through the waiting times when it is a waiting one."""
    if offset >= state.end or offset < 0:
        return Record('not taken')
    if offset not in state.owed and offset not in state.dead:
        return Record('done')
    attempts = state.attempts.of(offset)
    base = Record(
        'available',
        state.deliveries.of(offset),
        attempts,
        state.leaves.of(offset),
        deferred=state.deferred.get(offset),
        reason=state.told.last(offset) or (RELEASED if attempts else None),
        words=state.told.words.get(offset),
    )
    if offset in state.waiting:
        return base._replace(state='waiting', due=due_of(state, offset))
    if offset in state.dead or offset in state.dying:
        death = state.told.burials.of(offset)
        died, member = (None, '') if death is None else death
        place: RecordState = 'dead' if offset in state.dead else 'dying'
        return base._replace(state=place, reason=_reason(state, offset), died=died, member=member)
    lock = state.locks.of(offset)
    if lock is not None:
        return base._replace(
            state='acquired', member=lock.member, lock=lock.number, lock_until=lock.until, since=lock.since
        )
    for (member, _), offsets in state.pending.items():
        if offset in offsets:
            return base._replace(state='pending', member=member)
    return base


def _reason(state: ShareState, offset: int) -> str:
    return next(reason for reason, having in state.reasons.items() if offset in having)


def due_of(state: ShareState, offset: int) -> int | None:
    """When a waiting one falls due. Looks through everything that waits."""
    found = (times.due_of(offset) for times in (state.named, state.delayed, state.limited))
    return next((due for due in found if due is not None), None)


def dues(state: ShareState, offsets: BitMap64) -> list[int]:
    """When a few waiting ones fall due, in order. Looks through everything that waits, once."""
    found: dict[int, int] = {}
    for times in (state.named, state.delayed, state.limited):
        found.update(times.among(offsets))
    return [found[offset] for offset in offsets]


def deaths(state: ShareState, offsets: BitMap64) -> list[Dead]:
    """A few dead ones, in order."""
    known = state.told.burials.among(offsets)
    result = []
    for offset in offsets:
        died, member = known.get(offset, (None, ''))
        words, attempts = state.told.words.get(offset), state.attempts.of(offset)
        result.append(Dead(offset, _reason(state, offset), words, died, attempts, member))
    return result


def start(state: ShareState) -> int:
    """The smallest offset that is neither done nor dead, else the end."""
    return state.owed.min() if state.owed else state.end


def why_nothing(state: ShareState, log_end: int, max_in_flight: int) -> str:
    """Why an acquire just gave nothing: 'limit', 'held', 'waiting', 'nothing new', or 'something' if it need not
    have.
    """
    in_flight = state.in_flight
    if in_flight >= max_in_flight:
        return 'limit'
    if state.available or state.end < log_end:
        return 'something'
    if in_flight:
        return 'held'
    return 'waiting' if state.waiting else 'nothing new'
