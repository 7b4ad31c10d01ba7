"""Sending of a batch only the records that were taken, where these are few.

Records that were published together need not be delivered together: those that are for later, or were released until a
time, mostly come one by one. To send the whole batch for each costs its bytes over and over, here and at the client,
which must read them all.

Strategy: batches of which excerpts were needed last are kept, and where each of their records begins (4 bytes a
record), so that a batch is read and walked through once while its records come one after the other. They are few
megabytes, of all partitions together; what is in a log never changes, so nothing has to be thrown out but for room.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from collections.abc import Sequence

from acklog.broker.journal.format import ShareKey
from acklog.errors import CorruptBatch
from acklog.wire.excerpt import excerpt, starts
from acklog.wire.record_batch import COMPRESSION_MASK, Span

SMALL = 512  # bytes; a batch up to that is sent whole
PART = 4  # an excerpt is made when at most every so many-th record is wanted
ROOM = 32 << 20  # bytes that are kept
LARGE = ROOM // 16  # bytes; of such a batch only the places are kept


class Kept:
    """A batch, and where its records begin. `span` is within `data`; no `data`: it was too large to be kept."""

    __slots__ = ('data', 'places', 'size', 'span')

    def __init__(self, span: Span, data: memoryview) -> None:
        """Raises CorruptBatch."""
        batch = bytes(data[span.position : span.position + span.size])
        keep = span.size < LARGE
        self.span = Span(span.first, span.last, 0, span.size, span.attributes)
        self.places: array[int] = starts(batch, span.last - span.first + 1)
        self.data = memoryview(batch) if keep else None
        self.size = len(self.places) * self.places.itemsize + (span.size if keep else 0)


class Excerpts:
    """Makes excerpts, and keeps what they are made of."""

    __slots__ = ('_bases', '_kept', '_size')

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, int, int], Kept] = {}  # by base offset too; the one needed last is at the end
        self._bases: dict[tuple[bytes, int], list[int]] = {}  # of each partition, in order
        self._size = 0

    def find(self, key: ShareKey, offset: int) -> tuple[Span, memoryview] | None:
        """The batch that holds `offset`, if it is kept."""
        bases = self._bases.get(key[1:])
        if bases is None:
            return None
        at = bisect_right(bases, offset) - 1
        if at < 0:
            return None
        kept = self._kept[key.topic, key.partition, bases[at]]
        return None if kept.data is None or kept.span.last < offset else (kept.span, kept.data)

    def of(self, key: ShareKey, span: Span, data: memoryview, wanted: Sequence[tuple[int, int]]) -> bytes | None:
        """The records `wanted` (ranges of offsets within the batch, in order); None where the whole batch should be
        sent."""
        first = span.first
        if span.attributes & COMPRESSION_MASK or PART * sum(b - a + 1 for a, b in wanted) > span.last - first + 1:
            return None
        name = (key.topic, key.partition, first)
        kept = self._kept.pop(name, None)
        if kept is None:
            try:
                kept = Kept(span, data)
            except CorruptBatch:
                return None
            self._size += kept.size
            insort(self._bases.setdefault(name[:2], []), first)
        self._kept[name] = kept
        while self._size > ROOM and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return excerpt(data, span, kept.places, [each for a, b in wanted for each in range(a - first, b - first + 1)])

    def _drop(self, name: tuple[bytes, int, int]) -> None:
        self._size -= self._kept.pop(name).size
        bases = self._bases[name[:2]]
        del bases[bisect_right(bases, name[2]) - 1]
        if not bases:
            del self._bases[name[:2]]
