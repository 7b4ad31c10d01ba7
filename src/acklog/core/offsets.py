"""Sets of offsets as 64-bit Roaring bitmaps, and the few ways of cutting them that the share partition needs.

Strategy: nothing here walks over many offsets one by one. Ranges come from two shifted differences, the n-th offset
from a select, a piece from an intersection with a span. A piece may be far longer than what is in it (one old record,
and a billion offsets later the next): then no bitmap of its range is made. Ranges are inclusive, `(first, last)`, as
in Kafka's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyroaring import BitMap64

Range = tuple[int, int]
Offsets = BitMap64 | range | Iterable[int]

WIDE = 1 << 21  # up to this length a bitmap of a range costs next to nothing: one container for each 65,536 offsets
ALIGNED = (1 << 20) - 1  # bits that are zero in an offset at which large sets are cut
FEW = 4096  # so many offsets are picked one by one rather than that a whole set is copied


def span(first: int, last: int) -> BitMap64:
    """All of `first..last`; none if `last < first`."""
    result = BitMap64()
    if last >= first:
        result.add_range(first, last + 1)
    return result


def ranges(offsets: BitMap64) -> list[Range]:
    """The maximal runs in `offsets`, in order."""
    if not offsets:
        return []
    first, last = offsets.min(), offsets.max()
    if last - first + 1 == len(offsets):
        return [(first, last)]
    firsts = offsets - offsets.shift(1)
    lasts = offsets - offsets.shift(-1)
    return list(zip(firsts.to_array(), lasts.to_array(), strict=True))


def below(offsets: BitMap64, bound: int) -> BitMap64:
    """Those smaller than `bound`."""
    return within(offsets, 0, bound - 1)


def above(offsets: BitMap64, bound: int) -> BitMap64:
    """Those from `bound` on."""
    return within(offsets, bound, offsets.max()) if offsets else BitMap64()


def within(offsets: BitMap64, first: int, last: int) -> BitMap64:
    """Those in `first..last`, however long that is."""
    if last - first < WIDE:
        result = span(first, last)
        result &= offsets
        return result
    count = offsets.range_cardinality(first, last + 1)
    if count <= FEW:
        skipped = offsets.range_cardinality(0, first)
        return offsets[skipped : skipped + count] if count else BitMap64()
    first, last = max(first, offsets.min()), min(last, offsets.max())
    if last - first < WIDE:
        return within(offsets, first, last)
    result = offsets.copy()
    result.remove_range(0, first)
    result.remove_range(last + 1, result.max() + 1)
    return result


def lowest(offsets: BitMap64, count: int) -> BitMap64:
    """The `count` (at least 1) smallest ones, or all if there are fewer."""
    if len(offsets) <= count:
        return offsets.copy()
    first, last = offsets.min(), offsets[count - 1]
    return span(first, last) if last - first + 1 == count else within(offsets, first, last)


def chosen(offsets: Offsets, among: BitMap64) -> BitMap64:
    """Those of `among` that somebody named: as a bitmap, as a range (may be far longer than `among`), or one by one."""
    if not among:
        return BitMap64()
    if isinstance(offsets, BitMap64):
        return offsets & among
    if isinstance(offsets, range) and offsets.step == 1:
        return within(among, max(offsets.start, among.min()), min(offsets.stop - 1, among.max()))
    return BitMap64([offset for offset in offsets if offset >= 0 and offset in among])


def pieces(offsets: BitMap64, max_bytes: int) -> Iterator[BitMap64]:
    """The same offsets in parts, in order, of about `max_bytes` or less when serialized."""
    if len(offsets) > 1 and len(offsets.serialize()) > max_bytes:
        middle = offsets[len(offsets) // 2]
        if middle & ~ALIGNED > offsets.min():
            middle &= ~ALIGNED  # like sets are cut alike
        yield from pieces(below(offsets, middle), max_bytes)
        yield from pieces(above(offsets, middle), max_bytes)
    elif offsets:
        yield offsets.copy()
