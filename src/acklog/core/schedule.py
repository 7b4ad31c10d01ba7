"""Which records of a partition are published for later, and from when on each may be delivered.

Strategy: two typed arrays, offsets and instants, in order of offsets and in blocks of some thousands: 16 bytes a
record, found by bisection, appended to as records are published. An instant that has come needs no remembering, since
the record is then one like any other; so blocks whose instants have all come go as a whole, and with each new block an
old one is rid of those that have. Cancelled ones are a set: those must be remembered as long as the log has them.

What is said for one group only is kept apart. The log is the truth about what was published; `events` are what a
journal keeps so that little of the log has to be read again. An event may be folded twice.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyroaring import BitMap64

from acklog.core.offsets import below, within

BLOCK = 4096  # records


class Looks(NamedTuple):
    """From offset `at` on the records of the log are looked into (`on`), or not any more."""

    on: bool
    at: int


class Found(NamedTuple):
    """From `first` up to, not including, `stop` these are published for later, and these are cancelled; no others."""

    first: int
    stop: int
    offsets: BitMap64
    dues: array[int]  # in order of the offsets; ms
    cancelled: BitMap64


class Moved(NamedTuple):
    """These are for another instant (ms): for all groups, or for that one (its incarnation)."""

    offsets: BitMap64
    due: int
    group: int | None = None


class Cancelled(NamedTuple):
    """These are not to be delivered: to any group, or to that one (its incarnation)."""

    offsets: BitMap64
    group: int | None = None


class Cut(NamedTuple):
    """The log came back with this end."""

    end: int


Event = Looks | Found | Moved | Cancelled | Cut


class Block:
    """Offsets in order, and their instants. `latest`: no instant is later."""

    __slots__ = ('dues', 'latest', 'offsets')

    def __init__(self, offsets: array[int], dues: array[int]) -> None:
        self.offsets, self.dues = offsets, dues
        self.latest = max(dues)

    def coming(self, now: int) -> Iterator[tuple[int, int]]:
        return ((offset, due) for offset, due in zip(self.offsets, self.dues, strict=True) if due > now)


class Exceptions:
    """What was said for one group only."""

    __slots__ = ('cancelled', 'moved')

    def __init__(self) -> None:
        self.cancelled = BitMap64()
        self.moved: list[tuple[BitMap64, int]] = []  # to when; none is in two of them

    def unmove(self, offsets: BitMap64) -> None:
        for moved, _ in self.moved:
            moved -= offsets
        self.moved = [each for each in self.moved if each[0]]


class Schedule:
    """Of one partition. Offsets from `seen` on were not looked into; they count as not for later."""

    __slots__ = ('_blocks', '_turn', 'cancelled', 'groups', 'looking', 'seen')

    def __init__(self) -> None:
        self.looking = False
        self.seen = 0  # the log has been looked into up to here
        self.cancelled = BitMap64()
        self.groups: dict[int, Exceptions] = {}
        self._blocks: list[Block] = []
        self._turn = 0  # the block that is rid of what has come next

    def __bool__(self) -> bool:
        """Whether anything is known at all."""
        return self.looking or bool(self._blocks or self.cancelled or self.groups)

    # -- what is published ---------------------------------------------------------------------------------------------

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

    def end_at(self, end: int) -> None:
        """Nothing is at `end` or behind it: the log has no such records."""
        blocks = self._blocks
        while blocks and blocks[-1].offsets[-1] >= end:
            keep = bisect_left(blocks[-1].offsets, end)
            if keep:
                del blocks[-1].offsets[keep:], blocks[-1].dues[keep:]
            else:
                blocks.pop()

    def begin_at(self, start: int) -> None:
        """The log begins at `start`."""
        blocks = self._blocks
        while blocks and blocks[0].offsets[-1] < start:
            del blocks[0]
        if blocks and blocks[0].offsets[0] < start:
            gone = bisect_left(blocks[0].offsets, start)
            del blocks[0].offsets[:gone], blocks[0].dues[:gone]
        if self.cancelled and self.cancelled.min() < start:
            self.cancelled -= below(self.cancelled, start)
        for exceptions in self.groups.values():
            exceptions.cancelled -= below(exceptions.cancelled, start)
            for moved, _ in exceptions.moved:
                moved -= below(moved, start)
            exceptions.unmove(BitMap64())

    def _tidy(self, now: int) -> None:
        """Drop what has come of one block; small neighbours become one."""
        blocks = self._blocks
        if len(blocks) < 2:
            return
        self._turn = at = self._turn % (len(blocks) - 1)
        rest = list(blocks[at].coming(now)) if blocks[at].latest > now else []
        if not rest:
            del blocks[at]
            return
        if len(rest) < len(blocks[at].offsets):
            blocks[at] = Block(array('Q', [each[0] for each in rest]), array('q', [each[1] for each in rest]))
        if at and len(blocks[at - 1].offsets) + len(rest) <= BLOCK:
            before, block = blocks[at - 1], blocks.pop(at)
            blocks[at - 1] = Block(before.offsets + block.offsets, before.dues + block.dues)
        else:
            self._turn += 1

    def expire(self, now: int) -> None:
        """Whole blocks whose instants have come go."""
        if any(block.latest <= now for block in self._blocks):
            self._blocks = [block for block in self._blocks if block.latest > now]

    # -- what is asked -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many are remembered, some of them perhaps without need."""
        return sum(len(block.offsets) for block in self._blocks)

    def coming(self, first: int, last: int, now: int) -> Iterator[tuple[int, int]]:
        """(offset, due) of those in `first..last` whose instant is still to come, in order."""
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

    def for_group(self, group: int, first: int, last: int, now: int) -> tuple[dict[int, int], BitMap64]:
        """What of `first..last` a group gets later, and when; and what it does not get at all."""
        later = dict(self.coming(first, last, now))
        missing = within(self.cancelled, first, last) if self.cancelled else BitMap64()
        exceptions = self.groups.get(group)
        if exceptions is not None:
            for moved, due in exceptions.moved:
                later.update(dict.fromkeys(within(moved, first, last), due))
            missing |= within(exceptions.cancelled, first, last)
        return later, missing

    def first(self, now: int) -> int | None:
        """The lowest offset whose instant is still to come; None if there is none."""
        for block in self._blocks:
            if block.latest > now:
                for offset, _ in block.coming(now):
                    return offset
        return None

    # -- moving and cancelling -----------------------------------------------------------------------------------------

    def chosen(self, first: int, last: int, now: int) -> BitMap64:
        """Those in `first..last` whose instant is still to come."""
        return BitMap64(array('Q', [offset for offset, _ in self.coming(first, last, now)]))

    def _among(self, offsets: BitMap64) -> list[Block]:
        """The blocks that may hold some of `offsets`."""
        if not offsets:
            return []
        first, last = offsets.min(), offsets.max()
        return [block for block in self._blocks if block.offsets[-1] >= first and block.offsets[0] <= last]

    def _cancel(self, offsets: BitMap64) -> None:
        self.cancelled |= offsets
        for block in self._among(offsets):
            if offsets.isdisjoint(BitMap64(block.offsets)):
                continue
            rest = [each for each in zip(block.offsets, block.dues, strict=True) if each[0] not in offsets]
            if not rest:
                self._blocks.remove(block)
                continue
            block.offsets, block.dues = array('Q', [each[0] for each in rest]), array('q', [each[1] for each in rest])

    def _move(self, offsets: BitMap64, due: int) -> None:
        for exceptions in self.groups.values():
            exceptions.unmove(offsets)
        for block in self._among(offsets):
            for offset in offsets & BitMap64(block.offsets):
                block.dues[bisect_left(block.offsets, offset)] = due
                block.latest = max(block.latest, due)

    # -- the journal's events ------------------------------------------------------------------------------------------

    def fold(self, event: Event) -> None:
        """Let it happen; live as in recovery."""
        if isinstance(event, Looks):
            self.looking = event.on
            self.seen = event.at
        elif isinstance(event, Found):
            self._found(event)
        elif isinstance(event, Cut):
            self._cut(event.end)
        elif event.group is None:
            if isinstance(event, Moved):
                self._move(event.offsets, event.due)
            else:
                self._cancel(event.offsets)
        else:
            self._except(event, self.groups.setdefault(event.group, Exceptions()))

    def _except(self, event: Moved | Cancelled, exceptions: Exceptions) -> None:
        if isinstance(event, Moved):
            exceptions.unmove(event.offsets)
            exceptions.moved.append((event.offsets.copy(), event.due))
        else:
            exceptions.cancelled |= event.offsets

    def _cut(self, end: int) -> None:
        self.seen = min(self.seen, end)
        self.end_at(end)
        for cancelled in [self.cancelled, *(exceptions.cancelled for exceptions in self.groups.values())]:
            cancelled -= cancelled - below(cancelled, end)
        for exceptions in self.groups.values():
            for moved, _ in exceptions.moved:
                moved -= moved - below(moved, end)
            exceptions.unmove(BitMap64())

    def _found(self, event: Found) -> None:
        """What was known of that stretch is replaced."""
        first, stop = event.first, event.stop
        behind = [block for block in self._blocks if block.offsets[-1] >= stop]
        before = [block for block in self._blocks if block.offsets[0] < first]
        behind = [_part(block, bisect_left(block.offsets, stop), BLOCK) for block in behind]
        before = [_part(block, 0, bisect_left(block.offsets, first)) for block in before]
        found = [Block(array('Q', event.offsets.to_array()), event.dues[:])] if event.offsets else []
        self._blocks = [*before, *found, *behind]
        self.cancelled -= within(self.cancelled, first, stop - 1)
        self.cancelled |= event.cancelled
        self.seen = max(self.seen, stop)

    def found(self, first: int, stop: int, now: int) -> Iterator[Found]:
        """What is known of `first` up to, not including, `stop`: events, each of a bounded size, that say the same."""
        begin = first
        while True:
            offsets, dues, until = array('Q'), array('q'), stop
            for offset, due in self.coming(begin, stop - 1, now):
                if len(offsets) == BLOCK:
                    until = offset
                    break
                offsets.append(offset)
                dues.append(due)
            yield Found(begin, until, BitMap64(offsets), dues, within(self.cancelled, begin, until - 1))
            if until == stop:
                return
            begin = until

    def snapshot(self, start: int, now: int) -> Iterator[Event]:
        """Events that rebuild it in an empty one, and change nothing in this one. `start`: of the log."""
        seen = self.seen
        yield Looks(self.looking, seen)
        if seen > start:
            yield from self.found(start, seen, now)
        for group, exceptions in list(self.groups.items()):
            if exceptions.cancelled:
                yield Cancelled(exceptions.cancelled.copy(), group)
            for moved, due in list(exceptions.moved):
                yield Moved(moved.copy(), due, group)


def _part(block: Block, start: int, stop: int) -> Block:
    if start == 0 and stop >= len(block.offsets):
        return block
    return Block(block.offsets[start:stop], block.dues[start:stop])
