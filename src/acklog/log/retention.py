"""What retention demands of a log's segments, whatever they are kept in: when to roll, and where the log should begin.

Strategy: retention by time and size lets a row of oldest segments go. Those of them that hold records still owed are
*overdue*: kept, up to a limit of bytes of all of them together and of time beyond retention (rule 8 of docs/design.md).

The age of a segment is that of its newest record, but a producer's clock ahead of ours keeps nothing longer than the
time of the last append does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

from acklog.log.seam import LogConfig, Overdue


class Aged(Protocol):
    """A segment: `base`, first offset; `size`, bytes; times in ms, -1: none."""

    base: int
    size: int
    max_timestamp: int
    created: int
    appended: int


S = TypeVar('S', bound=Aged)


def newest(segment: Aged) -> int:
    """The time from which on retention counts."""
    if segment.appended < 0:
        return segment.max_timestamp
    return min(segment.max_timestamp, segment.appended) if segment.max_timestamp >= 0 else segment.appended


def roll_due(active: Aged, config: LogConfig, now: int) -> bool:
    """Whether the segment that is appended to is so old that it should be closed, or go altogether."""
    if not active.size:
        return False
    if active.created >= 0 and now - active.created >= config.segment_ms:
        return True
    return 0 <= config.retention_ms < now - newest(active)


def start_due(
    segments: Sequence[Aged],
    start: int,
    config: LogConfig,
    now: int,
    keep_from: int | None,
    moving_from: int | None = None,
) -> int:
    """Offset below which all should go: the base of a segment, or `start`. The last segment never goes, and none that
    holds offsets at or above `keep_from`, but for those past the limits of what is owed; of these, the limit of time
    spares the ones that hold offsets at or above `moving_from`."""
    due = _due(segments, start, config, now)
    kept = sum(segment.size for segment, following in due if keep_from is not None and following.base > keep_from)
    for segment, following in due:
        if keep_from is not None and following.base > keep_from:
            still = moving_from is None or following.base <= moving_from
            too_late = still and 0 <= config.owed_retention_ms < _late(segment, config, now)
            too_much = 0 <= config.owed_retention_bytes < kept
            if not (too_late or too_much):
                break
            kept -= segment.size
        start = max(start, following.base)
    return start


def overdue(segments: Sequence[Aged], start: int, config: LogConfig, now: int, keep_from: int | None) -> Overdue:
    """What `start_due` keeps, or would let go, beyond retention."""
    if keep_from is None:
        return Overdue()
    kept = [segment for segment, following in _due(segments, start, config, now) if following.base > keep_from]
    if not kept:
        return Overdue()
    return Overdue(sum(segment.size for segment in kept), max(0, _late(kept[0], config, now)))


def _due(segments: Sequence[S], start: int, config: LogConfig, now: int) -> list[tuple[S, S]]:
    """The oldest segments that retention lets go if nobody is owed anything, each with the one behind it."""
    excess = sum(each.size for each in segments) - config.retention_bytes if config.retention_bytes >= 0 else 0
    due = []
    for segment, following in pairwise(segments):
        too_old = 0 <= config.retention_ms < now - newest(segment)
        too_much = excess >= segment.size > 0
        if not (too_old or too_much or following.base <= start):
            break
        excess -= segment.size
        due.append((segment, following))
    return due


def _late(segment: Aged, config: LogConfig, now: int) -> int:
    """For how long (ms) a segment has been past its time; past its room alone it is not late."""
    return now - newest(segment) - config.retention_ms if config.retention_ms >= 0 else -1
