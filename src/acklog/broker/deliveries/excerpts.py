"""Sending of a batch only the records that were taken, where these are few.

Records that were published together need not be delivered together: those that are for later, or were released until a
time, mostly come one by one. To send the whole batch for each costs its bytes over and over, here and at the client,
which must read them all.

Strategy: batches of which excerpts were needed last are kept, and where each of their records begins (4 bytes a
record), so that a batch is read and walked through once while its records come one after the other. They are few
megabytes, of all partitions together; what is in a log never changes, so nothing has to be thrown out but for room.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Sequence

from acklog.broker.journal.format import ShareKey
from acklog.errors import CorruptBatch
from acklog.wire.excerpt import Divided
from acklog.wire.record_batch import COMPRESSION_MASK, Span

SMALL = 512  # bytes; a batch up to that is sent whole
PART = 4  # an excerpt is made when at most every so many-th record is wanted
ROOM = 64 << 20  # bytes that are kept
LARGE = ROOM // 16  # bytes; of such a batch only the places are kept


def excerpt_size(span: Span, wanted: int) -> int:
    """How many bytes the batch comes to when so many of its records are wanted, about: all where it is sent whole."""
    count = span.last - span.first + 1
    if span.size <= SMALL or span.attributes & COMPRESSION_MASK or PART * wanted > count:
        return span.size
    return span.size * wanted // count


class Kept:
    """A batch and its records. `span` is within `data`; no `data`: it was too large to be kept."""

    __slots__ = ('batch', 'data', 'divided', 'most', 'size', 'span')

    def __init__(self, span: Span, data: memoryview) -> None:
        """Raises CorruptBatch."""
        batch = bytes(data[span.position : span.position + span.size])
        keep = span.size < LARGE
        self.span = Span(span.first, span.last, 0, span.size, span.attributes)
        self.divided = Divided(batch, span.first, span.last)
        self.most = (span.last - span.first + 1) // PART  # records of an excerpt
        self.batch = batch if keep else b''
        self.data = memoryview(batch) if keep else None
        self.size = self.divided.size + (span.size if keep else 0)


class Excerpts:
    """Makes excerpts, and keeps what they are made of."""

    __slots__ = ('_bases', '_kept', '_size')

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, int, int], Kept] = OrderedDict()  # by base offset too; last needed last
        self._bases: dict[tuple[bytes, int], list[int]] = {}  # of each partition, in order
        self._size = 0

    def find(self, key: ShareKey, offset: int) -> tuple[Span, memoryview] | None:
        """The batch that holds `offset`, if it is kept."""
        kept = self._holding(key, offset)
        return None if kept is None or kept.data is None else (kept.span, kept.data)

    def last_of(self, key: ShareKey, offset: int) -> int | None:
        """The last offset of the batch that holds `offset`, if excerpts of it are cheap."""
        kept = self._holding(key, offset)
        return None if kept is None else kept.span.last

    def _holding(self, key: ShareKey, offset: int) -> Kept | None:
        bases = self._bases.get(key[1:])
        if bases is None:
            return None
        at = bisect_right(bases, offset) - 1
        if at < 0:
            return None
        kept = self._kept[key.topic, key.partition, bases[at]]
        return None if kept.span.last < offset else kept

    def of(
        self, key: ShareKey, span: Span, data: memoryview, ranges: Sequence[tuple[int, int, int]], at: int
    ) -> bytes | None:
        """Its records in `ranges` (first, last, deliveries; in order), of which the one at `at` is the first that does
        not end before the batch. None where the whole batch should be sent."""
        name = (key.topic, key.partition, span.first)
        kept = self._kept.get(name)
        if kept is not None:
            self._kept.move_to_end(name)
        else:
            if excerpt_size(span, _number(ranges, at, span.first, span.last)) == span.size:
                return None
            kept = self._keep(name, span, data)
            if kept is None:
                return None
        if kept.data is None:
            return kept.divided.excerpt(data, span.position, ranges, at, kept.most)
        return kept.divided.excerpt(kept.batch, 0, ranges, at, kept.most)  # twice as fast as out of a view

    def get_ready(self, key: ShareKey, span: Span, data: memoryview) -> None:
        """Excerpts of this batch will be needed, if any can be made."""
        name = (key.topic, key.partition, span.first)
        if name not in self._kept and excerpt_size(span, 1) < span.size:
            self._keep(name, span, data)

    def _keep(self, name: tuple[bytes, int, int], span: Span, data: memoryview) -> Kept | None:
        """None where its records cannot be told apart."""
        try:
            kept = Kept(span, data)
        except CorruptBatch:
            return None
        self._size += kept.size
        insort(self._bases.setdefault(name[:2], []), span.first)
        self._kept[name] = kept
        while self._size > ROOM and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return kept

    def _drop(self, name: tuple[bytes, int, int]) -> None:
        self._size -= self._kept.pop(name).size
        bases = self._bases[name[:2]]
        del bases[bisect_right(bases, name[2]) - 1]
        if not bases:
            del self._bases[name[:2]]


def _number(ranges: Sequence[tuple[int, int, int]], at: int, first: int, last: int) -> int:
    """How many offsets of the ranges from the one at `at` on are in first..last."""
    number = 0
    while at < len(ranges) and ranges[at][0] <= last:
        number += min(ranges[at][1], last) - max(ranges[at][0], first) + 1
        at += 1
    return number
