"""Which records of a partition are published for later, from when on each may be delivered, and which never.

Strategy: `Instants` knows when. Cancelled ones are a set: those must be remembered as long as the log has them. What is
said for one group only is kept apart, and goes before what is said for all. The log is the truth about what was
published; `fold` takes what a journal says besides (`schedule_events.py`), live as in recovery.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from pyroaring import BitMap64

from acklog.core.instants import BLOCK, Instants
from acklog.core.offsets import below, within
from acklog.core.schedule_events import Cancelled, Cut, Event, Found, Looks, Moved


class Exceptions:
    """What was said for one group only."""

    __slots__ = ('cancelled', 'moved')

    def __init__(self) -> None:
        self.cancelled = BitMap64()
        self.moved: list[tuple[BitMap64, int]] = []  # to when; none is in two of them

    def unmove(self, offsets: BitMap64) -> None:
        """For these it is as for all groups again."""
        for moved, _ in self.moved:
            moved -= offsets
        self.moved = [each for each in self.moved if each[0]]

    def fold(self, event: Moved | Cancelled) -> None:
        """Let it happen to this group."""
        if isinstance(event, Moved):
            self.unmove(event.offsets)
            self.moved.append((event.offsets.copy(), event.due))
        else:
            self.cancelled |= event.offsets

    def begin_at(self, start: int) -> None:
        """The log begins at `start`."""
        self.cancelled -= below(self.cancelled, start)
        for moved, _ in self.moved:
            moved -= below(moved, start)
        self.unmove(BitMap64())

    def end_at(self, end: int) -> None:
        """The log ends at `end`."""
        self.cancelled = below(self.cancelled, end)
        self.moved = [(kept, due) for moved, due in self.moved if (kept := below(moved, end))]

    def snapshot(self, group: int) -> Iterator[Event]:
        """Events that say the same."""
        if self.cancelled:
            yield Cancelled(self.cancelled.copy(), group)
        for moved, due in list(self.moved):
            yield Moved(moved.copy(), due, group)


class Schedule:
    """Of one partition. Offsets from `seen` on were not looked into; they count as not for later."""

    __slots__ = ('cancelled', 'groups', 'instants', 'looking', 'seen')

    def __init__(self) -> None:
        self.looking = False
        self.seen = 0  # the log has been looked into up to here
        self.instants = Instants()
        self.cancelled = BitMap64()  # for all groups
        self.groups: dict[int, Exceptions] = {}  # by incarnation

    def __bool__(self) -> bool:
        """Whether anything is known at all."""
        return self.looking or bool(self.instants or self.cancelled or self.groups)

    def for_group(self, group: int, first: int, last: int, now: int) -> tuple[dict[int, int], BitMap64]:
        """What of `first..last` a group gets later, and when; and what it does not get at all."""
        later = dict(self.instants.coming(first, last, now))
        exceptions = self.groups.get(group)
        if exceptions is not None:
            for moved, due in exceptions.moved:
                later.update(dict.fromkeys(within(moved, first, last), due))
        return later, self.missing(group, first, last)

    def missing(self, group: int, first: int, last: int) -> BitMap64:
        """What of `first..last` a group does not get at all, as far as it has not had it by then."""
        missing = within(self.cancelled, first, last) if self.cancelled else BitMap64()
        exceptions = self.groups.get(group)
        if exceptions is not None:
            missing |= within(exceptions.cancelled, first, last)
        return missing

    def had_before(self, group: int, offset: int, now: int) -> bool:
        """Whether the record was moved for that group to an instant that has come: what is cancelled for all after
        that, it may have had."""
        exceptions = self.groups.get(group)
        return exceptions is not None and any(due <= now and offset in moved for moved, due in exceptions.moved)

    def begin_at(self, start: int) -> None:
        """The log begins at `start`."""
        self.instants.begin_at(start)
        if self.cancelled and self.cancelled.min() < start:
            self.cancelled -= below(self.cancelled, start)
        for exceptions in self.groups.values():
            exceptions.begin_at(start)

    # -- the journal's events ------------------------------------------------------------------------------------------

    def fold(self, event: Event) -> None:
        """Let it happen; live as in recovery."""
        if isinstance(event, Looks):
            self.looking, self.seen = event.on, event.at
        elif isinstance(event, Found):
            self._found(event)
        elif isinstance(event, Cut):
            self._cut(event.end)
        elif event.group is not None:
            self.groups.setdefault(event.group, Exceptions()).fold(event)
        elif isinstance(event, Moved):
            for exceptions in self.groups.values():
                exceptions.unmove(event.offsets)
            self.instants.move(event.offsets, event.due)
        else:
            self.cancelled |= event.offsets
            self.instants.remove(event.offsets)

    def _found(self, event: Found) -> None:
        """What was known of that stretch is replaced."""
        self.instants.replace(event.first, event.stop, event.offsets, event.dues)
        self.cancelled -= within(self.cancelled, event.first, event.stop - 1)
        self.cancelled |= event.cancelled
        self.seen = max(self.seen, event.stop)

    def _cut(self, end: int) -> None:
        self.seen = min(self.seen, end)
        self.instants.end_at(end)
        self.cancelled = below(self.cancelled, end)
        for exceptions in self.groups.values():
            exceptions.end_at(end)

    def found(self, first: int, stop: int, now: int) -> Iterator[Found]:
        """What is known of `first` up to, not including, `stop`: events, each of a bounded size, that say the same."""
        begin = first
        while True:
            offsets, dues, until = array('Q'), array('q'), stop
            for offset, due in self.instants.coming(begin, stop - 1, now):
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
            yield from exceptions.snapshot(group)
