"""What becomes of records whose delivery failed: another try, at once or later, or death (rules 5, 6).

Strategy: offsets are split into classes by their number of attempts, since the limit and the backoff depend on nothing
else; so a batch of a thousand that failed together is one event.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.backoff import Backoff
from acklog.core.state import ShareState
from acklog.core.waiting import Dues

REJECTED = 'rejected'
USED_UP = 'attempts used up'


@dataclass(frozen=True, slots=True)
class ShareConfig:
    """What a group is told about how its records are delivered.

    `lock_ms`: how long an acquire holds (`share.record.lock.duration.ms`); `attempts_limit`: failed deliveries after
    which a record goes dead, None: never (`share.delivery.count.limit`); `max_in_flight`: records acquired, pending
    or dying beyond which nothing is acquired (`share.partition.max.record.locks`); `dead_letter_topic`: whether a
    record's dead letter is written before it is dead.
    """

    lock_ms: int = 30_000
    attempts_limit: int | None = 5
    max_in_flight: int = 100_000
    backoff: Backoff = field(default_factory=Backoff)
    dead_letter_topic: bool = False


def fail(
    state: ShareState, config: ShareConfig, seed: int, offsets: BitMap64, cause: ev.Cause, now: int, at: int | None
) -> None:
    """A delivery of `offsets`, acquired or pending ones, failed. `at`: when they may come back, where that was said."""
    for attempts, group in state.attempts.classes(offsets):
        if config.attempts_limit is not None and attempts + 1 >= config.attempts_limit:
            if group:
                state.record(ev.Died(group, USED_UP, config.dead_letter_topic, True))
            continue
        if at is None and state.deferred:
            group = _fail_deferred(state, group, cause, now)
        if not group:
            continue
        if at is not None:
            due: Dues | None = at if at > now else None
        else:
            due = _dues(config.backoff, seed, group, attempts + 1, now)
        state.record(ev.Failed(group, cause, due, at is not None and due is not None))


def _fail_deferred(state: ShareState, offsets: BitMap64, cause: ev.Cause, now: int) -> BitMap64:
    """Those whose holder deferred them come back at the time that it said. Returns the others."""
    said: dict[int, list[int]] = {}
    for offset, at in state.deferred.items():
        if offset in offsets:
            said.setdefault(at, []).append(offset)
    rest = offsets
    for at, chosen in said.items():
        group = BitMap64(chosen)
        rest = rest - group
        state.record(ev.Failed(group, cause, at if at > now else None, at > now))
    return rest


def _dues(backoff: Backoff, seed: int, offsets: BitMap64, attempts: int, now: int) -> Dues | None:
    if not backoff.jitter or len(offsets) == 1:
        delay = backoff.delay(attempts, offsets.min(), seed)
        return now + delay if delay > 0 else None
    if not backoff.delay(attempts):
        return None
    return array('q', [now + backoff.delay(attempts, offset, seed) for offset in offsets])
