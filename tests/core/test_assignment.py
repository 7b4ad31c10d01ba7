"""Assignments: every partition covered, evenly, with little moved when members or partitions change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.core.assignment import Assignment, TopicKey, assign

A, B, C = TopicKey('a', b'1'), TopicKey('b', b'2'), TopicKey('c', b'3')


def compact(assigned: Mapping[str, Assignment]) -> dict[str, str]:
    """{'m1': 'a:0,1 b:2'}"""
    return {
        member: ' '.join(f'{topic.name}:{",".join(map(str, indexes))}' for topic, indexes in mine.items())
        for member, mine in assigned.items()
    }


def test_one_member_takes_everything() -> None:
    assert compact(assign({'m1': [A, B]}, {A: 2, B: 3}, {})) == {'m1': 'a:0,1 b:0,1,2'}


def test_partitions_are_spread_evenly() -> None:
    assert compact(assign({'m1': [A], 'm2': [A], 'm3': [A]}, {A: 7}, {})) == {
        'm1': 'a:0,1,2',
        'm2': 'a:3,4',
        'm3': 'a:5,6',
    }


def test_surplus_members_share() -> None:
    assert compact(assign({f'm{i}': [A] for i in range(1, 6)}, {A: 2}, {})) == {
        'm1': 'a:0', 'm2': 'a:1', 'm3': 'a:0', 'm4': 'a:0', 'm5': 'a:1',
    }  # fmt: skip


def test_a_new_member_takes_only_its_share() -> None:
    before = assign({'m1': [A], 'm2': [A]}, {A: 6}, {})
    assert compact(before) == {'m1': 'a:0,1,2', 'm2': 'a:3,4,5'}
    assert compact(assign({'m0': [A], 'm1': [A], 'm2': [A]}, {A: 6}, before)) == {
        'm0': 'a:2,5', 'm1': 'a:0,1', 'm2': 'a:3,4',
    }  # fmt: skip


def test_what_a_leaving_member_had_is_spread() -> None:
    before = assign({'m1': [A], 'm2': [A], 'm3': [A]}, {A: 6}, {})
    assert compact(assign({'m1': [A], 'm3': [A]}, {A: 6}, before)) == {'m1': 'a:0,1,2', 'm3': 'a:3,4,5'}


def test_a_topic_without_partitions_or_unknown_is_passed_over() -> None:
    assert compact(assign({'m1': [A, B, C], 'm2': [C]}, {A: 1, B: 0}, {})) == {'m1': 'a:0', 'm2': ''}


def test_a_topic_created_anew_is_another_topic() -> None:
    again = TopicKey('a', b'9')
    before = assign({'m1': [A], 'm2': [A]}, {A: 2}, {})
    after = assign({'m1': [again], 'm2': [again]}, {again: 2}, before)
    assert compact(after) == compact(before)
    assert after != before


def test_different_subscriptions_are_levelled() -> None:
    # m1 could take everything, but m2 has only a to live on and m3 only b.
    assert compact(assign({'m1': [A, B, C], 'm2': [A], 'm3': [B]}, {A: 3, B: 3, C: 3}, {})) == {
        'm1': 'c:0,1,2', 'm2': 'a:0,1,2', 'm3': 'b:0,1,2',
    }  # fmt: skip


TOPICS = [TopicKey(name, name.encode()) for name in 'abcd']
partition_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
subscriptions = st.dictionaries(
    st.sampled_from([f'm{i}' for i in range(8)]), st.sets(st.sampled_from(TOPICS)), min_size=1
)


def check(members: Mapping[str, set[TopicKey]], counts: Mapping[TopicKey, int], got: Mapping[str, Assignment]) -> None:
    assert set(got) == set(members)
    loads = {member: sum(map(len, mine.values())) for member, mine in got.items()}
    owners = Counter((topic, index) for mine in got.values() for topic, indexes in mine.items() for index in indexes)
    reachable = {
        (topic, index) for topics in members.values() for topic in topics for index in range(counts.get(topic, 0))
    }
    assert set(owners) == reachable  # all covered, nothing else
    mains = Counter(p for m, mine in got.items() if loads[m] > 1 for t in mine for p in [(t, i) for i in mine[t]])
    assert all(count == 1 for count in mains.values())  # only members that have nothing else share
    for member, mine in got.items():
        assert set(mine) <= members[member]
        assert all(indexes and list(indexes) == sorted(set(indexes)) for indexes in mine.values())
        assert mine or not any(counts.get(topic, 0) for topic in members[member])  # nobody idle
    for rich, mine in got.items():
        for poor, topics in members.items():
            assert not (topics & set(mine)) or loads[rich] - loads[poor] <= 1, (
                f'{rich} has too much beside {poor}: {got}'
            )


@given(subscriptions, partition_counts)
@settings(max_examples=300, deadline=None)
def test_covered_and_balanced(members: dict[str, set[TopicKey]], counts: dict[TopicKey, int]) -> None:
    check(members, counts, assign(members, counts, {}))


@given(subscriptions, partition_counts, subscriptions, partition_counts)
@settings(max_examples=300, deadline=None)
def test_covered_and_balanced_after_any_change(
    members: dict[str, set[TopicKey]],
    counts: dict[TopicKey, int],
    others: dict[str, set[TopicKey]],
    other_counts: dict[TopicKey, int],
) -> None:
    before = assign(members, counts, {})
    after = assign(others, other_counts, before)
    check(others, other_counts, after)
    assert assign(others, other_counts, after) == after  # nothing moves when nothing changes
    turned = assign(dict(reversed(others.items())), dict(reversed(other_counts.items())), before)
    assert turned == after  # the order of the arguments is nothing


@given(st.integers(1, 12), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_sticky_when_a_member_comes_or_goes(count: int, partitions: int) -> None:
    members = {f'm{i:02}': {A} for i in range(count)}
    before = assign(members, {A: partitions}, {})
    more = assign({**members, 'n': {A}}, {A: partitions}, before)
    gained = {(m, i) for m in members for i in more[m].get(A, ()) if i not in before[m].get(A, ())}
    assert not gained  # the others only give
    back = assign(members, {A: partitions}, more)
    lost = {(m, i) for m in members for i in more[m].get(A, ()) if i not in back[m].get(A, ())}
    assert not lost  # the others only take
