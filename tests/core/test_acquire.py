"""Taking by example (rule 2): what goes in, what comes out. The reference in `model.py` says the rest."""

from __future__ import annotations

import pytest
from tests.core.taking import NOW, Batches, partition, plain, states, take

from acklog.core import events as ev
from acklog.core import operators
from acklog.core.offsets import span
from acklog.core.share_partition import Ack, LogBatch, ShareConfig
from acklog.errors import InvalidRecordState

FAR = 10**12


# -- taking (rule 2) --------------------------------------------------------------------------------------------------


def test_takes_whole_batches_until_the_number_is_reached() -> None:
    assert take(partition(), plain((0, 3), (4, 9), (10, 12)), 5) == (1, [(0, 9, 1)], NOW + 30_000)


def test_strict_takes_no_more_than_asked_for_and_the_rest_next_time() -> None:
    state, log = partition(), plain((0, 3), (4, 9), (10, 12))
    assert take(state, log, 5, strict=True).ranges == [(0, 4, 1)]
    assert take(state, log, 5, strict=True).ranges == [(5, 9, 1)]


def test_what_came_back_goes_first_then_the_log_goes_on() -> None:
    state, log = partition(), plain((0, 3), (4, 9), (10, 12))
    take(state, log, 5)
    state.acknowledge(NOW, 'a', [(2, 3, Ack.RELEASE), (8, 8, Ack.RELEASE)])
    assert take(state, log, 4, member='b').ranges == [(2, 3, 2), (8, 8, 2), (10, 12, 1)]


def test_gaps_are_done() -> None:
    state = partition()
    log: Batches = [(0, 3, False), (4, 4, True), LogBatch(5, 9, missing=span(6, 7)), (20, 21, False)]
    assert take(state, log).ranges == [(0, 3, 1), (5, 5, 1), (8, 9, 1), (20, 21, 1)]
    assert states(state, 4, 6, 15, 20, 22) == ['done', 'done', 'done', 'acquired', 'not taken']


def test_only_gaps_give_nothing_and_are_passed() -> None:
    state = partition()
    assert take(state, [(0, 3, True)]).lock is None
    assert (state.status.start, state.end) == (4, 4)
    assert [type(event) for event in state.take_events()] == [ev.Taken]


def test_published_for_later_waits() -> None:
    state = partition()
    log: Batches = [LogBatch(0, 2, deliver_at={1: NOW + 50}), (3, 3, False)]
    assert take(state, log).ranges == [(0, 0, 1), (2, 3, 1)]
    assert (state.status.record(1).due, state.next_deadline()) == (NOW + 50, NOW + 50)
    assert take(state, log, now=NOW + 49).ranges == []
    assert take(state, log, now=NOW + 50).ranges == [(1, 1, 1)]


def test_the_limit_in_flight_counts_what_is_held() -> None:
    state, log = partition(ShareConfig(max_in_flight=3)), plain((0, 9), (10, 19))
    assert take(state, log, 2, strict=True).ranges == [(0, 1, 1)]
    assert take(state, log, 5, strict=True).ranges == [(2, 2, 1)]
    assert take(state, log).ranges == []
    assert state.why_nothing(20) == 'limit'


def test_an_aborted_batch_among_available_ones_is_passed_over_once_it_is_told() -> None:
    state = partition()
    take(state, plain((0, 3), (4, 6), (7, 9)))
    state.left(NOW, 'a')
    assert take(state, [(0, 3, False), (4, 6, True), (7, 9, False)]).ranges == [(0, 3, 2), (7, 9, 2)]
    assert states(state, 4, 6) == ['done', 'done']
    copy = partition()
    for event in state.take_events():
        copy.fold(event)
    assert copy.status.counts() == state.status.counts()


def test_a_batch_that_was_not_read_is_not_taken() -> None:
    state, log = partition(), plain((0, 3), (4, 6), (7, 9))
    take(state, log)
    state.left(NOW, 'a')
    reservation = state.reserve(NOW, 'b', 500, False, 10)
    assert reservation is not None and reservation.wanted == [(0, 9)]
    assert state.acquire(NOW, reservation, log[:2]).ranges == [(0, 6, 2)]
    assert states(state, 7) == ['available']


def test_a_delayed_record_at_the_start_keeps_nobody_from_the_rest() -> None:
    state = partition()
    take(state, plain((0, 0)))
    state.acknowledge(NOW, 'a', [(0, 0, Ack.RELEASE, NOW + 10)])
    state.log_starts_at(0)
    log = plain((FAR, FAR + 999))
    assert take(state, log, 300, strict=True).ranges == [(FAR, FAR + 299, 1)]
    state.acknowledge(NOW, 'a', [(FAR, FAR + 299, Ack.RELEASE)])
    assert take(state, [*plain((0, 0)), *log], 200, now=NOW + 10, strict=True).ranges == [
        (0, 0, 2),
        (FAR, FAR + 198, 2),
    ]
    with pytest.raises(InvalidRecordState):
        state.acknowledge(NOW + 10, 'a', [(0, FAR + 900, Ack.ACCEPT)])
    with pytest.raises(InvalidRecordState):
        state.acknowledge(NOW + 10, 'a', [(0, (1 << 63) - 1, Ack.ACCEPT)], lock=2)
    state.acknowledge(NOW + 10, 'a', [(0, FAR + 198, Ack.ACCEPT)])
    assert state.status.start == FAR + 199


# -- reservations -----------------------------------------------------------------------------------------------------


def test_two_readers_get_different_records() -> None:
    state, log = partition(), plain((0, 9), (10, 19))
    take(state, log)
    state.left(NOW, 'a')
    one, two = (state.reserve(NOW, member, 4, True, 20) for member in 'bc')
    assert one is not None and two is not None
    assert (one.wanted, two.wanted) == ([(0, 3)], [(4, 7)])
    assert state.acquire(NOW, two, log).ranges == [(4, 7, 2)]
    assert state.acquire(NOW, one, log).ranges == [(0, 3, 2)]


def test_one_reader_at_a_time_has_the_tail() -> None:
    state, log = partition(), plain((0, 9))
    one = state.reserve(NOW, 'a', 4, True, 10)
    assert one is not None and one.tail == 0
    assert state.reserve(NOW, 'b', 4, True, 10) is None
    state.release_reservation(one)
    assert take(state, log, 4, member='b', strict=True).ranges == [(0, 3, 1)]
    assert state.acquire(NOW, one, log) == (None, [], 0)


@pytest.mark.parametrize('meanwhile', ['seek', 'cut', 'log starts', 'given up', 'taken by another'])
def test_what_happened_while_reading_counts(meanwhile: str) -> None:
    state, log = partition(), plain((0, 9), (10, 19))
    take(state, log, 5)
    state.left(NOW, 'a')
    reservation = state.reserve(NOW, 'b', 15, False, 20)
    assert reservation is not None and reservation.tail == 10
    if meanwhile == 'seek':
        operators.seek(state, 5)
    elif meanwhile == 'cut':
        state.cut(8)
    elif meanwhile == 'log starts':
        state.log_starts_at(12)
    elif meanwhile == 'given up':
        operators.give_up(state, NOW, range(2, 8))
    else:
        state.release_reservation(reservation)
        take(state, log[:1], member='c')
    expected = {
        'seek': ([], 5),
        'cut': ([], 8),
        'log starts': ([(12, 19, 1)], 20),
        'given up': ([(0, 1, 2), (8, 9, 2), (10, 19, 1)], 20),
        'taken by another': ([], 10),
    }
    assert (state.acquire(NOW, reservation, log).ranges, state.end) == expected[meanwhile]


def test_a_reader_acquires_by_the_limits_of_when_it_has_read() -> None:
    state = partition(ShareConfig(max_in_flight=10))
    take(state, plain((0, 3)))
    state.left(NOW, 'a')
    reservation = state.reserve(NOW, 'b', 4, True, 4)
    assert reservation is not None
    state.reconfigure(ShareConfig(max_in_flight=3))
    assert state.acquire(NOW, reservation, plain((0, 3))).ranges == [(0, 2, 2)]
