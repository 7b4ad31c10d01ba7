"""The share partition by example: what goes in, what comes out. The reference in `model.py` says the rest."""

from __future__ import annotations

import pytest

from acklog.core import events as ev
from acklog.core import operators
from acklog.core.backoff import Backoff, parse
from acklog.core.kept import Kept
from acklog.core.offsets import span
from acklog.core.share_partition import Ack, Acquired, LogBatch, ShareConfig, SharePartition
from acklog.errors import InvalidRecordState

NOW = 1_000
FAR = 10**12
Batches = list[LogBatch | tuple[int, int, bool]]


def partition(config: ShareConfig | None = None, *, start: int = 0) -> SharePartition:
    return SharePartition(config or ShareConfig(), start)


def plain(*bounds: tuple[int, int]) -> Batches:
    return [(first, last, False) for first, last in bounds]


def take(
    state: SharePartition,
    batches: Batches,
    count: int = 500,
    *,
    member: str = 'a',
    now: int = NOW,
    strict: bool = False,
) -> Acquired:
    """All three steps at once; `batches` are all that the log has."""
    reservation = state.reserve(now, member, count, strict, batches[-1][1] + 1)
    if reservation is None:
        return Acquired(None, [], 0)
    return state.acquire(now, reservation, batches)


def states(state: SharePartition, *offsets: int) -> list[str]:
    return [state.status.record(offset).state for offset in offsets]


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


# -- operators, clock, status (rules 8 to 11) -------------------------------------------------------------------------


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


def test_a_reader_acquires_by_the_limits_of_when_it_has_read() -> None:
    state = partition(ShareConfig(max_in_flight=10))
    take(state, plain((0, 3)))
    state.left(NOW, 'a')
    reservation = state.reserve(NOW, 'b', 4, True, 4)
    assert reservation is not None
    state.reconfigure(ShareConfig(max_in_flight=3))
    assert state.acquire(NOW, reservation, plain((0, 3))).ranges == [(0, 2, 2)]
