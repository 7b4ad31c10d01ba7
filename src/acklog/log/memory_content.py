"""What a log in memory holds, and what of it would be on disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

from acklog.log.producers import Producers
from acklog.log.scan import stored
from acklog.wire.record_batch import CONTROL


class MemoryBatch(NamedTuple):
    first: int
    last: int
    max_timestamp: int
    data: bytes


class MemorySegment:
    """Batches that retention drops together; see `retention.Aged`."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.size = 0
        self.max_timestamp = self.created = self.appended = -1
        self.batches: list[MemoryBatch] = []


class Content:
    """What would be on disk."""

    def __init__(self) -> None:
        self.segments = [MemorySegment(0)]
        self.start = self.end = self.synced = 0
        self.producers = Producers()
        self.synced_producers = Producers()

    def sync(self) -> None:
        """All of it is on disk."""
        self.synced = self.end
        self.synced_producers = deepcopy(self.producers)

    def cut(self) -> None:
        """Forget what was not synced."""
        self.end = max(self.synced, self.start)
        while len(self.segments) > 1 and self.segments[-1].base >= self.end:
            self.segments.pop()
        self.producers = deepcopy(self.synced_producers)
        for segment in self.segments:
            segment.batches = [each for each in segment.batches if each.first < self.end]
            segment.size = sum(len(each.data) for each in segment.batches)
            segment.max_timestamp = max((each.max_timestamp for each in segment.batches), default=-1)


def at(segments: Sequence[MemorySegment], offset: int) -> int:
    """The place of the segment that holds `offset`, or would."""
    return max(bisect_right(segments, offset, key=_base) - 1, 0)


def _base(segment: MemorySegment) -> int:
    return segment.base


def learn(producers: Producers, batch: MemoryBatch, now: int, append_time: int) -> None:
    """The producer of a batch that has been stored, if it is an idempotent one, has it."""
    found = stored(batch.data, 0, 0)
    assert found is not None
    if found.producer_id >= 0 and not found.attributes & CONTROL:
        producers.appended(
            found.producer_id, found.producer_epoch, found.base_sequence, batch.first, batch.last, now, append_time
        )
