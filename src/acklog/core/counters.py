"""A small number per offset (deliveries, attempts, leaves) without an object per offset.

Strategy: bit planes. Plane `i` is the set of offsets whose number has bit `i` set, so an offset that is in no plane
counts as zero and costs nothing. Adding one to a set of offsets ripples the carry through the planes as an adder
does; finding all offsets with a certain number is one intersection per plane. Numbers saturate at 32,767, since
Kafka's DeliveryCount is an int16.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyroaring import BitMap64

WIDTH = 15
HIGHEST = (1 << WIDTH) - 1


class Counter:
    """Numbers 0..32,767 by offset."""

    __slots__ = ('planes',)

    def __init__(self) -> None:
        self.planes: list[BitMap64] = []

    def __bool__(self) -> bool:
        """Whether any offset may have a number above zero."""
        return bool(self.planes)

    def of(self, offset: int) -> int:
        """The number of one offset."""
        return sum(1 << bit for bit, plane in enumerate(self.planes) if offset in plane)

    def add(self, offsets: BitMap64) -> None:
        """One more for each of `offsets`; those at 32,767 stay there."""
        planes, carry = self.planes, offsets
        for plane in planes:
            if plane.isdisjoint(carry):
                plane |= carry
                return
            if carry <= plane:  # mostly all have the same number, and making a set is what costs
                plane -= carry
                continue
            rest = plane & carry
            plane ^= carry
            carry = rest
        if len(planes) < WIDTH:
            planes.append(carry.copy())
        else:  # these went round to zero
            for plane in planes:
                plane |= carry

    def clear(self, offsets: BitMap64) -> None:
        """Back to zero."""
        for plane in self.planes:
            plane -= offsets
        while self.planes and not self.planes[-1]:
            self.planes.pop()

    def classes(self, offsets: BitMap64) -> list[tuple[int, BitMap64]]:
        """`offsets` by their number: (number, those that have it), no empty ones. The sets may be `offsets` itself."""
        result = [(0, offsets)]
        for bit, plane in enumerate(self.planes):
            if plane.isdisjoint(offsets):
                continue
            if offsets <= plane:
                result = [(number | 1 << bit, group) for number, group in result]
                continue
            split = []
            for number, group in result:
                ones = group & plane
                if len(ones) == len(group):
                    split.append((number | 1 << bit, group))
                elif ones:
                    split.append((number, group - ones))
                    split.append((number | 1 << bit, ones))
                else:
                    split.append((number, group))
            result = split
        return result

    def exactly(self, number: int, offsets: BitMap64) -> BitMap64:
        """Those of `offsets` whose number is `number`."""
        if number >> len(self.planes):
            return BitMap64()
        result = offsets.copy()
        for bit, plane in enumerate(self.planes):
            if number >> bit & 1:
                result &= plane
            else:
                result -= plane
        return result

    def items(self) -> Iterator[tuple[int, BitMap64]]:
        """(bit, plane) of planes that hold anything: what a snapshot keeps."""
        return ((bit, plane) for bit, plane in enumerate(self.planes) if plane)

    def restore(self, bit: int, offsets: BitMap64) -> None:
        """Set bit `bit` (0..14) of the numbers of `offsets`: the inverse of `items`."""
        while len(self.planes) <= bit:
            self.planes.append(BitMap64())
        self.planes[bit] |= offsets
