"""When each waiting offset falls due, for a million of them with times all different.

Strategy: three homes, each cheap for what it holds.

- *Groups*: many offsets with one time (a batch released with a fixed backoff) are one bitmap under that time.
- *Recent*: a few offsets with a time of their own go into a small heap of pairs.
- *Runs*: when that heap is full, or a whole batch comes with a time for each, it becomes a run: two typed arrays (16
  bytes an offset) sorted by time, eaten from the front. A heap of the runs by their first time says which comes next.
  A run is short enough that making one holds nobody up.

All of these are by a scale of their own, which `shift` moves against the caller's; so that costs nothing.

Where many runs have something that falls due next, what does within some ms is gathered into one run more, so that not
all of them are visited at every ms. Nothing else is ever merged or cascaded, so no call pays for many earlier ones.
What leaves before its time (rare: an operator, the log's start) is filtered out of the places that hold it, so the
first time is always exact.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import compress
from typing import TypeAlias

from pyroaring import BitMap64

from acklog.core.timeline import Timeline

GROUP = 24  # from so many offsets on a bitmap is smaller than pairs
RECENT = 4096  # pairs in the heap before they become a run
RUNS = 8  # so many runs with something due, and what is due within GATHER_MS is gathered
GATHER_MS = 16

Dues: TypeAlias = 'int | array[int]'  # one time for all, or one for each, in order of offsets; ms


class Run:
    """Offsets sorted by the time they fall due; those before `position` have left. `among`: all that may be here."""

    __slots__ = ('among', 'dues', 'offsets', 'position')

    def __init__(self, dues: array[int], offsets: array[int]) -> None:
        self.dues, self.offsets, self.position = dues, offsets, 0
        self.among = BitMap64(offsets)

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]]) -> Run:
        """From (due, offset) pairs, sorted."""
        dues, offsets = zip(*pairs, strict=True)
        return cls(array('q', dues), array('Q', offsets))

    def pop_due(self, now: int) -> tuple[array[int], array[int]]:
        """Take out what falls due up to `now`: when, and the offsets."""
        begin = self.position
        self.position = stop = bisect_right(self.dues, now, begin)
        return self.dues[begin:stop], self.offsets[begin:stop]

    def remove(self, offsets: BitMap64) -> bool:
        """Take out `offsets`; whether any was here, perhaps."""
        if offsets.isdisjoint(self.among):
            return False
        rest = self.offsets[self.position :]
        keep = [offset not in offsets for offset in rest]
        self.dues = array('q', compress(self.dues[self.position :], keep))
        self.offsets, self.position = array('Q', compress(rest, keep)), 0
        self.among = BitMap64(self.offsets)
        return True

    def due_of(self, offset: int) -> int | None:
        """When it falls due; None if it is not here."""
        if offset not in self.among:
            return None
        try:
            return self.dues[self.offsets.index(offset, self.position)]
        except ValueError:
            return None

    def head(self) -> int | None:
        """Its earliest time; None when it is used up."""
        return self.dues[self.position] if self.position < len(self.dues) else None


class DueTimes:
    """Offsets, each with the time it falls due. An offset is in it once at most."""

    __slots__ = ('_ahead', '_groups', '_recent', '_runs', '_serial')

    def __init__(self) -> None:
        self._ahead = 0  # ms by which the caller's times are ahead of those kept here
        self._groups: Timeline[BitMap64] = Timeline()
        self._recent: list[tuple[int, int]] = []
        self._runs: list[tuple[int, int, Run]] = []
        self._serial = 0

    def put(self, offsets: BitMap64, due: Dues) -> None:
        """Add `offsets`, none of which is here, to fall due at one time or at one time each."""
        if self._ahead:
            due = due - self._ahead if isinstance(due, int) else _shifted(due, -self._ahead)
        if not isinstance(due, int):
            flat = offsets.to_array()
            for at in range(0, len(flat), RECENT):
                pairs = zip(due[at : at + RECENT], flat[at : at + RECENT], strict=True)
                self._put_each(sorted(pairs))
            return
        group = self._groups.at.get(due)
        if group is not None:
            group |= offsets
        elif len(offsets) >= GROUP:
            self._groups.set(due, offsets.copy())
        else:
            self._put_each([(due, offset) for offset in offsets])

    def _put_each(self, pairs: list[tuple[int, int]]) -> None:
        if len(pairs) >= RECENT // 8:
            self._add_run(Run.of(pairs))
            return
        for pair in pairs:
            heappush(self._recent, pair)
        if len(self._recent) >= RECENT:
            self._recent.sort()
            self._add_run(Run.of(self._recent))
            self._recent = []

    def _add_run(self, run: Run) -> None:
        head = run.head()
        if head is not None:
            self._serial += 1
            heappush(self._runs, (head, self._serial, run))

    def first(self) -> int | None:
        """The earliest time."""
        first = self._groups.first()
        if self._recent and (first is None or self._recent[0][0] < first):
            first = self._recent[0][0]
        if self._runs and (first is None or self._runs[0][0] < first):
            first = self._runs[0][0]
        return None if first is None else first + self._ahead

    def pop_due(self, now: int) -> BitMap64:
        """Take out what falls due up to `now`."""
        now -= self._ahead
        due = BitMap64()
        for group in self._groups.pop_due(now):
            due |= group
        recent = self._recent
        while recent and recent[0][0] <= now:
            due.add(heappop(recent)[1])
        runs = self._runs
        if runs and runs[0][0] <= now:
            popped: array[int] = array('Q')
            visited = 0
            while runs and runs[0][0] <= now:
                popped += self._pop_from_first(now)[1]
                visited += 1
            due |= BitMap64(popped)
            if visited > RUNS:
                self._gather(now + GATHER_MS)
        return due

    def _pop_from_first(self, now: int) -> tuple[array[int], array[int]]:
        """Take out of the run that comes next what falls due up to `now`: when, and the offsets."""
        runs = self._runs
        run = runs[0][2]
        popped = run.pop_due(now)
        head = run.head()
        if head is None:
            heappop(runs)
        else:
            self._serial += 1
            heapreplace(runs, (head, self._serial, run))
        return popped

    def _gather(self, until: int) -> None:
        """Make one run of what falls due up to then."""
        dues, offsets = array('q'), array('Q')
        while self._runs and self._runs[0][0] <= until and len(dues) < RECENT:
            some_dues, some_offsets = self._pop_from_first(until)
            dues += some_dues
            offsets += some_offsets
        if dues:
            self._add_run(Run.of(sorted(zip(dues, offsets, strict=True))))

    def due_apart(self, now: int) -> BitMap64:
        """What falls due up to `now`, but for what has its time in common with many. It stays."""
        now -= self._ahead
        due = BitMap64([offset for at, offset in self._recent if at <= now])
        for head, _, run in self._runs:
            if head <= now:
                due |= BitMap64(run.offsets[run.position : bisect_right(run.dues, now, run.position)])
        return due

    def remove(self, offsets: BitMap64) -> None:
        """Take out those of `offsets` that are here, before their time."""
        for due, group in list(self._groups.at.items()):
            group -= offsets
            if not group:
                self._groups.drop(due)
        kept = [pair for pair in self._recent if pair[1] not in offsets]
        if len(kept) < len(self._recent):
            heapify(kept)
            self._recent = kept
        if any([run.remove(offsets) for _, _, run in self._runs]):
            runs, self._runs = self._runs, []
            for _, _, run in runs:
                self._add_run(run)

    def due_of(self, offset: int) -> int | None:
        """When one offset falls due; None if it is not here. Looks through everything."""
        for due, group in self._groups.at.items():
            if offset in group:
                return due + self._ahead
        for due, pending in self._recent:
            if pending == offset:
                return due + self._ahead
        for _, _, run in self._runs:
            if (found := run.due_of(offset)) is not None:
                return found + self._ahead
        return None

    def among(self, offsets: BitMap64) -> dict[int, int]:
        """When those of a few offsets fall due that are here. Looks through everything once."""
        found = {offset: due for due, offset in self._recent if offset in offsets}
        for due, group in self._groups.at.items():
            if not group.isdisjoint(offsets):
                found.update(dict.fromkeys(group & offsets, due))
        for _, _, run in self._runs:
            if not offsets.isdisjoint(run.among):
                dues = ((offset, run.due_of(offset)) for offset in offsets & run.among)
                found.update({offset: due for offset, due in dues if due is not None})
        return {offset: due + self._ahead for offset, due in found.items()}

    def items(self) -> Iterator[tuple[Dues, BitMap64]]:
        """Everything, in portions that `put` takes. What it is is settled now, what costs is done while it is read."""
        groups = [(due, group.copy()) for due, group in self._groups.at.items()]
        runs = [(run.dues, run.offsets, run.position) for _, _, run in self._runs]
        return _portions(groups, runs, list(self._recent), self._ahead)

    def shift(self, by: int) -> None:
        """Move every time by so many ms."""
        self._ahead += by

    def __bool__(self) -> bool:
        return bool(self._groups.at or self._recent or self._runs)


def _portions(
    groups: list[tuple[int, BitMap64]],
    runs: list[tuple[array[int], array[int], int]],
    recent: list[tuple[int, int]],
    ahead: int,
) -> Iterator[tuple[Dues, BitMap64]]:
    for due, group in groups:
        yield due + ahead, group
    if recent:
        run = Run.of(sorted(recent))
        runs.append((run.dues, run.offsets, 0))
    for dues, offsets, position in runs:  # arrays of a run are replaced, never changed
        by_offset = sorted(zip(offsets[position:], dues[position:], strict=True))
        offset_column, due_column = zip(*by_offset, strict=True)
        yield _shifted(due_column, ahead), BitMap64(array('Q', offset_column))


def _shifted(dues: Sequence[int], by: int) -> array[int]:
    return array('q', [due + by for due in dues] if by else dues)
