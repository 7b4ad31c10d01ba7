"""A share session: its requests, and what answers do to it."""

from __future__ import annotations

import uuid

from acklog.client.share_session import Key, Limits, ShareSession
from acklog.wire import share_fetch
from acklog.wire.acknowledgements import ACCEPT
from acklog.wire.error_code import ErrorCode

T1, T2 = uuid.UUID(int=1), uuid.UUID(int=2)
LIMITS = Limits(500, 1 << 20, 500, False)
ACCEPTED = bytes([ACCEPT])


def session() -> ShareSession:
    return ShareSession('g', 'm', {T1: 'one', T2: 'two'})


def accepted(session: ShareSession, key: Key, *offsets: int) -> None:
    session.taken(key, offsets, (), ())
    for offset in offsets:
        assert session.of(key).decide(offset, ACCEPT)


def listed(request: share_fetch.Request) -> dict[Key, list[object]]:
    return {
        (uuid.UUID(bytes=topic.topic_id), partition.index): list(partition.acknowledgements)
        for topic in request.topics
        for partition in topic.partitions
    }


def forgotten(request: share_fetch.Request) -> set[Key]:
    return {(uuid.UUID(bytes=f.topic_id), index) for f in request.forgotten for index in f.partitions}


def test_the_first_request_lists_all_the_next_one_what_is_new() -> None:
    s = session()
    first = s.fetch({(T1, 0), (T1, 1)}, LIMITS)
    assert (first.session_epoch, set(listed(first))) == (0, {(T1, 0), (T1, 1)})
    assert s.advanced(0, None)
    second = s.fetch({(T1, 1), (T2, 0)}, LIMITS)
    assert (second.session_epoch, set(listed(second)), forgotten(second)) == (1, {(T2, 0)}, {(T1, 0)})


def test_acknowledgements_go_with_the_next_request() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    accepted(s, (T1, 0), 5, 6)
    assert s.has_decisions
    assert listed(s.fetch({(T1, 0)}, LIMITS)) == {(T1, 0): [(5, 6, ACCEPTED, None)]}
    s.advanced(0, None)
    s.settled((T1, 0), 0, None)
    assert (s.has_decisions, s.failures, listed(s.fetch({(T1, 0)}, LIMITS))) == (False, [], {})


def test_a_partition_that_is_only_acknowledged_is_forgotten_at_once() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    s.taken((T1, 0), [1], (), ())
    assert forgotten(s.fetch((), LIMITS)) == {(T1, 0)}
    s.advanced(0, None)
    s.of((T1, 0)).decide(1, ACCEPT)
    request = s.fetch((), LIMITS)
    assert (listed(request), forgotten(request)) == ({(T1, 0): [(1, 1, ACCEPTED, None)]}, {(T1, 0)})


def test_refused_acknowledgements_are_told_by_topic_and_range() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    accepted(s, (T1, 0), 1, 2)
    s.acknowledge()
    s.advanced(0, None)
    s.settled((T1, 0), ErrorCode.INVALID_RECORD_STATE, 'too late')
    assert s.failures == [('one', 0, 1, 2, ErrorCode.INVALID_RECORD_STATE, 'too late')]


def test_after_a_session_error_a_new_session_is_opened_and_nothing_is_held() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    s.taken((T1, 0), [1, 2], (), ())
    s.of((T1, 0)).decide(1, ACCEPT)
    s.fetch({(T1, 0)}, LIMITS)
    assert not s.advanced(ErrorCode.SHARE_SESSION_NOT_FOUND, None)
    assert (s.epoch, s.held, [f.first for f in s.failures]) == (0, 0, [1])
    assert set(listed(s.fetch({(T1, 0)}, LIMITS))) == {(T1, 0)}


def test_any_other_error_advances_the_epoch_and_everything_is_told_again() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    accepted(s, (T1, 0), 1)
    s.fetch({(T1, 0)}, LIMITS)
    assert s.advanced(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    again = s.fetch({(T1, 0)}, LIMITS)
    assert (again.session_epoch, listed(again)) == (2, {(T1, 0): [(1, 1, ACCEPTED, None)]})


def test_a_request_without_an_answer_is_told_again() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    accepted(s, (T1, 0), 1)
    s.acknowledge()
    s.unanswered()
    assert listed(s.fetch({(T1, 0)}, LIMITS)) == {(T1, 0): [(1, 1, ACCEPTED, None)]}


def test_closing_tells_what_was_decided() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    accepted(s, (T1, 0), 1)
    request = s.acknowledge(close=True)
    assert (request.session_epoch, len(request.topics)) == (-1, 1)


def test_the_epoch_comes_round_to_one() -> None:
    s = session()
    s.epoch = (1 << 31) - 1
    s.advanced(0, None)
    assert s.epoch == 1


def test_what_is_refused_together_is_told_again_by_fetch() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    accepted(s, (T1, 0), 1, 2)
    accepted(s, (T1, 0), 3)
    assert listed(s.fetch({(T1, 0)}, LIMITS)) == {(T1, 0): [(1, 2, ACCEPTED, None), (3, 3, ACCEPTED, None)]}
    s.advanced(0, None)
    s.settled((T1, 0), ErrorCode.INVALID_RECORD_STATE, None)
    assert (s.failures, s.has_decisions) == ([], True)
    answers = {3: ErrorCode.NONE, 1: ErrorCode.INVALID_RECORD_STATE}
    for offset, answer in answers.items():
        ((first, *_),) = listed(s.fetch({(T1, 0)}, LIMITS))[T1, 0]  # type: ignore[misc]
        assert first == offset
        s.advanced(0, None)
        s.settled((T1, 0), answer, None)
    assert [(failure.first, failure.last) for failure in s.failures] == [(1, 2)]
    assert not s.has_decisions


def test_gaps_and_what_cannot_be_read_are_told_without_being_asked() -> None:
    s = session()
    s.fetch({(T1, 0)}, LIMITS)
    s.advanced(0, None)
    s.taken((T1, 0), [1], [(2, 9)], [(10, 11)])
    assert listed(s.fetch({(T1, 0)}, LIMITS)) == {(T1, 0): [(2, 9, b'\0', None), (10, 11, b'\2', None)]}
