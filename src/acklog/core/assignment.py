"""Which member of a share group takes from which partitions (KIP-932).

In a share group a partition may have several takers, so an assignment need not be exclusive; but one taker a partition
keeps connections, answers and lock conflicts few. So:

1. Partitions are spread over the members that subscribe to their topic, one member each, as evenly as possible.
2. A member left without any (there are more members than partitions) shares one: these members are spread over the
   partitions in the same way.

Both are the same task, *spreading* items over bins, done class by class (items that may go to the same bins form a
class): a class is filled up like water over what its bins hold of other classes, and where several fillings are equally
even, the one that moves least is taken. Passes over the classes go on until nothing moves; each move lowers the sum of
the squares of the loads, so they end. For one class (all members subscribe to the same topics) one pass does it.

Deterministic: the answer depends on the arguments only, not on their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar


class TopicKey(NamedTuple):
    """One topic; a topic created anew under the same name is another one."""

    name: str
    id: bytes


Assignment = Mapping[TopicKey, Sequence[int]]  # partitions in ascending order; no empty ones

_Item = TypeVar('_Item', bound=Hashable)
_Bin = TypeVar('_Bin', bound=Hashable)
_Partition = tuple[TopicKey, int]


def assign(
    subscriptions: Mapping[str, Collection[TopicKey]],
    partitions: Mapping[TopicKey, int],
    previous: Mapping[str, Assignment],
) -> dict[str, dict[TopicKey, tuple[int, ...]]]:
    """Assign every partition that some member subscribes to.

    `subscriptions`: topics of each member, of which those not in `partitions` are passed over; `partitions`: how many
    each topic has; `previous`: what the members had, kept as far as evenness allows. Every member gets an entry.

    Every partition with a subscriber is assigned; every member with a topic that has partitions has at least one; no
    member has two more than another one that could have taken one of them.
    """
    alike: dict[frozenset[TopicKey], list[str]] = defaultdict(list)  # members by what they subscribe to
    for member in sorted(subscriptions):
        alike[frozenset(subscriptions[member])].append(member)
    topics_of: dict[str, frozenset[TopicKey]] = {}
    for topics, members in alike.items():
        known = frozenset(topic for topic in topics if partitions.get(topic, 0) > 0)
        topics_of.update(dict.fromkeys(members, known))
    before = {member: _flat(previous.get(member, {}), topics_of[member], partitions) for member in sorted(topics_of)}
    placed = _spread_partitions(topics_of, partitions, before)
    result: dict[str, dict[TopicKey, list[int]]] = {member: defaultdict(list) for member in before}
    for (topic, index), member in placed.items():
        result[member][topic].append(index)
    idle = {member: topics_of[member] for member, mine in result.items() if topics_of[member] and not mine}
    for member, (topic, index) in _share(idle, partitions, before, placed).items():
        result[member][topic].append(index)
    return {member: {topic: tuple(sorted(mine[topic])) for topic in sorted(mine)} for member, mine in result.items()}


def _flat(
    assignment: Assignment, allowed: Collection[TopicKey], partitions: Mapping[TopicKey, int]
) -> list[_Partition]:
    """What of an earlier assignment its member may keep."""
    return [
        (topic, index)
        for topic in sorted(assignment)
        if topic in allowed
        for index in assignment[topic]
        if index < partitions[topic]
    ]


def _spread_partitions(
    topics_of: Mapping[str, frozenset[TopicKey]],
    partitions: Mapping[TopicKey, int],
    before: Mapping[str, Sequence[_Partition]],
) -> dict[_Partition, str]:
    """One member for each partition."""
    alike: dict[frozenset[TopicKey], list[str]] = defaultdict(list)
    for member in before:
        alike[topics_of[member]].append(member)
    kinds = list(alike.values())
    takers: dict[TopicKey, list[int]] = defaultdict(list)  # which kinds of members take a topic
    for kind, topics in enumerate(alike):
        for topic in topics:
            takers[topic].append(kind)
    classes: dict[tuple[int, ...], list[_Partition]] = defaultdict(list)
    for topic in sorted(takers):
        classes[tuple(takers[topic])] += [(topic, index) for index in range(partitions[topic])]
    owner: dict[_Partition, str] = {}
    # Who had least keeps what was shared, so that those who had more do not end up with all of it.
    for member in sorted(before, key=lambda member: (len(before[member]), member)):
        for partition in before[member]:
            owner.setdefault(partition, member)
    spread = [(items, sorted(member for kind in found for member in kinds[kind])) for found, items in classes.items()]
    return _spread(spread, owner, dict.fromkeys(before, 0))


def _share(
    idle: Mapping[str, frozenset[TopicKey]],
    partitions: Mapping[TopicKey, int],
    before: Mapping[str, Sequence[_Partition]],
    placed: Mapping[_Partition, str],
) -> dict[str, _Partition]:
    """One partition for each member that has none."""
    if not idle:
        return {}
    classes: dict[frozenset[TopicKey], list[str]] = defaultdict(list)
    for member, topics in idle.items():
        classes[topics].append(member)
    shared = [
        (members, [(topic, index) for topic in sorted(topics) for index in range(partitions[topic])])
        for topics, members in classes.items()
    ]
    kept = {member: before[member][0] for member in idle if before[member]}
    return _spread(shared, kept, dict.fromkeys(placed, 1))


def _spread(
    classes: Sequence[tuple[Sequence[_Item], Sequence[_Bin]]],
    where: Mapping[_Item, _Bin],
    load: dict[_Bin, int],
) -> dict[_Item, _Bin]:
    """Put every item of each class (items, bins) into one of its bins; `where`: where items were; `load`: of each bin
    beforehand (is changed)."""
    contents: list[dict[_Bin, list[_Item]]] = []
    loose: list[list[_Item]] = []
    for items, bins in classes:
        held: dict[_Bin, list[_Item]] = {b: [] for b in bins}
        free = []
        for item in items:
            b = where.get(item)
            if b is not None and b in held:
                held[b].append(item)
                load[b] += 1
            else:
                free.append(item)
        contents.append(held)
        loose.append(free)
    moved = True
    while moved:
        moved = False
        for held, free in zip(contents, loose, strict=True):
            moved = _level(held, free, load) or moved
    return {item: b for held in contents for b, items in held.items() for item in items}


def _level(held: dict[_Bin, list[_Item]], free: list[_Item], load: dict[_Bin, int]) -> bool:
    """Spread one class evenly on top of what its bins hold of other classes; empties `free`. Whether anything moved."""
    target = _targets({b: load[b] - len(items) for b, items in held.items()}, held, len(free))
    moved = False
    for b, items in held.items():
        if len(items) > target[b]:
            free += items[target[b] :]
            load[b] -= len(items) - target[b]
            del items[target[b] :]
            moved = True
    free.reverse()  # taken from the end
    for b, items in held.items():
        missing = target[b] - len(items)
        if missing > 0:
            items += free[-missing:][::-1]
            del free[-missing:]
            load[b] += missing
            moved = True
    return moved


def _targets(others: Mapping[_Bin, int], held: Mapping[_Bin, list[_Item]], free: int) -> dict[_Bin, int]:
    """How many of its items each bin should hold: the filling with the lowest peak, moving least among equals."""
    total = free + sum(len(items) for items in held.values())
    level, rest = _water_level(sorted(others.values()), total)
    target = {b: max(0, level - other) for b, other in others.items()}
    # `rest` bins stand one above the level: first those that would have to give up one otherwise.
    may_rise = [b for b, other in others.items() if other <= level]
    may_rise.sort(key=lambda b: len(held[b]) <= target[b])  # stable: the rest in the bins' order
    for b in may_rise[:rest]:
        target[b] += 1
    return target


def _water_level(ground: Sequence[int], amount: int) -> tuple[int, int]:
    """Pour `amount` over ascending `ground`: (level of whole layers, what is left for part of the next one)."""
    poured = 0  # how much it takes to fill the first `width` places up to `level`
    level = ground[0]
    for width, height in enumerate(ground[1:], start=1):
        if poured + (height - level) * width > amount:
            break
        poured += (height - level) * width
        level = height
    else:
        width = len(ground)
    layers, rest = divmod(amount - poured, width)
    return level + layers, rest
