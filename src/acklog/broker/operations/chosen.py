"""Finding what an operation is about: its group, topics, partitions and records; and pages of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from acklog.broker.api import Caller, Refused
from acklog.broker.operations.changes import Selection
from acklog.broker.refusals import no_partition, no_topic
from acklog.core.offsets import Offsets, above, lowest
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group, Topic
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.partition import Partition

MOST_ITEMS = 10_000  # of a page
END = 1 << 62  # above every offset


class Operation:
    """What all operations have: the broker, and how to find things. Everything found may be used by the caller."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def _group(self, caller: Caller, name: str, operation: str) -> Group:
        """Raises Refused(GROUP_ID_NOT_FOUND)."""
        self.broker.authorize(caller, operation, 'GROUP', name)
        return self.broker.groups.existing(name)

    def _topic(self, caller: Caller, name: str, operation: str) -> Topic:
        """Raises Refused(UNKNOWN_TOPIC_OR_PARTITION)."""
        self.broker.authorize(caller, operation, 'TOPIC', name)
        topic = self.broker.catalog.topics.get(name)
        if topic is None:
            raise no_topic(name)
        return topic

    def _partition(self, topic: Topic, index: int) -> Partition:
        """Raises Refused(UNKNOWN_TOPIC_OR_PARTITION)."""
        partition = self.broker.partition(topic.id_bytes, index)
        if partition is None:
            raise no_partition(topic, index)
        return partition

    def _deliveries(
        self, caller: Caller, group: Group, topic: str | None = None, partition: int | None = None
    ) -> list[ShareDelivery]:
        """The group's share partitions, by name of the topic and number: all, or of that topic or partition. They are
        not fenced, and what is due has been done. Raises Refused, Failed."""
        if topic is not None:
            known = self._topic(caller, topic, 'READ')
            if partition is not None:
                self._partition(known, partition)
        elif partition is not None:
            raise Refused(ErrorCode.INVALID_REQUEST, 'a partition without its topic')
        found = [
            delivery
            for delivery in self.broker.deliveries.of_group(group.id)
            if (topic is None or delivery.partition.topic_name == topic)
            and (partition is None or delivery.index == partition)
        ]
        for delivery in found:
            self.broker.authorize(caller, 'READ', 'TOPIC', delivery.partition.topic_name)
            delivery.check()
            delivery.advance()
        return sorted(found, key=lambda delivery: (delivery.partition.topic_name, delivery.index))

    def _selected(self, caller: Caller, group: Group, selection: Selection) -> list[tuple[ShareDelivery, Offsets]]:
        """The share partitions that a selection concerns, and which offsets of each. Raises Refused, Failed."""
        offsets: Offsets
        bounded = selection.first is not None or selection.last is not None or selection.offsets is not None
        if bounded and (selection.topic is None or selection.partition is None):
            raise Refused(ErrorCode.INVALID_REQUEST, 'offsets without their topic and partition')
        if selection.offsets is not None:
            if selection.first is not None or selection.last is not None:
                raise Refused(ErrorCode.INVALID_REQUEST, 'single offsets and a range of them at the same time')
            if any(not 0 <= offset < END for offset in selection.offsets):
                raise Refused(ErrorCode.INVALID_REQUEST, 'an offset that cannot be')
            offsets = BitMap64(selection.offsets)
        else:
            last = END if selection.last is None else min(selection.last, END)
            offsets = range(max(selection.first or 0, 0), max(last, -1) + 1)
        found = self._deliveries(caller, group, selection.topic, selection.partition)
        return [(delivery, offsets) for delivery in found]

    def _page(
        self,
        caller: Caller,
        group: Group,
        where: tuple[str | None, int | None],
        after: str | None,
        limit: int,
        offsets_of: Callable[[ShareDelivery], BitMap64],
    ) -> Iterator[tuple[ShareDelivery, BitMap64]]:
        """Share partitions and those of their offsets that are on the page. Raises Refused, Failed."""
        if not 1 <= limit <= MOST_ITEMS:
            raise Refused(ErrorCode.INVALID_REQUEST, f'a page has 1 to {MOST_ITEMS} items, not {limit}')
        begin = ('', -1, -1) if after is None else place(after)
        for delivery in self._deliveries(caller, group, *where):
            here = (delivery.partition.topic_name, delivery.index)
            if limit <= 0 or here < begin[:2]:
                continue
            offsets = offsets_of(delivery)
            if here == begin[:2]:
                offsets = above(offsets, begin[2] + 1)
            if offsets:
                offsets = lowest(offsets, limit)
                limit -= len(offsets)
                yield delivery, offsets


def place_of(topic: str, partition: int, offset: int) -> str:
    """Where a page ended, for the one behind it: no topic's name has a colon."""
    return f'{topic}:{partition}:{offset}'


def place(text: str) -> tuple[str, int, int]:
    topic, _, rest = text.partition(':')
    partition, _, offset = rest.partition(':')
    if not (topic and partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 20):
        raise Refused(ErrorCode.INVALID_REQUEST, f'{text!r} is not where a page ended')
    return topic, int(partition), int(offset)
