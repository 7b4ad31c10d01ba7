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
    """What is to become of a record: one of the acknowledgement types, and for a release the time in ms, or None."""

    type: int
    release_at: int | None = None


class Unsettled:
    """The records of one partition that are held by one share session."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.decided: dict[int, Decision] = {}
        self.gaps: list[tuple[int, int]] = []

    def decide(self, offset: int, decision: Decision) -> bool:
        """Note a decision, which replaces an earlier one that was not sent yet; False if the record is not held."""
        if offset in self.open:
            self.open.discard(offset)
        elif offset not in self.decided:
            return False
        self.decided[offset] = decision
        return True

    def take(self) -> list[Acknowledgement]:
        """All that is to be told, as ranges in order; it counts as told."""
        ranges = [(first, last, Decision(GAP)) for first, last in self.gaps]
        ranges += [(offset, offset, decision) for offset, decision in self.decided.items()]
        self.gaps.clear()
        self.decided.clear()
        return joined(sorted(ranges))

    def put_back(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """Those could not be told: they are still to be."""
        for first, last, types, release_at in acknowledgements:
            if types[0] == GAP:
                self.gaps.append((first, last))
                continue
            for offset in range(first, last + 1):
                self.decided.setdefault(offset, Decision(types[0], release_at))


def joined(ranges: Sequence[tuple[int, int, Decision]]) -> list[Acknowledgement]:
    """Sorted ranges as acknowledgements, neighbours with the same decision as one."""
    acks: list[Acknowledgement] = []
    before: tuple[int, int, Decision] | None = None
    for first, last, decision in ranges:
        if before is not None and before[1] + 1 == first and before[2] == decision:
            before = before[0], last, decision
            acks.pop()
        else:
            before = first, last, decision
        acks.append((before[0], last, bytes([decision.type]), decision.release_at))
    return acks


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
