"""From when on each record of a partition that is published for later may be delivered, for a million of them.

Strategy: two typed arrays, offsets and instants, in order of offsets and in blocks of some thousands: 16 bytes a
record, found by bisection, appended to as records are published. An instant that has come needs no remembering, since
the record is then one like any other; so blocks whose instants have all come go as a whole, and with each new block an
old one is rid of those that have.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from pyroaring import BitMap64

BLOCK = 4096  # records


class Block:
    """Offsets in order, and their instants. `latest`: no instant is later."""

    __slots__ = ('dues', 'latest', 'offsets')

    def __init__(self, offsets: array[int], dues: array[int]) -> None:
        self.offsets, self.dues = offsets, dues
        self.latest = max(dues)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Block:
        """Of (offset, instant) pairs, in order; at least one."""
        offsets, dues = zip(*pairs, strict=True)
        return cls(array('Q', offsets), array('q', dues))

    def part(self, start: int, stop: int) -> Block:
        """Those from place `start` up to, not including, `stop`."""
        if start == 0 and stop >= len(self.offsets):
            return self
        return Block(self.offsets[start:stop], self.dues[start:stop])

    def coming(self, now: int) -> Iterator[tuple[int, int]]:
        """(offset, instant) of those that are still to come."""
        return ((offset, due) for offset, due in zip(self.offsets, self.dues, strict=True) if due > now)


class Instants:
    """Instants (ms) by offset; some may have come already."""

    __slots__ = ('_blocks', '_turn')

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._turn = 0  # the block that is rid of what has come next

    def __len__(self) -> int:
        """How many are remembered, some of them perhaps without need."""
        return sum(len(block.offsets) for block in self._blocks)

    def __bool__(self) -> bool:
        return bool(self._blocks)

    # -- what is asked -------------------------------------------------------------------------------------------------

    def coming(self, first: int, last: int, now: int) -> Iterator[tuple[int, int]]:
        """(offset, instant) of those in `first..last` that are still to come, in order."""
        at = bisect_right(self._blocks, first, key=lambda block: block.offsets[0])
        for block in self._blocks[max(at - 1, 0) :]:
            offsets, dues = block.offsets, block.dues
            if offsets[0] > last:
                return
            if block.latest <= now:
                continue
            for index in range(bisect_left(offsets, first), len(offsets)):
                if offsets[index] > last:
                    return
                if dues[index] > now:
                    yield offsets[index], dues[index]

    def first(self, now: int) -> int | None:
        """The lowest offset whose instant is still to come; None if there is none."""
        for block in self._blocks:
            if block.latest > now:
                for offset, _ in block.coming(now):
                    return offset
        return None

    # -- what is published, and passes ---------------------------------------------------------------------------------

    def add(self, offsets: Sequence[int], dues: Sequence[int], now: int) -> None:
        """These, behind all others."""
        blocks = self._blocks
        if blocks and len(blocks[-1].offsets) + len(offsets) <= BLOCK:
            last = blocks[-1]
            last.offsets.extend(offsets)
            last.dues.extend(dues)
            last.latest = max(last.latest, max(dues))
            return
        for at in range(0, len(offsets), BLOCK):
            blocks.append(Block(array('Q', offsets[at : at + BLOCK]), array('q', dues[at : at + BLOCK])))
            self._tidy(now)

    def _tidy(self, now: int) -> None:
        """Drop what has come of one block; small neighbours become one."""
        blocks = self._blocks
        if len(blocks) < 2:
            return
        self._turn = at = self._turn % (len(blocks) - 1)
        if min(blocks[at].dues) <= now:
            rest = list(blocks[at].coming(now))
            if not rest:
                del blocks[at]
                return
            blocks[at] = Block.of(rest)
        if at and len(blocks[at - 1].offsets) + len(blocks[at].offsets) <= BLOCK:
            before, block = blocks[at - 1], blocks.pop(at)
            blocks[at - 1] = Block(before.offsets + block.offsets, before.dues + block.dues)
        else:
            self._turn += 1

    def expire(self, now: int) -> None:
        """Whole blocks whose instants have come go."""
        if any(block.latest <= now for block in self._blocks):
            self._blocks = [block for block in self._blocks if block.latest > now]

    def begin_at(self, start: int) -> None:
        """The log begins at `start`."""
        blocks = self._blocks
        while blocks and blocks[0].offsets[-1] < start:
            del blocks[0]
        if blocks and blocks[0].offsets[0] < start:
            gone = bisect_left(blocks[0].offsets, start)
            del blocks[0].offsets[:gone], blocks[0].dues[:gone]

    def end_at(self, end: int) -> None:
        """Nothing is at `end` or behind it: the log has no such records."""
        blocks = self._blocks
        while blocks and blocks[-1].offsets[-1] >= end:
            keep = bisect_left(blocks[-1].offsets, end)
            if keep:
                del blocks[-1].offsets[keep:], blocks[-1].dues[keep:]
            else:
                blocks.pop()

    # -- what is said of them ------------------------------------------------------------------------------------------

    def _among(self, offsets: BitMap64) -> list[Block]:
        """The blocks that may hold some of `offsets`."""
        if not offsets:
            return []
        first, last = offsets.min(), offsets.max()
        return [block for block in self._blocks if block.offsets[-1] >= first and block.offsets[0] <= last]

    def remove(self, offsets: BitMap64) -> None:
        """Those of `offsets` that are here are for no instant any more."""
        for block in self._among(offsets):
            if offsets.isdisjoint(BitMap64(block.offsets)):
                continue
            rest = [each for each in zip(block.offsets, block.dues, strict=True) if each[0] not in offsets]
            if rest:
                kept = Block.of(rest)
                block.offsets, block.dues = kept.offsets, kept.dues
            else:
                self._blocks.remove(block)

    def move(self, offsets: BitMap64, due: int) -> None:
        """Those of `offsets` that are here are for another instant."""
        for block in self._among(offsets):
            for offset in offsets & BitMap64(block.offsets):
                block.dues[bisect_left(block.offsets, offset)] = due
                block.latest = max(block.latest, due)

    def replace(self, first: int, stop: int, offsets: BitMap64, dues: array[int]) -> None:
        """From `first` up to, not including, `stop` it is these, and no others."""
        behind = [block for block in self._blocks if block.offsets[-1] >= stop]
        before = [block for block in self._blocks if block.offsets[0] < first]
        behind = [block.part(bisect_left(block.offsets, stop), BLOCK) for block in behind]
        before = [block.part(0, bisect_left(block.offsets, first)) for block in before]
        found = [Block(array('Q', offsets.to_array()), dues[:])] if offsets else []
        self._blocks = [*before, *found, *behind]
