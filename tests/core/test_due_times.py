"""Waiting times against a dict, with the bounds between the ways of keeping them so low that all are used."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pyroaring import BitMap64

from acklog.core import due_times
from acklog.core.due_times import DueTimes

OFFSETS = st.sets(st.integers(0, 200), min_size=1, max_size=12)
DUES = st.integers(-5, 60)


@pytest.fixture(autouse=True, scope='module')
def low_bounds() -> Iterator[None]:
    before = due_times.GROUP, due_times.RECENT, due_times.RUNS
    due_times.GROUP, due_times.RECENT, due_times.RUNS = 4, 24, 1
    yield
    due_times.GROUP, due_times.RECENT, due_times.RUNS = before


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.due_times = DueTimes()
        self.times: dict[int, int] = {}
        self.shared: set[int] = set()  # times that many have in common

    @rule(offsets=OFFSETS, due=DUES)
    def put(self, offsets: set[int], due: int) -> None:
        new = offsets - self.times.keys()
        self.due_times.put(BitMap64(new), due)
        self.times.update(dict.fromkeys(new, due))
        if len(new) >= due_times.GROUP:
            self.shared.add(due)

    @rule(offsets=OFFSETS, dues=st.lists(DUES, min_size=12, max_size=12))
    def put_each(self, offsets: set[int], dues: list[int]) -> None:
        new = sorted(offsets - self.times.keys())
        self.due_times.put(BitMap64(new), array('q', dues[: len(new)]))
        self.times.update(zip(new, dues, strict=False))

    @rule(now=DUES)
    def pop_due(self, now: int) -> None:
        due = {o for o, at in self.times.items() if at <= now}
        assert set(self.due_times.pop_due(now)) == due
        for offset in due:
            del self.times[offset]

    @rule(now=DUES)
    def due_apart(self, now: int) -> None:
        due = {o for o, at in self.times.items() if at <= now}
        apart = set(self.due_times.due_apart(now))
        assert {o for o in due if self.times[o] not in self.shared} <= apart <= due

    @rule(offsets=OFFSETS)
    def remove(self, offsets: set[int]) -> None:
        self.due_times.remove(BitMap64(offsets))
        for offset in offsets & self.times.keys():
            del self.times[offset]

    @rule(by=st.integers(0, 20))
    def shift(self, by: int) -> None:
        self.due_times.shift(by)
        self.times = {offset: due + by for offset, due in self.times.items()}
        self.shared = {due + by for due in self.shared}

    @rule()
    def rebuild(self) -> None:
        copy = DueTimes()
        for due, offsets in self.due_times.items():
            copy.put(offsets, due)
        self.due_times = copy

    @invariant()
    def same(self) -> None:
        assert self.due_times.first() == min(self.times.values(), default=None)
        assert bool(self.due_times) == bool(self.times)
        for offset in range(0, 200, 7):
            assert self.due_times.due_of(offset) == self.times.get(offset)


TestDueTimes = Machine.TestCase
TestDueTimes.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
