"""The offsets of a share partition that wait, and what ends the wait of each.

Strategy: a set says which wait; three `DueTimes` say until when, apart because they are treated apart: an instant that
somebody *named* stays what it is, one computed from a *delay* moves along when the clock is stepped (rule 11), and one
at the *limit*, which moves along too, is no return but the end: by then it will have waited as long as it may.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyroaring import BitMap64

from acklog.core.due_times import Dues, DueTimes
from acklog.core.kinds import Until


class Waiting:
    """`offsets` wait; each is in one of the three."""

    __slots__ = ('delayed', 'limited', 'named', 'offsets')

    def __init__(self) -> None:
        self.offsets = BitMap64()
        self.named, self.delayed, self.limited = DueTimes(), DueTimes(), DueTimes()

    def _times(self) -> tuple[DueTimes, DueTimes, DueTimes]:
        return self.named, self.delayed, self.limited

    def until(self, until: Until) -> DueTimes:
        """The times of those whose wait ends so."""
        return self.delayed if until == Until.DELAY else self.named if until == Until.NAMED else self.limited

    def put(self, offsets: BitMap64, due: Dues, until: Until) -> None:
        """These wait, none of which does so yet."""
        self.offsets |= offsets
        self.until(until).put(offsets, due)

    def remove(self, offsets: BitMap64) -> None:
        """Those of `offsets` that wait do not any more."""
        if self.offsets.isdisjoint(offsets):
            return
        self.offsets -= offsets
        if self.offsets:
            for times in self._times():
                times.remove(offsets)
        else:
            self.named, self.delayed, self.limited = DueTimes(), DueTimes(), DueTimes()

    def pop_due(self, now: int) -> BitMap64:
        """Take out those that come back by `now`."""
        result = BitMap64()
        for times in (self.named, self.delayed):
            first = times.first()
            if first is not None and first <= now:
                result |= times.pop_due(now)
        self.offsets -= result
        return result

    def pop_too_long(self, now: int) -> BitMap64:
        """Take out those that have waited as long as they may."""
        first = self.limited.first()
        if first is None or first > now:
            return BitMap64()
        offsets = self.limited.pop_due(now)
        self.offsets -= offsets
        return offsets

    def first(self) -> int | None:
        """When the first of them comes or, having waited too long, dies; None if none waits."""
        firsts = (self.named.first(), self.delayed.first(), self.limited.first())
        return min((first for first in firsts if first is not None), default=None)

    def due_apart(self, now: int) -> BitMap64:
        """Those that come back by `now`, but for those that have their instant in common with many."""
        return self.named.due_apart(now) | self.delayed.due_apart(now)

    def due_of(self, offset: int) -> int | None:
        """When one falls due. Looks through everything."""
        found = (times.due_of(offset) for times in self._times())
        return next((due for due in found if due is not None), None)

    def dues(self, offsets: BitMap64) -> list[int]:
        """When a few of them fall due, in order. Looks through everything, once."""
        found: dict[int, int] = {}
        for times in self._times():
            found.update(times.among(offsets))
        return [found[offset] for offset in offsets]

    def clock_stepped(self, by: int) -> None:
        """What was computed from a delay moves along."""
        self.delayed.shift(by)
        self.limited.shift(by)

    def items(self) -> list[tuple[Until, Iterator[tuple[Dues, BitMap64]]]]:
        """Everything, in portions that `put` takes. What it is is settled now, what costs is done while it is read."""
        return [(until, self.until(until).items()) for until in Until]
