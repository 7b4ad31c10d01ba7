"""A schedule against dicts by offset, with blocks so small that there are many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pyroaring import BitMap64

from acklog.core import instants
from acklog.core import schedule as module
from acklog.core.schedule import Schedule
from acklog.core.schedule_events import Cancelled, Cut, Looks, Moved

GROUPS = (1, 2)
OF = st.sampled_from([None, *GROUPS])
PLACES = st.floats(0, 1)  # of the log
PICKS = st.lists(st.integers(0, 12), min_size=1, max_size=6)


@pytest.fixture(autouse=True, scope='module')
def small_blocks() -> Iterator[None]:
    before = instants.BLOCK
    instants.BLOCK = module.BLOCK = 4  # type: ignore[attr-defined]
    yield
    instants.BLOCK = module.BLOCK = before  # type: ignore[attr-defined]


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.schedule = Schedule()
        self.schedule.fold(Looks(True, 0))
        self.now, self.start, self.end = 0, 0, 0
        self.dues: dict[int, int] = {}
        self.cancelled: set[int] = set()
        self.moved: dict[int, dict[int, int]] = {group: {} for group in GROUPS}
        self.cancelled_for: dict[int, set[int]] = {group: set() for group in GROUPS}

    def place(self, share: float) -> int:
        return self.start + round((self.end - self.start) * share)

    def coming(self) -> dict[int, int]:
        return {offset: due for offset, due in sorted(self.dues.items()) if due > self.now}

    @rule(waits=st.lists(st.integers(-5, 40), min_size=1, max_size=9))
    def publish(self, waits: list[int]) -> None:
        """Those with a wait above nothing are for later; the log has the others, too."""
        found = {self.end + place: self.now + wait for place, wait in enumerate(waits) if wait > 0}
        if found:
            self.schedule.instants.add(list(found), list(found.values()), self.now)
        self.dues.update(found)
        self.end += len(waits)

    @rule(ms=st.integers(0, 30), expire=st.booleans())
    def time(self, ms: int, expire: bool) -> None:
        self.now += ms
        if expire:
            self.schedule.instants.expire(self.now)

    @rule(picks=PICKS, wait=st.integers(1, 200), of=OF)
    def move(self, picks: list[int], wait: int, of: int | None) -> None:
        coming = list(self.coming())
        chosen = {coming[pick] for pick in picks if pick < len(coming)}
        due = self.now + wait
        self.schedule.fold(Moved(BitMap64(chosen), due, of))
        if of is not None:
            self.moved[of].update(dict.fromkeys(chosen, due))
            return
        self.dues.update(dict.fromkeys(chosen, due))
        for moved in self.moved.values():
            for offset in chosen & moved.keys():
                del moved[offset]

    @rule(picks=PICKS, of=OF)
    def cancel(self, picks: list[int], of: int | None) -> None:
        coming = list(self.coming())
        chosen = {coming[pick] for pick in picks if pick < len(coming)}
        self.schedule.fold(Cancelled(BitMap64(chosen), of))
        if of is not None:
            self.cancelled_for[of] |= chosen
            return
        self.cancelled |= chosen
        for offset in chosen:
            del self.dues[offset]

    @rule(share=PLACES)
    def log_begins_later(self, share: float) -> None:
        self.start = self.place(share)
        self.schedule.begin_at(self.start)
        self.keep(range(self.start, self.end))

    @rule(share=PLACES)
    def log_was_cut(self, share: float) -> None:
        self.end = self.place(share)
        self.schedule.fold(Cut(self.end))
        self.keep(range(self.start, self.end))

    def keep(self, there: range) -> None:
        self.dues = {offset: due for offset, due in self.dues.items() if offset in there}
        for group in GROUPS:
            self.moved[group] = {offset: due for offset, due in self.moved[group].items() if offset in there}
            self.cancelled_for[group].intersection_update(there)
        self.cancelled.intersection_update(there)

    @rule(first=PLACES, last=PLACES)
    def say_again(self, first: float, last: float) -> None:
        """What is known of a stretch, found once more, changes nothing."""
        begin, stop = sorted((self.place(first), self.place(last)))
        for found in list(self.schedule.found(begin, stop, self.now)):
            assert len(found.offsets) <= instants.BLOCK
            self.schedule.fold(found)

    @rule()
    def rebuild(self) -> None:
        self.schedule.seen = self.end
        copy = Schedule()
        for event in self.schedule.snapshot(self.start, self.now):
            copy.fold(event)
        assert (copy.looking, copy.seen) == (True, self.end)
        self.schedule = copy

    @invariant()
    def same(self) -> None:
        coming = self.coming()
        assert list(self.schedule.instants.coming(0, self.end, self.now)) == list(coming.items())
        assert self.schedule.instants.first(self.now) == min(coming, default=None)
        for first, last in ((0, self.end), (self.place(0.3), self.place(0.6))):
            stretch = range(first, last + 1)
            for group in (0, *GROUPS):
                later = {**coming, **self.moved.get(group, {})}
                missing = self.cancelled | self.cancelled_for.get(group, set())
                assert self.schedule.for_group(group, first, last, self.now) == (
                    {offset: due for offset, due in later.items() if offset in stretch},
                    BitMap64(sorted(missing.intersection(stretch))),
                )


TestSchedule = Machine.TestCase
TestSchedule.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
