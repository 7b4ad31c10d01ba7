"""The checker, from diaries to verdicts: what counts as lost, as delivered again, and what does not."""

from __future__ import annotations

from acklog.testing.checker import Checker
from acklog.testing.diary import Entry


def published(*records: int) -> list[Entry]:
    return [Entry('confirmed', 1.0, 0, records, records)]


def delivered(at: float, nth: int, *records: int) -> list[Entry]:
    return [Entry('delivered', at, 0, records, records, [nth] * len(records))]


def accepting(at: float, nth: int, *records: int) -> list[Entry]:
    return [Entry('accepting', at, 0, records, (), [nth] * len(records))]


def accepted(at: float, nth: int, *records: int) -> list[Entry]:
    return [*accepting(at, nth, *records), Entry('accepted', at, 0, records, (), [nth] * len(records))]


def test_all_signed_off_once() -> None:
    checker = Checker()
    checker.feed('publisher', published(1, 2))
    checker.feed('one', delivered(2.0, 1, 1, 2) + accepted(3.0, 1, 1, 2))
    verdict = checker.verdict()
    assert verdict.ok
    assert (verdict.published, verdict.accepted, verdict.deliveries, verdict.redelivered) == (2, 2, 2, 0)


def test_a_published_record_that_nobody_accepted_is_lost() -> None:
    checker = Checker()
    checker.feed('publisher', published(1, 2))
    checker.feed('one', delivered(2.0, 1, 1) + accepted(3.0, 1, 1))
    assert checker.open() == 1
    assert (checker.verdict().lost, checker.verdict().examples, checker.verdict().ok) == (1, {'lost': [2]}, False)


def test_a_delivery_after_a_confirmed_accept_is_found_in_either_order_of_reading() -> None:
    for order in (('one', 'other'), ('other', 'one')):
        checker = Checker()
        diaries = {'one': delivered(2.0, 1, 1) + accepted(3.0, 1, 1), 'other': delivered(4.0, 2, 1)}
        checker.feed('publisher', published(1))
        for who in order:
            checker.feed(who, diaries[who])
        assert checker.verdict().again_after_accept == 1


def test_the_same_delivery_handed_out_again_later_is_found() -> None:
    checker = Checker()
    checker.feed('publisher', published(1))
    checker.feed('one', delivered(2.0, 1, 1) + accepted(3.0, 1, 1))
    checker.feed('other', delivered(4.0, 1, 1))
    assert checker.verdict().again_after_accept == 1


def test_a_member_that_lost_its_lock_before_the_accept_is_no_failure_however_late_it_hears() -> None:
    checker = Checker()
    checker.feed('publisher', published(1))
    checker.feed('one', delivered(3.0, 2, 1) + accepted(4.0, 2, 1))
    checker.feed('stalled', delivered(5.0, 1, 1))
    assert checker.verdict().ok
    assert checker.verdict().redelivered == 1


def test_a_late_accept_of_what_another_had_signed_off_by_then_is_no_failure() -> None:
    checker = Checker()
    checker.feed('publisher', published(1))
    checker.feed('slow', delivered(2.0, 1, 1) + accepted(9.0, 1, 1))
    checker.feed('other', delivered(4.0, 2, 1) + accepted(5.0, 2, 1))
    assert checker.verdict().ok


def test_an_accept_without_an_answer_may_have_been_applied_or_not() -> None:
    checker = Checker()
    checker.feed('publisher', published(1, 2))
    checker.feed('one', delivered(2.0, 1, 1, 2) + accepting(3.0, 1, 1, 2))
    checker.killed('one', 3.5)
    assert (checker.open(), checker.unanswered()) == (0, 2)
    checker.feed('other', delivered(4.0, 2, 1))
    assert (checker.open(), checker.unanswered()) == (1, 1)
    checker.feed('other', accepted(5.0, 2, 1))
    verdict = checker.verdict()
    assert verdict.ok
    assert (verdict.accepted, verdict.accept_unanswered) == (1, 1)


def test_a_refused_accept_leaves_the_record_open() -> None:
    checker = Checker()
    checker.feed('publisher', published(1))
    checker.feed('one', delivered(2.0, 1, 1) + accepting(3.0, 1, 1))
    checker.feed('one', [Entry('refused', 3.1, 0, [1])])
    assert checker.open() == 1
    assert checker.verdict().refused == 1


def test_a_record_at_two_offsets_is_stored_twice() -> None:
    checker = Checker()
    checker.feed('publisher', published(1))
    checker.feed('one', [Entry('delivered', 2.0, 0, [1], [7], [1])])
    assert checker.verdict().stored_twice == 1


def test_takeover_is_timed_from_the_kill_to_the_next_delivery() -> None:
    checker = Checker()
    checker.feed('publisher', published(1, 2, 3))
    checker.feed('one', delivered(2.0, 1, 1, 2, 3) + accepted(2.5, 1, 3))
    assert checker.killed('one', 3.0) == 2
    assert checker.waiting_for_takeover() == 2
    checker.feed('other', delivered(3.25, 2, 1, 2))
    assert checker.takeovers == [0.25, 0.25]
    assert checker.waiting_for_takeover() == 0


def test_a_confirmed_record_that_the_log_has_not_is_missing() -> None:
    checker = Checker()
    checker.feed('publisher', published(1, 2))
    checker.feed('one', delivered(2.0, 1, 1, 2) + accepted(3.0, 1, 1, 2))
    checker.compare_log({(0, 1)})
    assert checker.verdict().missing_in_log == 1
    assert not checker.verdict().ok
