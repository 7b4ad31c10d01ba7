"""Which member of a share group takes from which partitions (KIP-932).

In a share group a partition may have several takers. Here it has two, if two members subscribe to its topic:

1. The *first* taker: partitions are spread over the members that subscribe to their topic as evenly as possible.
2. The *second* one: spread in the same way, over the others, on top of that. It is there so that the records of a
   member that dies are with another one at once: to be assigned them it would have to send a heartbeat first, which it
   does every few seconds. It also shares the work on a partition that has most of the records.
3. A member that is left without any (there are more of them than places) shares a partition: such members are spread
   over the partitions.

All three are the same task, *spreading* items over bins, done class by class (items that may go to the same bins form
a class): a class is filled up like water over what its bins hold of other classes, and where several fillings are
equally even, the one that moves least is taken. Passes over the classes go on until nothing moves; each move lowers
the sum of the squares of the loads, so they end. For one class (all members subscribe to the same topics) one pass does
it.

Deterministic: the answer depends on the arguments only, not on their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar


class TopicKey(NamedTuple):
    """One topic; a topic created anew under the same name is another one."""

    name: str
    id: bytes


TopicPartition = tuple[TopicKey, int]
Assignment = Mapping[TopicKey, Sequence[int]]  # partitions in ascending order; no empty ones

_Item = TypeVar('_Item', bound=Hashable)
_Bin = TypeVar('_Bin', bound=Hashable)
_Class = tuple[Sequence[_Item], Sequence[_Bin]]


class Placement(NamedTuple):
    """Who takes from where. `first`, `second`: takers by partition; `sharing`: what members beyond them take from."""

    first: Mapping[TopicPartition, str]
    second: Mapping[TopicPartition, str]
    sharing: Mapping[str, TopicPartition]

    def __iter__(self) -> Iterator[tuple[str, TopicPartition]]:  # type: ignore[override]
        for takers in (self.first, self.second):
            for partition, member in takers.items():
                yield member, partition
        yield from self.sharing.items()

    def by_member(self) -> dict[str, dict[TopicKey, tuple[int, ...]]]:
        """The assignment of each member that has one."""
        result: dict[str, dict[TopicKey, list[int]]] = {}
        for member, (topic, index) in self:
            result.setdefault(member, defaultdict(list))[topic].append(index)
        return {member: {t: tuple(sorted(mine[t])) for t in sorted(mine)} for member, mine in result.items()}


NOBODY = Placement({}, {}, {})


def assign(
    subscriptions: Mapping[str, Collection[TopicKey]], partitions: Mapping[TopicKey, int], previous: Placement
) -> Placement:
    """Assign every partition that some member subscribes to.

    `subscriptions`: topics of each member, of which those not in `partitions` are passed over; `partitions`: how many
    each topic has; `previous`: what there was, kept as far as evenness allows.

    Every partition has two takers, or one if only one member subscribes to it; every member with a topic that has
    partitions has at least one; no member is first, nor altogether, two more times taker than another one that could
    have been it instead.
    """
    kinds = _Kinds(subscriptions, partitions)
    before: dict[TopicPartition, str] = {}
    for takers in (previous.first, previous.second, {p: m for m, p in sorted(previous.sharing.items(), reverse=True)}):
        for partition, member in takers.items():  # who was second comes first when that one is gone
            if partition not in before and partition[0] in kinds.topics_of.get(member, ()):
                before[partition] = member
    load = dict.fromkeys(kinds.topics_of, 0)
    first = _spread(kinds.classes, before, load)
    before = {p: m for p, m in previous.first.items() if first.get(p) != m}  # who was first becomes second
    before.update((p, m) for p, m in previous.second.items() if first.get(p) != m and p not in before)
    second = _spread(list(_without_first(kinds.classes, first)), before, load)
    takers_of = dict.fromkeys(first, 1)
    for partition in second:
        takers_of[partition] = 2
    sharing = _spread(kinds.idle({m for m, count in load.items() if not count}), previous.sharing, takers_of)
    return Placement(first, second, sharing)


class _Kinds:
    """Members by what they subscribe to, and partitions by who does."""

    def __init__(self, subscriptions: Mapping[str, Collection[TopicKey]], partitions: Mapping[TopicKey, int]) -> None:
        self._partitions = partitions
        alike: dict[frozenset[TopicKey], list[str]] = defaultdict(list)
        for member in sorted(subscriptions):
            alike[frozenset(subscriptions[member])].append(member)
        self.topics_of: dict[str, frozenset[TopicKey]] = {}
        kinds: list[list[str]] = list(alike.values())
        takers: dict[TopicKey, list[int]] = defaultdict(list)  # which kinds of members take a topic
        for kind, (topics, members) in enumerate(alike.items()):
            known = frozenset(topic for topic in topics if partitions.get(topic, 0) > 0)
            self.topics_of.update(dict.fromkeys(members, known))
            for topic in known:
                takers[topic].append(kind)
        classes: dict[tuple[int, ...], list[TopicPartition]] = defaultdict(list)
        for topic in sorted(takers):
            classes[tuple(takers[topic])] += [(topic, index) for index in range(partitions[topic])]
        self.classes: list[_Class[TopicPartition, str]] = [
            (items, sorted(member for kind in found for member in kinds[kind])) for found, items in classes.items()
        ]

    def idle(self, members: Collection[str]) -> list[_Class[str, TopicPartition]]:
        """Those of `members` that could take from somewhere, with the partitions that they could take from."""
        alike: dict[frozenset[TopicKey], list[str]] = defaultdict(list)
        for member in sorted(members):
            if topics := self.topics_of[member]:
                alike[topics].append(member)
        return [
            (found, [(topic, index) for topic in sorted(topics) for index in range(self._partitions[topic])])
            for topics, found in alike.items()
        ]


def _without_first(
    classes: Sequence[_Class[TopicPartition, str]], first: Mapping[TopicPartition, str]
) -> Iterator[_Class[TopicPartition, str]]:
    """The classes for the second takers, who must not be the first ones."""
    for items, bins in classes:
        if len(bins) > 1:
            by_first: dict[str, list[TopicPartition]] = {member: [] for member in bins}
            for partition in items:
                by_first[first[partition]].append(partition)
            for member, mine in by_first.items():
                if mine:
                    yield mine, [other for other in bins if other != member]


def _spread(
    classes: Sequence[_Class[_Item, _Bin]], where: Mapping[_Item, _Bin], load: dict[_Bin, int]
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
    if not free and max(load[b] for b, items in held.items() if items) - min(load[b] for b in held) <= 1:
        return False  # as it is most of the time
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
