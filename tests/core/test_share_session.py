"""Share sessions: requests in, sessions or refusals out."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from acklog.core.share_session import LAST_EPOCH, SessionKey, ShareSession, ShareSessions, TopicPartition
from acklog.errors import SessionEpoch, SessionLimit, SessionNotFound

KEY = SessionKey('g', 'm')
P0, P1, P2 = (b'a', 0), (b'a', 1), (b'b', 0)


def test_epochs_count_up() -> None:
    sessions = ShareSessions()
    opened = sessions.open(KEY, [P0])
    assert [sessions.next(KEY, epoch) for epoch in (1, 2, 3)] == [opened] * 3
    assert sessions.next(KEY, -1) is opened  # to be closed by who asked


@pytest.mark.parametrize('epoch', [1, 3, 7, 0, -2])
def test_another_epoch_is_refused_and_changes_nothing(epoch: int) -> None:
    sessions = ShareSessions()
    sessions.open(KEY, [P0])
    sessions.next(KEY, 1)
    with pytest.raises(SessionEpoch):
        sessions.next(KEY, epoch)  # 1 again: a repeat, as in Kafka
    sessions.next(KEY, 2)


@pytest.mark.parametrize('epoch', [1, 5, -1])
def test_without_a_session(epoch: int) -> None:
    with pytest.raises(SessionNotFound):
        ShareSessions().next(KEY, epoch)


def test_after_the_last_epoch_comes_the_first() -> None:
    sessions = ShareSessions()
    sessions.open(KEY, []).epoch = LAST_EPOCH
    sessions.next(KEY, LAST_EPOCH)
    sessions.next(KEY, 1)


def test_partitions_are_added_and_forgotten() -> None:
    sessions = ShareSessions()
    session = sessions.open(KEY, [P0, P1, P0])
    assert list(session.partitions) == [P0, P1]
    assert sessions.change(session, [P2], [P0])
    assert list(session.partitions) == [P1, P2]
    assert not sessions.change(session, [P1], [P0])  # listed for its acknowledgements; gone already
    assert sessions.change(session, [P1], [P1])  # acknowledged and forgotten in one request
    assert list(session.partitions) == [P2]


def test_partitions_take_turns() -> None:
    session = ShareSession(KEY, [P0, P1, P2])
    session.turn(1)
    assert list(session.partitions) == [P1, P2, P0]
    session.turn(2)
    assert list(session.partitions) == [P0, P1, P2]


def test_a_new_session_takes_the_place_of_the_old_one() -> None:
    sessions = ShareSessions(limit=1)
    old = sessions.open(KEY, [P0])
    assert sessions.open(KEY, [P1]) is not old
    assert len(sessions) == 1


def test_one_session_may_not_name_any_number_of_partitions() -> None:
    sessions = ShareSessions(session_limit=2)
    with pytest.raises(SessionLimit, match='a share session may name 2'):
        sessions.open(KEY, [P0, P1, P2])
    session = sessions.open(KEY, [P0, P1, P0])
    with pytest.raises(SessionLimit, match='a share session may name 2'):
        sessions.change(session, [P2], [])
    assert list(session.partitions) == [P0, P1]
    assert sessions.change(session, [], [P1])
    assert sessions.change(session, [P2], [])


def test_limits() -> None:
    sessions = ShareSessions(limit=2, partition_limit=3)
    first = sessions.open(KEY, [P0, P1])
    with pytest.raises(SessionLimit):
        sessions.open(SessionKey('g', 'n'), [P0, P1])
    second = sessions.open(SessionKey('g', 'n'), [P0])
    with pytest.raises(SessionLimit):
        sessions.change(second, [P1], [])
    with pytest.raises(SessionLimit):
        sessions.open(SessionKey('g', 'o'), [])
    sessions.change(first, [], [P0])
    assert sessions.change(second, [P1], [])
    assert sessions.close(KEY) is first
    assert sessions.close(KEY) is None
    sessions.open(SessionKey('g', 'o'), [P0])


@pytest.mark.parametrize('epoch', [1, 2, 500])
def test_a_recovered_session_is_adopted_at_any_epoch(epoch: int) -> None:
    sessions = ShareSessions()
    session = sessions.recover(KEY, [P0], 1000)
    assert sessions.next(KEY, epoch) is session
    assert not session.adoptable
    assert sessions.next(KEY, epoch + 1) is session
    assert sessions.next_deadline() is None


def test_a_recovered_session_that_nobody_adopts_is_due() -> None:
    sessions = ShareSessions()
    session = sessions.recover(KEY, [P0], 1000)
    with pytest.raises(SessionEpoch):
        sessions.next(KEY, -2)
    assert sessions.next_deadline() == 1000
    assert sessions.due(999) == []
    assert sessions.due(1000) == [session]
    sessions.close(KEY)
    assert sessions.next_deadline() is None
    assert sessions.due(1000) == []


KEYS = st.sampled_from([SessionKey('g', 'm'), SessionKey('g', 'n'), SessionKey('h', 'm')])
PARTITIONS = st.lists(st.tuples(st.sampled_from([b'a', b'b']), st.integers(0, 3)), max_size=6)


class SessionsMachine(RuleBasedStateMachine):
    """Against a plain dictionary: {key: (partitions, next epoch)}."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = ShareSessions(limit=2, partition_limit=8)
        self.model: dict[SessionKey, tuple[list[TopicPartition], int]] = {}

    def total(self) -> int:
        return sum(len(partitions) for partitions, _ in self.model.values())

    @rule(key=KEYS, partitions=PARTITIONS)
    def open(self, key: SessionKey, partitions: list[TopicPartition]) -> None:
        self.model.pop(key, None)
        unique = list(dict.fromkeys(partitions))
        if len(self.model) < 2 and self.total() + len(unique) <= 8:
            self.sessions.open(key, partitions)
            self.model[key] = unique, 1
        else:
            with pytest.raises(SessionLimit):
                self.sessions.open(key, partitions)

    @rule(key=KEYS, step=st.integers(-1, 1), added=PARTITIONS, forgotten=PARTITIONS)
    def request(self, key: SessionKey, step: int, added: list[TopicPartition], forgotten: list[TopicPartition]) -> None:
        partitions, epoch = self.model.get(key, ([], 5))
        if key not in self.model or step:
            with pytest.raises((SessionNotFound, SessionEpoch)):
                self.sessions.next(key, epoch + step if epoch + step else 2)
            return
        session = self.sessions.next(key, epoch)
        after = [p for p in dict.fromkeys(partitions + added) if p not in forgotten]
        room = self.total() + len([p for p in after if p not in partitions]) <= 8
        if room:
            assert self.sessions.change(session, added, forgotten) == (set(after) != set(partitions))
        else:
            with pytest.raises(SessionLimit):
                self.sessions.change(session, added, forgotten)
        self.model[key] = after if room else partitions, epoch + 1

    @precondition(lambda self: self.model)
    @rule(key=KEYS)
    def close(self, key: SessionKey) -> None:
        assert (self.sessions.close(key) is not None) == (self.model.pop(key, None) is not None)

    @invariant()
    def alike(self) -> None:
        assert {s.key: (list(s.partitions), s.epoch) for s in self.sessions} == self.model


SessionsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSessions = SessionsMachine.TestCase
