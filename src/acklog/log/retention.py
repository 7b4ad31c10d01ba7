"""What retention demands of a log's segments, whatever they are kept in: when to roll, and where the log should begin.

The age of a segment is that of its newest record, but a producer's clock ahead of ours keeps nothing longer than the
time of the last append does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from acklog.log.seam import LogConfig


class Aged(Protocol):
    """A segment: `base`, first offset; `size`, bytes; times in ms, -1: none."""

    base: int
    size: int
    max_timestamp: int
    created: int
    appended: int


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


def start_due(segments: Sequence[Aged], start: int, config: LogConfig, now: int, keep_from: int | None) -> int:
    """Offset below which all should go: the base of a segment, or `start`. The last segment never goes, and none that
    holds offsets at or above `keep_from`."""
    excess = sum(each.size for each in segments) - config.retention_bytes if config.retention_bytes >= 0 else 0
    for segment, following in pairwise(segments):
        if keep_from is not None and following.base > keep_from:
            break
        too_old = 0 <= config.retention_ms < now - newest(segment)
        too_much = excess >= segment.size > 0
        if not (too_old or too_much or following.base <= start):
            break
        excess -= segment.size
        start = max(start, following.base)
    return start
