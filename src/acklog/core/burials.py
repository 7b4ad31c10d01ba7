"""When and at whom dead records died, for a million of them.

Strategy: three homes, as for waiting ones. Many that died together are one bitmap with one time and member. A few go
into a dict; when that is full it becomes *columns*: arrays sorted by offset (20 bytes a record), with a bitmap of those
that are still dead, so that leaving costs a set difference and columns are never rewritten. Members are kept once, by
number.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import compress
from typing import NamedTuple

from pyroaring import BitMap64

from acklog.core.due_times import GROUP, RECENT, Dues


class Death(NamedTuple):
    """`at`: ms; `member`: who had it, '' nobody."""

    at: int
    member: str


class Burial:
    """`offsets` that died at `at` at member number `who`, or each at its own: then `keys` are all that were once here,
    in order, and `ats` and `whose` go with them."""

    __slots__ = ('at', 'ats', 'keys', 'offsets', 'who', 'whose')

    def __init__(self, offsets: BitMap64, at: int, who: int) -> None:
        self.offsets, self.at, self.who = offsets, at, who  # at: the earliest
        self.keys, self.ats, self.whose = array('Q'), array('q'), array('I')

    @classmethod
    def columns(cls, keys: array[int], ats: array[int], whose: array[int]) -> Burial:
        """Of `keys`, in order, each with its own time and member."""
        burial = cls(BitMap64(keys), min(ats), 0)
        burial.keys, burial.ats, burial.whose = keys, ats, whose
        return burial

    def copy(self) -> Burial:
        """As it is now; columns are never changed."""
        burial = Burial(self.offsets.copy(), self.at, self.who)
        burial.keys, burial.ats, burial.whose = self.keys, self.ats, self.whose
        return burial

    def of(self, offset: int) -> tuple[int, int]:
        """(time, member number) of one that is here."""
        if not self.keys:
            return self.at, self.who
        place = bisect_left(self.keys, offset)
        return self.ats[place], self.whose[place]

    def present(self) -> array[int]:
        """The times of those that are still here, in order of offsets."""
        if len(self.offsets) == len(self.keys):
            return self.ats
        return array('q', compress(self.ats, [key in self.offsets for key in self.keys]))

    def before(self, bound: int) -> BitMap64:
        """Those that died before `bound`."""
        if self.at >= bound:
            return BitMap64()
        if not self.keys:
            return self.offsets
        return self.offsets & BitMap64(array('Q', compress(self.keys, [at < bound for at in self.ats])))


class Burials:
    """Time and member by offset. An offset is in it once at most."""

    __slots__ = ('_burials', '_members', '_numbers', '_recent')

    def __init__(self) -> None:
        self._burials: list[Burial] = []
        self._recent: dict[int, tuple[int, int]] = {}
        self._members: list[str] = []
        self._numbers: dict[str, int] = {}

    def put(self, offsets: BitMap64, at: Dues, member: str) -> None:
        """Add `offsets`, none of which is here, that died at one time or at one each, at `member`."""
        who = self._numbers.get(member)
        if who is None:
            who = self._numbers[member] = len(self._members)
            self._members.append(member)
        if not isinstance(at, int):
            if len(offsets) >= RECENT // 8:
                self._burials.append(Burial.columns(array('Q', offsets), array('q', at), array('I', [who]) * len(at)))
                return
            self._recent.update({offset: (each, who) for offset, each in zip(offsets, at, strict=True)})
        elif len(offsets) >= GROUP:
            self._burials.append(Burial(offsets.copy(), at, who))
            return
        else:
            self._recent.update(dict.fromkeys(offsets, (at, who)))
        if len(self._recent) >= RECENT:
            keys = sorted(self._recent)
            ats, whose = zip(*[self._recent[key] for key in keys], strict=True)
            self._burials.append(Burial.columns(array('Q', keys), array('q', ats), array('I', whose)))
            self._recent = {}

    def remove(self, offsets: BitMap64) -> None:
        """Take out those of `offsets` that are here."""
        if self._recent:
            if len(offsets) < len(self._recent):
                for offset in offsets:
                    self._recent.pop(offset, None)
            else:
                self._recent = {offset: death for offset, death in self._recent.items() if offset not in offsets}
        empty = False
        for burial in self._burials:
            if not burial.offsets.isdisjoint(offsets):
                burial.offsets -= offsets
                empty = empty or not burial.offsets
        if empty:
            self._burials = [burial for burial in self._burials if burial.offsets]

    def of(self, offset: int) -> Death | None:
        """One of them; None if it is not here."""
        found = self._recent.get(offset)
        if found is None:
            found = next((burial.of(offset) for burial in self._burials if offset in burial.offsets), None)
        return None if found is None else Death(found[0], self._members[found[1]])

    def among(self, offsets: BitMap64) -> dict[int, Death]:
        """Those of a few `offsets` that are here."""
        found = {offset: self._recent[offset] for offset in offsets if offset in self._recent}
        for burial in self._burials:
            if not burial.offsets.isdisjoint(offsets):
                found.update({offset: burial.of(offset) for offset in burial.offsets & offsets})
        return {offset: Death(at, self._members[who]) for offset, (at, who) in found.items()}

    def before(self, bound: int) -> BitMap64:
        """Those that died before `bound` (ms)."""
        result = BitMap64([offset for offset, (at, _) in self._recent.items() if at < bound])
        for burial in self._burials:
            result |= burial.before(bound)
        return result

    def items(self) -> Iterator[tuple[Dues, BitMap64, str]]:
        """Everything, in portions that `put` takes. What it is is settled now, what costs is done while it is read."""
        burials = [burial.copy() for burial in self._burials]
        return _portions(burials, dict(self._recent), self._members)  # members are added to, never changed

    def __bool__(self) -> bool:
        return bool(self._recent or self._burials)


def _portions(
    burials: list[Burial], recent: dict[int, tuple[int, int]], members: list[str]
) -> Iterator[tuple[Dues, BitMap64, str]]:
    for burial in burials:
        if not burial.keys:
            yield burial.at, burial.offsets, members[burial.who]
        elif len(set(burial.whose)) == 1:
            yield burial.present(), burial.offsets, members[burial.whose[0]]
        else:
            rows = zip(burial.keys, zip(burial.ats, burial.whose, strict=True), strict=True)
            yield from _by_member({key: row for key, row in rows if key in burial.offsets}, members)
    yield from _by_member(recent, members)


def _by_member(singles: dict[int, tuple[int, int]], members: list[str]) -> Iterator[tuple[Dues, BitMap64, str]]:
    by_member: dict[int, list[int]] = {}
    for offset in sorted(singles):
        by_member.setdefault(singles[offset][1], []).append(offset)
    for who, offsets in by_member.items():
        yield array('q', [singles[offset][0] for offset in offsets]), BitMap64(offsets), members[who]
