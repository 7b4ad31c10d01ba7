"""What a member holds of one partition: the records handed out, and what is to be said about them.

No I/O and no clock. `open` are offsets that the subscriber has not decided on; `decided` what it has said and the
server has not been told; gaps are offsets that were acquired but have no record (control batches, compacted ones):
they are told apart as ranges, since they may be many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from acklog.wire.acknowledgements import GAP, Acknowledgement


class Decision(NamedTuple):
    """What is to become of a record: one of the acknowledgement types, for a release the time in ms, and what acklog
    understands besides: a delay in ms, and words.

    `taken`: number of the fetch that brought it. What one fetch brought has one lock, which runs out for all of it."""

    type: int
    release_at: int | None
    taken: int
    after: int | None = None
    words: str | None = None


class Told(NamedTuple):
    """An acknowledgement, and the fetch that its records came with."""

    ack: Acknowledgement
    taken: int


class Unsettled:
    """The records of one partition that are held by one share session."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}  # offset -> number of the fetch
        self.decided: dict[int, Decision] = {}
        self.gaps: list[tuple[int, int, int]] = []  # first, last, number of the fetch
        self._last = Decision(GAP, None, 0)  # most are alike: one object does for them

    def decide(
        self,
        offset: int,
        type_: int,
        release_at: int | None = None,
        after: int | None = None,
        words: str | None = None,
    ) -> bool:
        """Note a decision, which replaces an earlier one that was not sent yet; False if the record is not held."""
        taken = self.open.pop(offset, None)
        if taken is None:
            earlier = self.decided.get(offset)
            if earlier is None:
                return False
            taken = earlier.taken
        decision = type_, release_at, taken, after, words
        if self._last != decision:
            self._last = Decision._make(decision)
        self.decided[offset] = self._last
        return True

    def ranges(self) -> list[tuple[int, int]]:
        """What is open, in order."""
        found: list[tuple[int, int]] = []
        first = last = -2
        for offset in sorted(self.open):
            if offset != last + 1:
                if last >= 0:
                    found.append((first, last))
                first = offset
            last = offset
        if last >= 0:
            found.append((first, last))
        return found

    def by_fetch(self) -> dict[int, list[int]]:
        """What is open, in order, by the number of the fetch that brought it."""
        found: dict[int, list[int]] = {}
        for offset, taken in sorted(self.open.items()):
            found.setdefault(taken, []).append(offset)
        return found

    def take(self) -> list[Told]:
        """All that is to be told, as ranges in order; it counts as told."""
        ranges = [(first, last, Decision(GAP, None, taken)) for first, last, taken in self.gaps]
        ranges += [(offset, offset, decision) for offset, decision in self.decided.items()]
        self.gaps.clear()
        self.decided.clear()
        return joined(sorted(ranges))

    def put_back(self, told: Iterable[Told]) -> None:
        """Those could not be told: they are still to be."""
        for batch, taken in told:
            first, last, types, release_at = batch[:4]
            if types[0] == GAP:
                self.gaps.append((first, last, taken))
                continue
            after, words = (batch[4], batch[5]) if len(batch) == 6 else (None, None)
            decision = Decision(types[0], release_at, taken, after, words)
            for offset in range(first, last + 1):
                self.decided.setdefault(offset, decision)


def joined(ranges: Sequence[tuple[int, int, Decision]]) -> list[Told]:
    """Sorted ranges as acknowledgements, neighbours with the same decision as one."""
    joint: list[tuple[int, int, Decision]] = []
    for first, last, decision in ranges:
        if joint and joint[-1][1] + 1 == first and joint[-1][2] == decision:
            joint[-1] = (joint[-1][0], last, decision)
        else:
            joint.append((first, last, decision))
    return [Told(_acknowledgement(*each), each[2].taken) for each in joint]


def _acknowledgement(first: int, last: int, decision: Decision) -> Acknowledgement:
    types = bytes([decision.type])
    if decision.after is None and decision.words is None:
        return first, last, types, decision.release_at
    return first, last, types, decision.release_at, decision.after, decision.words


def without(ranges: Iterable[tuple[int, int]], offsets: Sequence[int]) -> list[tuple[int, int]]:
    """What is left of the ranges without these offsets; both in order."""
    left = []
    position = 0
    for first, last in ranges:
        begin = first
        while position < len(offsets) and offsets[position] <= last:
            offset = offsets[position]
            position += 1
            if offset < begin:
                continue
            if offset > begin:
                left.append((begin, offset - 1))
            begin = offset + 1
        if begin <= last:
            left.append((begin, last))
    return left
