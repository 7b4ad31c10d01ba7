"""What becomes of records whose delivery failed: another try, at once or later, or death (rules 5, 6).

Strategy: offsets are split into classes by their number of attempts, since the limit and the backoff depend on nothing
else; so a batch of a thousand that failed together is one event.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.backoff import Backoff
from acklog.core.events import Until
from acklog.core.state import NEVER, ShareState
from acklog.core.waiting import Dues

REJECTED = 'rejected'
USED_UP = 'attempts used up'
TOO_LONG = 'waited too long'
GIVEN_UP = 'given up by an operator'

Times: TypeAlias = 'int | Mapping[int, int] | None'  # one instant for all, one for each offset, or none said; ms


@dataclass(frozen=True, slots=True)
class ShareConfig:
    """What a group is told about how its records are delivered.

    `lock_ms`: how long an acquire holds (`share.record.lock.duration.ms`); `attempts_limit`: failed deliveries after
    which a record goes dead, None: never (`share.delivery.count.limit`); `max_in_flight`: records acquired, pending
    or dying beyond which nothing is acquired (`share.partition.max.record.locks`); `dead_letter_topic`: whether a
    record's dead letter is written before it is dead; `waiting_max_ms`: how long a failed record may wait for its next
    delivery before it dies, None: as long as it is told (`acklog.waiting.max.ms`).
    """

    lock_ms: int = 30_000
    attempts_limit: int | None = 5
    max_in_flight: int = 100_000
    backoff: Backoff = field(default_factory=Backoff)
    dead_letter_topic: bool = False
    waiting_max_ms: int | None = None


def fail(
    state: ShareState, config: ShareConfig, seed: int, offsets: BitMap64, cause: ev.Cause, now: int, at: Times
) -> None:
    """A delivery of `offsets`, acquired or pending ones, failed. `at`: when they may come back, where that was said."""
    for attempts, group in state.attempts.classes(offsets):
        if config.attempts_limit is not None and attempts + 1 >= config.attempts_limit:
            die(state, config, group, USED_UP, now, failed=True)
            continue
        if at is None and state.deferred:
            group = _fail_deferred(state, config, group, cause, now)
        if not group:
            continue
        if at is None:
            _fail(state, config, group, cause, now, _dues(config.backoff, seed, group, attempts + 1, now), Until.DELAY)
        elif isinstance(at, int):
            _fail(state, config, group, cause, now, at, Until.NAMED)
        else:
            _fail(state, config, group, cause, now, array('q', [at[offset] for offset in group]), Until.NAMED)


def die(state: ShareState, config: ShareConfig, offsets: BitMap64, reason: str, now: int, *, failed: bool) -> None:
    """Acquired or pending ones die, each at the member that has it. `failed`: it counts as an attempt."""
    if not offsets:
        return
    if len(offsets) == 1 and (lock := state.locks.of(offsets.min())) is not None:
        parts = [(lock.member, offsets)]
    else:
        held = [(member, having & offsets) for member, having in state.locks.held.items()]
        pending = [(member, having & offsets) for (member, _), having in state.pending.items()]
        parts = [*held, *pending]
    for member, part in parts:
        if part:
            state.record(ev.Died(part, reason, config.dead_letter_topic, failed, now, member))


def _fail(
    state: ShareState,
    config: ShareConfig,
    offsets: BitMap64,
    cause: ev.Cause,
    now: int,
    due: Dues | None,
    until: Until,
) -> None:
    """They wait until `due`, or as long as they may; what is due comes at once."""
    latest = now + NEVER if config.waiting_max_ms is None else now + config.waiting_max_ms
    if due is None or isinstance(due, int):
        if due is None or due <= now:
            state.record(ev.Failed(offsets, cause))
        elif due > latest:
            state.record(ev.Failed(offsets, cause, latest, Until.LIMIT))
        else:
            state.record(ev.Failed(offsets, cause, due, until))
        return
    if min(due) > now and max(due) <= latest:
        state.record(ev.Failed(offsets, cause, due, until))
        return
    pairs = list(zip(offsets, due, strict=True))
    for bounds, when in (((-NEVER, now), None), ((latest, NEVER), latest)):
        chosen = BitMap64([offset for offset, at in pairs if bounds[0] < at <= bounds[1]])
        if chosen:
            state.record(ev.Failed(chosen, cause, when, Until.DELAY if when is None else Until.LIMIT))
    rest = [(offset, at) for offset, at in pairs if now < at <= latest]
    if rest:
        chosen = BitMap64([offset for offset, _ in rest])
        state.record(ev.Failed(chosen, cause, array('q', [at for _, at in rest]), until))


def _fail_deferred(state: ShareState, config: ShareConfig, offsets: BitMap64, cause: ev.Cause, now: int) -> BitMap64:
    """Those whose holder deferred them come back at the time that it said. Returns the others."""
    said: dict[int, list[int]] = {}
    deferred = state.deferred
    few = offsets if len(offsets) < len(deferred) else deferred
    for offset in few:
        if offset in deferred and offset in offsets:
            said.setdefault(deferred[offset], []).append(offset)
    rest = offsets
    for at, chosen in said.items():
        group = BitMap64(chosen)
        rest = rest - group
        _fail(state, config, group, cause, now, at, Until.NAMED)
    return rest


def _dues(backoff: Backoff, seed: int, offsets: BitMap64, attempts: int, now: int) -> Dues | None:
    if not backoff.jitter or len(offsets) == 1:
        delay = backoff.delay(attempts, offsets.min(), seed)
        return now + delay if delay > 0 else None
    if not backoff.delay(attempts):
        return None
    return array('q', [now + backoff.delay(attempts, offset, seed) for offset in offsets])
