"""Sets of offsets as 64-bit Roaring bitmaps, and the few ways of cutting them that the share partition needs.

Strategy: nothing here walks over offsets one by one. Ranges come from two shifted differences, the n-th offset from a
select, a piece from an intersection with a span. Ranges are inclusive, `(first, last)`, as in Kafka's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyroaring import BitMap64

Range = tuple[int, int]
Offsets = BitMap64 | range | Iterable[int]

HIGHEST = (1 << 63) - 1  # offsets are int64 in the protocol; nothing above this is one


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
    result = span(0, bound - 1)
    result &= offsets
    return result


def within(offsets: BitMap64, first: int, last: int) -> BitMap64:
    """Those in `first..last`."""
    result = span(first, last)
    result &= offsets
    return result


def lowest(offsets: BitMap64, count: int) -> BitMap64:
    """The `count` (at least 1) smallest ones, or all if there are fewer."""
    if len(offsets) <= count:
        return offsets.copy()
    return within(offsets, offsets.min(), offsets[count - 1])


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
        yield from pieces(below(offsets, middle), max_bytes)
        yield from pieces(within(offsets, middle, HIGHEST), max_bytes)
    elif offsets:
        yield offsets.copy()
