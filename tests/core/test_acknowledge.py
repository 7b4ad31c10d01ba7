"""Signing off, handing back, failing, by example (rules 3 to 7). The reference in `model.py` says the rest."""

from __future__ import annotations

import pytest
from tests.core.taking import NOW, partition, plain, states, take

from acklog.core.backoff import Backoff, parse
from acklog.core.share_partition import Ack, ShareConfig, SharePartition
from acklog.errors import InvalidRecordState

# -- acknowledging (rules 3 to 5) -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'acks',
    [
        [(0, 4, Ack.ACCEPT), (5, 9, Ack.REJECT)],
        [(0, 9, bytes([1, 1, 1, 1, 1, 3, 3, 3, 3, 3]))],
        [*((o, o, Ack.ACCEPT) for o in range(5)), *((o, o, Ack.REJECT) for o in range(5, 10))],
        [(o, o, 1 if o < 5 else 3, None) for o in range(10)],
    ],
    ids=['ranges', 'one kind for each', 'singles', 'singles with room for a time'],
)
def test_the_forms_of_acknowledgements_mean_the_same(acks: list[tuple[int, int, int]]) -> None:
    state = partition()
    take(state, plain((0, 9)))
    state.acknowledge(NOW, 'a', acks)
    assert states(state, 0, 4, 5, 9) == ['done', 'done', 'dead', 'dead']
    assert state.status.record(5).reason == 'rejected'
    assert state.status.start == state.end == 10


@pytest.mark.parametrize(
    'acks',
    [
        [(0, 3, Ack.ACCEPT), (3, 4, Ack.ACCEPT)],  # one twice
        [(0, 10, Ack.ACCEPT)],  # beyond what was taken
        [(5, 4, Ack.ACCEPT)],
        [(-1, 4, Ack.ACCEPT)],
        [(0, 4, 5)],
        [(0, 4, bytes([1, 1, 1]))],
        [(0, 4, Ack.ACCEPT), (7, 7, Ack.ACCEPT)],  # 7 is another's
        [(8, 8, Ack.ACCEPT)],  # dead
        [(9, 9, Ack.ACCEPT)],  # done
        [(o, o, Ack.ACCEPT) for o in range(8)],
    ],
)
def test_all_or_nothing(acks: list[tuple[int, int, int]]) -> None:
    state, log = partition(), plain((0, 6), (7, 9))
    take(state, log[:1])
    take(state, log, member='b')
    state.acknowledge(NOW, 'b', [(8, 8, Ack.REJECT), (9, 9, Ack.ACCEPT)])
    before = state.status.counts()
    state.take_events()
    with pytest.raises(InvalidRecordState):
        state.acknowledge(NOW, 'a', acks)
    assert state.status.counts() == before
    assert state.take_events() == []


def test_done_ones_in_a_range_and_gaps_are_passed_over() -> None:
    state = partition()
    take(state, [(0, 3, False), (4, 4, True), (5, 9, False)])
    state.acknowledge(NOW, 'a', [(2, 2, Ack.ACCEPT)])
    state.acknowledge(NOW, 'a', [(0, 5, Ack.ACCEPT)])
    state.acknowledge(NOW, 'a', [(0, 4, Ack.GAP)])
    assert state.status.counts() == (0, 0, 4, 0, 0, 0)


def test_release_with_backoff_at_once_and_until_a_time() -> None:
    state, log = partition(ShareConfig(backoff=parse('1s,10s'))), plain((0, 3))
    take(state, log)
    state.acknowledge(NOW, 'a', [(0, 0, Ack.RELEASE), (1, 1, Ack.RELEASE, NOW + 5), (2, 2, Ack.RELEASE, NOW)])
    assert [state.status.record(o).due for o in range(3)] == [NOW + 1000, NOW + 5, None]
    assert take(state, log, now=NOW + 5).ranges == [(1, 2, 2)]
    state.acknowledge(NOW + 5, 'a', [(1, 2, Ack.RELEASE)])
    assert state.status.record(1).due == NOW + 5 + 10_000


def test_jitter_gives_each_record_its_time() -> None:
    state = SharePartition(ShareConfig(backoff=Backoff((1000,), 100)))
    take(state, plain((0, 99)))
    state.acknowledge(NOW, 'a', [(0, 99, Ack.RELEASE)])
    dues = [state.status.record(o).due for o in range(100)]
    assert dues == [NOW + Backoff((1000,), 100).delay(1, o) for o in range(100)]
    assert len(set(dues)) > 50


def test_renewed_locks_run_out_later() -> None:
    state = partition(ShareConfig(lock_ms=100))
    take(state, plain((0, 3)))
    state.acknowledge(NOW + 60, 'a', [(1, 2, Ack.RENEW)])
    state.advance(NOW + 100)
    assert states(state, 0, 1, 2, 3) == ['available', 'acquired', 'acquired', 'available']
    assert state.next_deadline() == NOW + 160
    assert state.status.record(1).lock == 1


def test_an_older_lock_does_not_count() -> None:
    state, log = partition(), plain((0, 3))
    take(state, log)
    state.left(NOW, 'a')
    assert take(state, log).lock == 2
    with pytest.raises(InvalidRecordState):
        state.acknowledge(NOW, 'a', [(0, 0, Ack.ACCEPT)], lock=1)
    state.acknowledge(NOW, 'a', [(0, 0, Ack.ACCEPT)], lock=2)


def test_a_named_time_wins_over_a_deferral_and_that_over_the_backoff() -> None:
    state = partition(ShareConfig(backoff=parse('fixed:10s')))
    take(state, plain((0, 2)))
    for offset in (0, 1):
        state.defer(NOW, offset, NOW + 77)
    state.acknowledge(NOW, 'a', [(0, 0, Ack.RELEASE, NOW + 5), (1, 2, Ack.RELEASE)])
    assert [state.status.record(o).due for o in range(3)] == [NOW + 5, NOW + 77, NOW + 10_000]
    with pytest.raises(InvalidRecordState):
        state.defer(NOW, 0, NOW + 9)


# -- failures (rules 6, 7, 13) ----------------------------------------------------------------------------------------


def test_attempts_used_up_is_dead_and_the_last_one_comes_alone() -> None:
    state, log = partition(ShareConfig(attempts_limit=2)), plain((0, 2), (3, 5))
    take(state, log)
    state.lost(NOW, 'a')
    for offset in range(3):
        assert take(state, log, member='b').ranges == [(offset, offset, 2)]
    state.acknowledge(NOW, 'b', [(0, 1, Ack.RELEASE)])
    assert states(state, 0, 1, 2, 3) == ['dead', 'dead', 'acquired', 'available']
    assert state.status.record(0)[2:3] == (2,)
    assert state.status.record(0).reason == 'attempts used up'


def test_a_clean_leave_is_free_but_not_for_ever() -> None:
    state, log = partition(ShareConfig(attempts_limit=2)), plain((0, 0))
    for _ in range(2):
        take(state, log)
        state.left(NOW, 'a')
        assert state.status.record(0).attempts == 0
    take(state, log)
    state.left(NOW, 'a')
    assert (state.status.record(0).attempts, state.status.record(0).leaves) == (1, 2)


def test_an_answer_that_was_never_sent_is_free_but_not_for_ever() -> None:
    state, log = partition(ShareConfig(attempts_limit=9)), plain((0, 5))
    for _ in range(10):
        taken = take(state, log)
        assert taken.lock is not None
        assert state.unsent(NOW, taken.lock, range(5)) == 5
        assert state.unsent(NOW, taken.lock, range(5)) == 0
        assert state.status.held_by('a') == [(5, 5)]
        state.left(NOW, 'a')
    assert (state.status.record(0).attempts, state.status.record(0).leaves) == (1, 9)


def test_an_answer_that_was_never_sent_gives_back_nothing_of_another() -> None:
    state, log = partition(), plain((0, 5))
    first = take(state, log)
    state.left(NOW, 'a')
    assert first.lock is not None and take(state, log, member='a').ranges
    assert state.unsent(NOW, first.lock, range(6)) == 0
    assert state.status.held_by('a') == [(0, 5)]


def test_a_restart_is_no_failure() -> None:
    state = partition(ShareConfig(lock_ms=100))
    take(state, plain((0, 3)))
    copy = partition(ShareConfig(lock_ms=100))
    for event in state.take_events():
        copy.fold(event)
    copy.restarted(NOW + 5000, 45_000)
    copy.advance(NOW + 5000)
    copy.acknowledge(NOW + 5000, 'a', [(0, 2, Ack.ACCEPT)])
    assert copy.next_deadline() == NOW + 50_000
    copy.advance(NOW + 50_000)
    assert copy.status.record(3)[1:3] == (1, 1)


def test_dying_until_the_dead_letter_is_written() -> None:
    state = partition(ShareConfig(dead_letter_topic=True))
    take(state, plain((0, 3)))
    state.acknowledge(NOW, 'a', [(1, 2, Ack.REJECT)])
    assert list(state.status.dying()) == [1, 2]
    assert (state.status.start, state.status.in_flight) == (0, 4)
    state.dead_letters_written([1])
    state.acknowledge(NOW, 'a', [(0, 0, Ack.ACCEPT), (3, 3, Ack.ACCEPT)])
    assert (states(state, 1, 2), state.status.start, list(state.status.dead())) == (['dead', 'dying'], 2, [1])


def test_a_transaction_keeps_what_it_acknowledged_until_it_ends() -> None:
    state = partition(ShareConfig(lock_ms=100))
    take(state, plain((0, 3)))
    state.acknowledge(NOW, 'a', [(0, 1, Ack.ACCEPT), (2, 2, Ack.RELEASE, NOW + 900)], transaction=True)
    state.advance(NOW + 500)
    assert states(state, 0, 1, 2, 3) == ['pending', 'pending', 'pending', 'available']
    state.end_transaction(NOW + 500, 'a', commit=True)
    assert states(state, 0, 1, 2) == ['done', 'done', 'waiting']
    assert state.status.record(2).due == NOW + 900
