from __future__ import annotations

from acklog.core.timeline import Timeline


def test_the_earliest_comes_first_whatever_left_before() -> None:
    timeline: Timeline[str] = Timeline()
    for instant in (30, 10, 20):
        timeline.set(instant, f'at {instant}')
    timeline.drop(10)
    assert timeline.first() == 20
    assert timeline.due(29) == ['at 20']
    assert timeline.pop_due(30) == ['at 20', 'at 30']
    assert timeline.first() is None


def test_what_was_dropped_may_come_back() -> None:
    timeline: Timeline[str] = Timeline()
    timeline.set(5, 'old')
    timeline.set(9, 'other')
    timeline.drop(5)
    timeline.set(5, 'new')
    assert timeline.due(5) == ['new']
    assert timeline.pop_due(100) == ['new', 'other']


def test_leftovers_do_not_pile_up_behind_an_early_one() -> None:
    timeline: Timeline[int] = Timeline()
    timeline.set(0, 0)
    for instant in range(1, 100_000):
        timeline.set(instant, instant)
        timeline.drop(instant)
    assert (len(timeline.at), len(timeline._heap) < 100) == (1, True)


def test_shifted() -> None:
    timeline: Timeline[str] = Timeline()
    timeline.set(1, 'a')
    timeline.set(2, 'b')
    timeline.shift(10)
    assert timeline.first() == 11
    assert timeline.pop_due(11) == ['a']
