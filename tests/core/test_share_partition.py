"""What operators do to a share partition, its clock, its status, its snapshots, by example (rules 8 to 11)."""

from __future__ import annotations

import pytest
from tests.core.taking import NOW, partition, plain, states, take

from acklog.core import operators
from acklog.core.backoff import parse
from acklog.core.kept import Kept
from acklog.core.share_partition import Ack, ShareConfig
from acklog.errors import InvalidRecordState


def test_redrive_discard_replay_seek() -> None:
    state, log = partition(), plain((0, 9))
    take(state, log)
    state.acknowledge(NOW, 'a', [(0, 4, Ack.REJECT), (5, 9, Ack.ACCEPT)])
    assert (operators.redrive(state, range(1, 1 << 60)), operators.discard(state, [0, 7])) == (4, 1)
    assert state.status.start == 1
    assert operators.replay(state, 6, 50, log) == 4
    assert take(state, log).ranges == [(1, 4, 1), (6, 9, 1)]
    operators.seek(state, 3)
    assert (state.status.epoch, state.status.start, state.end, state.status.counts()) == (1, 3, 3, (0, 0, 0, 0, 0, 0))
    with pytest.raises(InvalidRecordState):
        state.acknowledge(NOW, 'a', [(1, 1, Ack.ACCEPT)])
    assert take(state, log).ranges == [(3, 9, 1)]


def test_moved_to_now_is_available() -> None:
    state = partition()
    take(state, plain((0, 3)))
    state.acknowledge(NOW, 'a', [(0, 3, Ack.RELEASE, NOW + 1000)])
    assert operators.move(state, NOW, range(2), NOW + 500) == 2
    assert operators.move(state, NOW, [3], NOW - 1) == 1
    assert [state.status.record(o).due for o in range(4)] == [NOW + 500, NOW + 500, NOW + 1000, None]


@pytest.mark.parametrize('by', [3_600_000, 20, -20, -3_600_000])
def test_a_stepped_clock_moves_locks_and_delays_but_no_named_instant(by: int) -> None:
    """Backoff, a subscriber's instant, its delays (one for all, one for each), deferrals of both kinds, a lock."""
    state = partition(ShareConfig(lock_ms=100, backoff=parse('fixed:50ms')))
    take(state, plain((0, 9)))
    state.acknowledge(NOW, 'a', [(0, 0, Ack.RELEASE), (1, 1, Ack.RELEASE, NOW + 50), (2, 2, Ack.RELEASE, -60)])
    state.acknowledge(NOW, 'a', [(o, o, Ack.RELEASE, -o) for o in (3, 4, 5, 6)])
    state.defer(NOW, 7, -70)
    state.defer(NOW, 8, NOW + 70)
    state.clock_stepped(NOW, by)
    state.lost(NOW + by, 'a')
    moved = NOW + by
    assert [state.status.record(o).due for o in range(7)] == [
        moved + 50, NOW + 50 if by < 50 else None, moved + 60, moved + 3, moved + 4, moved + 5, moved + 6
    ]  # fmt: skip
    assert [state.status.record(o).due for o in (7, 8)] == [moved + 70, NOW + 70 if by < 70 else None]
    assert state.status.record(9).due == moved + 50


def test_deferred_by_no_delay_it_is_deferred_until_now() -> None:
    state = partition()
    take(state, plain((0, 0)))
    state.defer(NOW + 5, 0, 0)
    assert state.status.record(0).deferred == NOW + 5


def test_delays_count_from_the_latest_that_it_may_be_and_instants_are_what_they_are() -> None:
    state = partition(ShareConfig(backoff=parse('fixed:7ms'), cut_ms=1))
    take(state, plain((0, 6)))
    state.acknowledge(NOW, 'a', [(0, 0, Ack.RELEASE), (1, 1, Ack.RELEASE, -5), (2, 2, Ack.RELEASE, NOW + 5)])
    state.acknowledge(NOW, 'a', [(3, 3, Ack.RELEASE, -5), (4, 4, Ack.RELEASE, NOW + 5)])
    state.acknowledge(NOW, 'a', [(5, 5, Ack.RELEASE, 0)])
    state.defer(NOW, 6, -5)
    assert [state.status.record(offset).due for offset in range(5)] == [NOW + ms for ms in (8, 6, 5, 6, 5)]
    assert states(state, 5) == ['available']
    assert state.status.record(6).deferred == NOW + 6


def test_what_had_come_when_the_clock_was_set_back_does_not_wait_again_after_a_restart() -> None:
    state = partition()
    take(state, plain((0, 1)))
    state.acknowledge(NOW, 'a', [(0, 0, Ack.RELEASE, NOW + 50), (1, 1, Ack.RELEASE, NOW + 90)])
    state.advance(NOW + 50)
    events = [*state.take_events(), state.clock_stepped(NOW + 50, -3_600_000)]
    again = partition()
    for event in events:
        again.fold(event)
    assert [[each.status.record(o).state for o in (0, 1)] for each in (state, again)] == [['available', 'waiting']] * 2


def test_why_nothing() -> None:
    state, log = partition(), plain((0, 3))
    assert state.why_nothing(0) == 'nothing new'
    assert state.why_nothing(4) == 'something'
    take(state, log)
    assert state.why_nothing(4) == 'held'
    assert state.status.held_by('a') == [(0, 3)]
    assert {member: holder[:2] for member, holder in state.status.holders().items()} == {'a': (4, NOW + 30_000)}
    state.acknowledge(NOW, 'a', [(0, 3, Ack.RELEASE, NOW + 9)])
    assert (state.why_nothing(4), state.next_deadline()) == ('waiting', NOW + 9)


def test_snapshots_are_in_pieces_and_replace_what_was_there() -> None:
    state = partition(ShareConfig(max_in_flight=10**7))
    take(state, plain((0, 3_999_999)), 10**7)
    state.acknowledge(NOW, 'a', [(0, 3_999_999, bytes(1 + o % 2 for o in range(4_000_000)))])
    events = list(state.snapshot())
    assert max(len(event.offsets.serialize()) for event in events if isinstance(event, Kept)) <= 256 * 1024
    copy = partition()
    take(copy, plain((0, 9)))
    for event in events:
        copy.fold(event)
    assert (copy.status.counts(), copy.status.start, copy.end) == (state.status.counts(), state.status.start, state.end)
    assert [copy.status.record(o) for o in (0, 1, 3_999_999)] == [state.status.record(o) for o in (0, 1, 3_999_999)]
