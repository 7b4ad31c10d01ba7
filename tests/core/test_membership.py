"""Membership: heartbeats in, epochs and assignments out."""

from __future__ import annotations

import pytest

from acklog.core.assignment import TopicKey
from acklog.core.membership import NAMES_LIMIT, Beat, Member, Membership
from acklog.errors import BadHeartbeat, FencedMember, GroupFull, UnknownMember

TIMEOUT = 45_000


class Group:
    """A group and the topics it sees; says what heartbeats answer, in short."""

    def __init__(self, **topics: int) -> None:
        self.topics = {name: (TopicKey(name, name.encode()), count) for name, count in topics.items()}
        self.members = Membership(self.topics.get)
        self.now = 0

    def beat(self, member: str, epoch: int, *topics: str, limit: int = 200) -> Beat:
        return self.members.beat(self.now, member, epoch, topics or None, timeout=TIMEOUT, limit=limit)

    def says(self, member: str, epoch: int, *topics: str) -> tuple[int, str | None]:
        """(epoch, assignment or None when it is not told)"""
        beat = self.beat(member, epoch, *topics)
        return beat.member.epoch, text(beat.member) if beat.tell else None


def text(member: Member) -> str:
    return ' '.join(f'{topic.name}:{",".join(map(str, indexes))}' for topic, indexes in member.assignment.items())


def test_the_first_answer_carries_the_assignment() -> None:
    group = Group(a=2)
    assert group.says('m1', 0, 'a') == (1, 'a:0,1')
    assert group.says('m1', 1) == (1, None)  # later ones only what is new


def test_a_change_reaches_the_others_with_their_next_heartbeat() -> None:
    group = Group(a=3)
    group.beat('m1', 0, 'a')
    assert group.says('m2', 0, 'a') == (2, 'a:0,1,2')
    assert group.says('m1', 1) == (2, None)  # it has all still
    assert group.says('m3', 0, 'a') == (3, 'a:1,2')
    assert group.says('m1', 2) == (3, 'a:0,1')
    assert group.says('m1', 3) == (3, None)


def test_an_answer_that_got_lost_is_said_again() -> None:
    group = Group(a=1, b=1)
    group.beat('m1', 0, 'a')
    assert group.says('m1', 1, 'b') == (2, 'b:0')
    assert group.says('m1', 1, 'b') == (2, 'b:0')  # it still has epoch 1: it has not got that
    assert group.says('m1', 2) == (2, None)


def test_an_epoch_moves_on_without_the_assignment() -> None:
    group = Group(a=1, b=1)
    group.beat('m1', 0, 'a')
    group.beat('m2', 0, 'b')
    assert group.says('m1', 1) == (2, None)


def test_a_subscription_changes() -> None:
    group = Group(a=1, b=1)
    group.beat('m1', 0, 'a')
    assert group.says('m1', 1, 'a', 'b') == (2, 'a:0 b:0')
    assert not group.beat('m1', 2, 'b', 'a').changed  # the same ones in another order


@pytest.mark.parametrize('epoch', [1, 2, 5])
def test_who_is_unknown_must_join(epoch: int) -> None:
    with pytest.raises(UnknownMember):
        Group(a=1).beat('m1', epoch)


@pytest.mark.parametrize('epoch', [1, 4, 99])
def test_an_epoch_of_another_time_is_fenced(epoch: int) -> None:
    group = Group(a=1)
    group.beat('m1', 0, 'a')
    group.beat('m2', 0, 'a')
    group.beat('m1', 1)
    group.beat('m3', 0, 'a')
    group.beat('m1', 2)  # has 3 now, 2 before
    with pytest.raises(FencedMember):
        group.beat('m1', epoch)
    assert group.says('m1', 2)[0] == group.says('m1', 3)[0] == 3


def test_joining_again_begins_again() -> None:
    group = Group(a=1)
    group.beat('m1', 0, 'a')
    assert group.says('m1', 0, 'a') == (1, 'a:0')


@pytest.mark.parametrize(('epoch', 'topics'), [(0, ()), (-2, ('a',))])
def test_what_makes_no_sense_is_refused(epoch: int, topics: tuple[str, ...]) -> None:
    group = Group(a=1)
    with pytest.raises(BadHeartbeat):
        group.beat('m1', epoch, *topics)
    assert len(group.members) == 0


def test_a_full_group_takes_nobody_but_its_own() -> None:
    group = Group(a=1)
    group.beat('m1', 0, 'a', limit=1)
    with pytest.raises(GroupFull):
        group.beat('m2', 0, 'a', limit=1)
    group.beat('m1', 0, 'a', limit=1)


def test_too_many_different_subscriptions_are_refused() -> None:
    group = Group(a=1)
    names = [str(i) for i in range(NAMES_LIMIT)]
    group.beat('m1', 0, *names)
    group.beat('m2', 0, *names)
    with pytest.raises(GroupFull):
        group.beat('m3', 0, 'a')
    with pytest.raises(GroupFull):
        group.beat('m2', 2, 'a')
    assert len(group.members) == 2


def test_a_topic_that_comes_later_is_assigned_then() -> None:
    group = Group()
    assert group.says('m1', 0, 'a') == (1, '')
    group.topics['a'] = (TopicKey('a', b'a'), 2)
    group.members.refresh()
    assert group.says('m1', 1) == (2, 'a:0,1')
    group.topics['a'] = (TopicKey('a', b'a'), 3)
    group.members.refresh()
    assert group.says('m1', 2) == (3, 'a:0,1,2')
    group.topics['a'] = (TopicKey('a', b'other'), 3)  # deleted and made again
    group.members.refresh()
    assert group.says('m1', 3) == (4, 'a:0,1,2')
    del group.topics['a']
    group.members.refresh()
    assert group.says('m1', 4) == (5, '')
    group.topics['z'] = (TopicKey('z', b'z'), 2)  # nobody's business
    group.members.refresh()
    assert group.says('m1', 5) == (5, None)


def test_leaving_gives_to_the_others() -> None:
    group = Group(a=3)
    for name in ('m1', 'm2', 'm3'):
        group.beat(name, 0, 'a')
    assert group.says('m1', 1) == (3, 'a:0,1')
    assert group.members.remove('m2') is not None
    assert group.members.remove('m2') is None
    assert group.says('m1', 3) == (4, 'a:0,1,2')


def test_who_is_silent_too_long_is_taken_out() -> None:
    group = Group(a=2)
    group.beat('m1', 0, 'a')
    group.now = 1000
    group.beat('m2', 0, 'a')
    assert group.members.next_deadline() == TIMEOUT
    assert group.members.expire(TIMEOUT - 1) == []
    assert [member.id for member in group.members.expire(TIMEOUT)] == ['m1']
    assert group.members.next_deadline() == TIMEOUT + 1000
    assert group.says('m2', 2) == (3, None)  # it had all as well
    group.members.remove('m2')
    assert group.members.next_deadline() is None


def test_after_a_restart_members_are_adopted_at_any_epoch() -> None:
    group = Group(a=2)
    for name in ('m1', 'm2'):
        group.members.recover(0, Member(name, frozenset('a')), TIMEOUT)
    group.members.refresh()
    assert group.says('m1', 17) == (18, 'a:0,1')
    assert group.says('m1', 17) == (18, 'a:0,1')  # that answer got lost
    assert group.says('m1', 18) == (18, None)
    assert group.says('m2', 17) == (18, 'a:0,1')
    with pytest.raises(FencedMember):
        group.beat('m2', 16)
    assert group.says('m3', 0, 'a') == (19, 'a:0')


def test_after_a_restart_who_does_not_come_back_is_taken_out() -> None:
    group = Group(a=2)
    group.members.recover(100, Member('m1', frozenset('a')), TIMEOUT)
    group.members.refresh()
    assert group.members.next_deadline() == TIMEOUT + 100
    assert [member.id for member in group.members.expire(TIMEOUT + 100)] == ['m1']
