"""Sending of a batch only the records that were taken, where these are few.

Records that were published together need not be delivered together: those that are for later, or were released until a
time, mostly come one by one. To send the whole batch for each costs its bytes over and over, here and at the client,
which must read them all.

Strategy: where the records of a batch begin is remembered for the batches that were needed last (4 bytes a record), so
that each batch is walked through once while its records come one after the other.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from acklog.broker.journal_format import ShareKey
from acklog.errors import CorruptBatch
from acklog.wire.excerpt import excerpt, starts
from acklog.wire.record_batch import COMPRESSION_MASK, Span

BatchKey = tuple[bytes, int, int]  # topic id, partition, base offset

SMALL = 512  # bytes; a batch up to that is sent whole
PART = 4  # an excerpt is made when at most every so many-th record is wanted
REMEMBERED = 2_000_000  # records


class Excerpts:
    """Makes excerpts, and remembers where records begin."""

    __slots__ = ('_count', '_places')

    def __init__(self) -> None:
        self._places: dict[BatchKey, array[int]] = {}  # the one that was needed last is at the end
        self._count = 0

    def of(self, key: ShareKey, span: Span, data: memoryview, wanted: Sequence[tuple[int, int]]) -> bytes | None:
        """The records `wanted` (ranges of offsets within the batch, in order); None where the whole batch should be
        sent."""
        first, last, position, size, attributes = span
        count = last - first + 1
        if attributes & COMPRESSION_MASK or PART * sum(b - a + 1 for a, b in wanted) > count:
            return None
        batch = (key.topic, key.partition, first)
        places = self._places.pop(batch, None)
        if places is None:
            try:
                places = starts(data[position : position + size], count)
            except CorruptBatch:
                return None
            self._count += count
        self._places[batch] = places
        while self._count > REMEMBERED and len(self._places) > 1:
            self._count -= len(self._places.pop(next(iter(self._places)))) - 1
        return excerpt(data, span, places, [each for a, b in wanted for each in range(a - first, b - first + 1)])
