from __future__ import annotations

from collections import Counter as Numbers

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from acklog.core.counters import HIGHEST, Counter

SETS = st.sets(st.integers(0, 12), min_size=1)


@given(st.lists(st.tuples(st.sampled_from(['add', 'add', 'add', 'clear']), SETS), max_size=40), SETS)
def test_counts_as_a_dict_does(calls: list[tuple[str, set[int]]], asked: set[int]) -> None:
    counter, numbers = Counter(), Numbers[int]()
    for call, offsets in calls:
        getattr(counter, call)(BitMap64(offsets))
        for offset in offsets:
            numbers[offset] = numbers[offset] + 1 if call == 'add' else 0
    assert {o: counter.of(o) for o in asked} == {o: numbers[o] for o in asked}
    classes = {number: set(group) for number, group in counter.classes(BitMap64(asked))}
    assert classes == {n: {o for o in asked if numbers[o] == n} for n in {numbers[o] for o in asked}}
    for number in range(5):
        assert set(counter.exactly(number, BitMap64(asked))) == {o for o in asked if numbers[o] == number}
    copy = Counter()
    for bit, plane in counter.items():
        copy.restore(bit, plane)
    assert [copy.of(o) for o in range(13)] == [counter.of(o) for o in range(13)]


def test_saturates_as_int16_does() -> None:
    counter = Counter()
    for _ in range(HIGHEST + 3):
        counter.add(BitMap64([5]))
    counter.add(BitMap64([5, 6]))
    assert (counter.of(5), counter.of(6)) == (32_767, 1)


def test_nothing_is_kept_for_what_was_cleared() -> None:
    counter = Counter()
    for _ in range(5):
        counter.add(BitMap64([1, 2]))
    counter.clear(BitMap64([1, 2]))
    assert not counter
    assert counter.planes == []


def test_does_not_keep_or_change_the_sets_it_is_given() -> None:
    counter, offsets = Counter(), BitMap64([1, 2])
    for _ in range(4):
        counter.add(offsets)
    counter.clear(BitMap64([1]))
    assert offsets == BitMap64([1, 2])
    assert (counter.of(1), counter.of(2)) == (0, 4)
