"""What becomes of records whose delivery failed: another try, at once or later, or death (rules 5, 6).

Strategy: offsets are split into classes by their number of attempts, since the limit and the backoff depend on nothing
else; so a batch of a thousand that failed together is one event.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TypeAlias

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.apply import record
from acklog.core.backoff import Backoff
from acklog.core.due_times import Dues
from acklog.core.kinds import Cause, Until, When
from acklog.core.share_config import ShareConfig
from acklog.core.state import NEVER, ShareState

REJECTED = 'rejected'
USED_UP = 'attempts used up'
TOO_LONG = 'waited too long'
GIVEN_UP = 'given up by an operator'

Times: TypeAlias = 'When | Mapping[int, When] | None'  # one for all, one for each offset, or none said


def fail(state: ShareState, config: ShareConfig, offsets: BitMap64, cause: Cause, now: int, at: Times = None) -> None:
    """A delivery of `offsets`, acquired or pending ones, failed. `at`: when they may come back, where that was said."""
    for attempts, group in state.history.attempts.classes(offsets):
        if config.attempts_limit is not None and attempts + 1 >= config.attempts_limit:
            die(state, config, group, USED_UP, now, failed=True)
            continue
        if at is None and state.history.deferred:
            group = _fail_deferred(state, config, group, cause, now)
        if not group:
            continue
        if at is None:
            due = _dues(config.backoff, group, attempts + 1, now + config.cut_ms)
            _fail(state, config, group, cause, now, due, Until.DELAY)
        elif isinstance(at, int):
            _fail(state, config, group, cause, now, *instant_of(at, now + config.cut_ms if at else now))
        else:
            _fail_each(state, config, group, cause, now, at)


def instant_of(when: When, since: int) -> tuple[int, Until]:
    """The instant, and what it is; a delay counts from `since`."""
    return (when, Until.NAMED) if when > 0 else (since - when, Until.DELAY)


def _fail_each(
    state: ShareState, config: ShareConfig, offsets: BitMap64, cause: Cause, now: int, at: Mapping[int, When]
) -> None:
    times = [at[offset] for offset in offsets]
    if min(times) >= 0:
        _fail(state, config, offsets, cause, now, array('q', times), Until.NAMED)
        return
    delayed = BitMap64([offset for offset, when in zip(offsets, times, strict=True) if when < 0])
    since = now + config.cut_ms
    delays = array('q', [since - when for when in times if when < 0])
    _fail(state, config, delayed, cause, now, delays, Until.DELAY)
    if len(delayed) < len(offsets):
        instants = array('q', [when for when in times if when >= 0])
        _fail(state, config, offsets - delayed, cause, now, instants, Until.NAMED)


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
            record(state, ev.Died(part, reason, config.dead_letter_topic, failed, now, member))


def _fail(
    state: ShareState,
    config: ShareConfig,
    offsets: BitMap64,
    cause: Cause,
    now: int,
    due: Dues | None,
    until: Until,
) -> None:
    """They wait until `due`, or as long as they may; what is due comes at once."""
    latest = now + NEVER if config.waiting_max_ms is None else now + config.waiting_max_ms
    if due is None or isinstance(due, int):
        if due is None or due <= now:
            record(state, ev.Failed(offsets, cause))
        elif due > latest:
            record(state, ev.Failed(offsets, cause, latest, Until.LIMIT))
        else:
            record(state, ev.Failed(offsets, cause, due, until))
        return
    if min(due) > now and max(due) <= latest:
        record(state, ev.Failed(offsets, cause, due, until))
        return
    pairs = list(zip(offsets, due, strict=True))
    for bounds, when in (((-NEVER, now), None), ((latest, NEVER), latest)):
        chosen = BitMap64([offset for offset, at in pairs if bounds[0] < at <= bounds[1]])
        if chosen:
            record(state, ev.Failed(chosen, cause, when, Until.DELAY if when is None else Until.LIMIT))
    rest = [(offset, at) for offset, at in pairs if now < at <= latest]
    if rest:
        chosen = BitMap64([offset for offset, _ in rest])
        record(state, ev.Failed(chosen, cause, array('q', [at for _, at in rest]), until))


def _fail_deferred(state: ShareState, config: ShareConfig, offsets: BitMap64, cause: Cause, now: int) -> BitMap64:
    """Those whose holder deferred them come back at the time that it said. Returns the others."""
    said: dict[tuple[int, Until], list[int]] = {}
    deferred = state.history.deferred
    few = offsets if len(offsets) < len(deferred) else deferred
    for offset in few:
        if offset in deferred and offset in offsets:
            said.setdefault(deferred[offset], []).append(offset)
    rest = offsets
    for (at, until), chosen in said.items():
        group = BitMap64(chosen)
        rest = rest - group
        _fail(state, config, group, cause, now, at, until)
    return rest


def _dues(backoff: Backoff, offsets: BitMap64, attempts: int, since: int) -> Dues | None:
    if not backoff.jitter or len(offsets) == 1:
        delay = backoff.delay(attempts, offsets.min())
        return since + delay if delay > 0 else None
    if not backoff.delay(attempts):
        return None
    return array('q', [since + backoff.delay(attempts, offset) for offset in offsets])
