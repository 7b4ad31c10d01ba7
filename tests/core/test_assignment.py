"""Assignments: every partition covered twice, evenly, with little moved when members or partitions change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.core.assignment import NOBODY, Placement, TopicKey, assign

A, B, C = TopicKey('a', b'1'), TopicKey('b', b'2'), TopicKey('c', b'3')


def compact(placement: Placement) -> dict[str, str]:
    """{'m1': 'a:0,1 b:2'}"""
    return {
        member: ' '.join(f'{topic.name}:{",".join(map(str, indexes))}' for topic, indexes in mine.items())
        for member, mine in sorted(placement.by_member().items())
    }


def firsts(placement: Placement) -> dict[str, str]:
    """The same, of first takers only."""
    return compact(Placement(placement.first, {}, {}))


def group(count: int, *topics: TopicKey) -> dict[str, set[TopicKey]]:
    return {f'm{i}': set(topics) for i in range(1, count + 1)}


def test_one_member_takes_everything() -> None:
    assert compact(assign(group(1, A, B), {A: 2, B: 3}, NOBODY)) == {'m1': 'a:0,1 b:0,1,2'}


def test_of_two_members_each_can_take_over_at_once() -> None:
    placement = assign(group(2, A), {A: 4}, NOBODY)
    assert firsts(placement) == {'m1': 'a:0,1', 'm2': 'a:2,3'}
    assert compact(placement) == {'m1': 'a:0,1,2,3', 'm2': 'a:0,1,2,3'}


def test_partitions_are_spread_evenly() -> None:
    placement = assign(group(3, A), {A: 7}, NOBODY)
    assert firsts(placement) == {'m1': 'a:0,1,2', 'm2': 'a:3,4', 'm3': 'a:5,6'}
    assert compact(placement) == {'m1': 'a:0,1,2,3,5', 'm2': 'a:0,1,3,4,6', 'm3': 'a:2,4,5,6'}


def test_surplus_members_share() -> None:
    assert compact(assign(group(7, A), {A: 2}, NOBODY)) == {
        'm1': 'a:0', 'm2': 'a:1', 'm3': 'a:0', 'm4': 'a:1', 'm5': 'a:0', 'm6': 'a:0', 'm7': 'a:1',
    }  # fmt: skip


def test_a_new_member_takes_only_its_share() -> None:
    before = assign(group(2, A), {A: 6}, NOBODY)
    after = assign(group(3, A), {A: 6}, before)
    assert firsts(after) == {'m1': 'a:0,1', 'm2': 'a:3,4', 'm3': 'a:2,5'}
    assert compact(after) == {'m1': 'a:0,1,2,3', 'm2': 'a:0,3,4,5', 'm3': 'a:1,2,4,5'}


def test_who_was_second_takes_over() -> None:
    before = assign(group(3, A), {A: 6}, NOBODY)
    del (rest := group(3, A))['m2']
    after = assign(rest, {A: 6}, before)
    assert firsts(before) == {'m1': 'a:0,1', 'm2': 'a:2,3', 'm3': 'a:4,5'}
    assert (before.second[A, 2], before.second[A, 3]) == ('m1', 'm3')
    assert firsts(after) == {'m1': 'a:0,1,2', 'm3': 'a:3,4,5'}


def test_a_topic_without_partitions_or_unknown_is_passed_over() -> None:
    assert compact(assign({'m1': [A, B, C], 'm2': [C]}, {A: 1, B: 0}, NOBODY)) == {'m1': 'a:0'}


def test_a_topic_created_anew_is_another_topic() -> None:
    again = TopicKey('a', b'9')
    before = assign(group(2, A), {A: 2}, NOBODY)
    after = assign(group(2, again), {again: 2}, before)
    assert compact(after) == compact(before)
    assert after.by_member() != before.by_member()


def test_different_subscriptions_are_levelled() -> None:
    # m1 could take everything, but m2 has only a to live on and m3 only b.
    placement = assign({'m1': [A, B, C], 'm2': [A], 'm3': [B]}, {A: 3, B: 3, C: 3}, NOBODY)
    assert firsts(placement) == {'m1': 'c:0,1,2', 'm2': 'a:0,1,2', 'm3': 'b:0,1,2'}
    assert compact(placement) == {'m1': 'a:0,1,2 b:0,1,2 c:0,1,2', 'm2': 'a:0,1,2', 'm3': 'b:0,1,2'}


TOPICS = [TopicKey(name, name.encode()) for name in 'abcd']
partition_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
subscriptions = st.dictionaries(
    st.sampled_from([f'm{i}' for i in range(8)]), st.sets(st.sampled_from(TOPICS)), min_size=1
)
Subscriptions = dict[str, set[TopicKey]]
Counts = dict[TopicKey, int]


def check(members: Subscriptions, counts: Counts, got: Placement) -> None:
    takers = {
        (topic, index): {member for member, topics in members.items() if topic in topics}
        for topic in set().union(*members.values())
        for index in range(counts.get(topic, 0))
    }
    assert set(got.first) == set(takers)  # all covered, nothing else
    assert set(got.second) == {partition for partition, able in takers.items() if len(able) > 1}
    assert all(got.first[partition] != member for partition, member in got.second.items())
    assert all(member in takers[partition] for member, partition in got)
    loads = Counter(member for member, _ in got)
    assert set(loads) == {member for able in takers.values() for member in able}  # nobody idle
    placed = Counter([*got.first.values(), *got.second.values()])
    assert all(not placed[member] for member in got.sharing)  # only who has nothing else shares
    first = Counter(got.first.values())
    for partition, able in takers.items():
        for member in able:
            assert first[got.first[partition]] - first[member] <= 1, f'first takers are uneven: {got}'
            if partition in got.second and member != got.first[partition]:
                assert placed[got.second[partition]] - placed[member] <= 1, f'takers are uneven: {got}'


def reverse(mapping: Mapping[str, set[TopicKey]]) -> Subscriptions:
    return dict(reversed(mapping.items()))


@given(subscriptions, partition_counts)
@settings(max_examples=100, deadline=None)
def test_covered_and_balanced(members: Subscriptions, counts: Counts) -> None:
    check(members, counts, assign(members, counts, NOBODY))


@given(subscriptions, partition_counts, subscriptions, partition_counts)
@settings(max_examples=150, deadline=None)
def test_covered_and_balanced_after_any_change(
    members: Subscriptions, counts: Counts, others: Subscriptions, other_counts: Counts
) -> None:
    before = assign(members, counts, NOBODY)
    after = assign(others, other_counts, before)
    check(others, other_counts, after)
    assert assign(others, other_counts, after) == after  # nothing moves when nothing changes
    assert assign(reverse(others), dict(reversed(other_counts.items())), before) == after  # nor by the order


@given(st.integers(1, 12), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_sticky_when_a_member_comes_or_goes(count: int, partitions: int) -> None:
    members = {f'm{i:02}': {A} for i in range(count)}
    before = assign(members, {A: partitions}, NOBODY)
    more = assign({**members, 'n': {A}}, {A: partitions}, before)
    assert all(more.first[p] in (member, 'n') for p, member in before.first.items())  # the others only give
    fewer = assign(members, {A: partitions}, more)
    assert all(fewer.first[p] == member for p, member in more.first.items() if member != 'n')  # the others only take
    taken = [p for p, member in more.first.items() if member == 'n']
    kept = sum(fewer.first[p] == more.second.get(p) for p in taken)
    assert kept >= len(taken) - count  # by those who were there already, up to evenness
