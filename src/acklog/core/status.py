"""What can be read of a share partition: counts, holders, one record, why an acquire gave nothing (rule 9)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from acklog.core.state import ShareState

RecordState = Literal['available', 'waiting', 'acquired', 'pending', 'dying', 'dead', 'done', 'not taken']


class Record(NamedTuple):
    """One record as its group sees it. Times in ms; None where the state has no such thing."""

    state: RecordState
    deliveries: int = 0
    attempts: int = 0
    leaves: int = 0
    member: str | None = None  # of an acquired or pending one
    lock: int | None = None
    lock_until: int | None = None
    due: int | None = None  # of a waiting one
    deferred: int | None = None  # of an acquired or pending one: if this delivery fails
    reason: str | None = None  # of a dying or dead one


class Counts(NamedTuple):
    """How many records are where."""

    available: int
    waiting: int
    acquired: int
    pending: int
    dying: int
    dead: int


class Holder(NamedTuple):
    """What a member holds: so many records, the first of which comes back at `until` (ms)."""

    held: int
    until: int


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
        result[lock.member] = Holder(len(state.locks.held[lock.member]), until)
    return result


def record(state: ShareState, offset: int) -> Record:
    """One record. Looks through the waiting times when it is a waiting one."""
    if offset >= state.end or offset < 0:
        return Record('not taken')
    if offset not in state.owed and offset not in state.dead:
        return Record('done')
    base = Record(
        'available',
        state.deliveries.of(offset),
        state.attempts.of(offset),
        state.leaves.of(offset),
        deferred=state.deferred.get(offset),
    )
    if offset in state.waiting:
        due = state.named.due_of(offset)
        return base._replace(state='waiting', due=state.delayed.due_of(offset) if due is None else due)
    if offset in state.dead or offset in state.dying:
        reason = next(reason for reason, having in state.reasons.items() if offset in having)
        return base._replace(state='dead' if offset in state.dead else 'dying', reason=reason)
    lock = state.locks.of(offset)
    if lock is not None:
        return base._replace(state='acquired', member=lock.member, lock=lock.number, lock_until=lock.until)
    for (member, _), offsets in state.pending.items():
        if offset in offsets:
            return base._replace(state='pending', member=member)
    return base


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
