"""What is held of a partition, and what is told about it."""

from __future__ import annotations

import pytest

from acklog.client.unsettled import Told, Unsettled, without
from acklog.wire.acknowledgements import ACCEPT, GAP, REJECT, RELEASE, Acknowledgement

A, R, J, G = bytes([ACCEPT]), bytes([RELEASE]), bytes([REJECT]), bytes([GAP])


def holding(*offsets: int) -> Unsettled:
    unsettled = Unsettled()
    unsettled.open.update(dict.fromkeys(offsets, 1))
    return unsettled


def told(unsettled: Unsettled) -> list[Acknowledgement]:
    return [each.ack for each in unsettled.take()]


def test_neighbours_with_the_same_decision_are_one_range() -> None:
    held = holding(1, 2, 3, 4, 6)
    for offset, kind in ((3, ACCEPT), (1, ACCEPT), (2, ACCEPT), (4, REJECT), (6, ACCEPT)):
        assert held.decide(offset, kind)
    held.gaps.append((5, 5, 1))
    assert told(held) == [(1, 3, A, None), (4, 4, J, None), (5, 5, G, None), (6, 6, A, None)]
    assert told(held) == []


def test_times_of_release_part_ranges() -> None:
    held = holding(1, 2, 3)
    for offset, at in ((1, 5), (2, 5), (3, 6)):
        held.decide(offset, RELEASE, at)
    assert told(held) == [(1, 2, R, 5), (3, 3, R, 6)]


def test_the_last_decision_counts_until_it_is_told() -> None:
    held = holding(1)
    held.decide(1, REJECT)
    held.decide(1, ACCEPT)
    assert told(held) == [(1, 1, A, None)]
    assert not held.decide(1, ACCEPT)


def test_what_is_not_held_cannot_be_decided() -> None:
    assert not holding(1).decide(2, ACCEPT)


def test_what_could_not_be_told_is_told_again_unless_decided_anew() -> None:
    held = holding(1, 2, 4)
    held.gaps.append((3, 3, 1))
    for offset in (1, 2, 4):
        held.decide(offset, ACCEPT)
    before = held.take()
    held.put_back(before)
    assert held.take() == before


def test_what_came_with_different_fetches_is_told_apart() -> None:
    held = holding(1, 2)
    held.open[3] = 2
    for offset in (1, 2, 3):
        held.decide(offset, ACCEPT)
    assert held.take() == [Told((1, 2, A, None), 1), Told((3, 3, A, None), 2)]


@pytest.mark.parametrize(
    ('ranges', 'offsets', 'left'),
    [
        ([(0, 4)], [0, 1, 2, 3, 4], []),
        ([(0, 4)], [], [(0, 4)]),
        ([(0, 4)], [2], [(0, 1), (3, 4)]),
        ([(0, 4)], [0, 4], [(1, 3)]),
        ([(0, 1), (5, 9)], [1, 5, 7], [(0, 0), (6, 6), (8, 9)]),
        ([(5, 9)], [1, 2, 6], [(5, 5), (7, 9)]),
    ],
)
def test_without(ranges: list[tuple[int, int]], offsets: list[int], left: list[tuple[int, int]]) -> None:
    assert without(ranges, offsets) == left


def test_what_could_not_be_told_keeps_its_time_and_its_words() -> None:
    held = holding(1, 2, 3)
    held.decide(1, RELEASE, None, 7000, 'busy')
    held.decide(2, RELEASE, 5)
    held.decide(3, ACCEPT)
    held.put_back(held.take())
    assert told(held) == [(1, 1, R, None, 7000, 'busy'), (2, 2, R, 5), (3, 3, A, None)]
