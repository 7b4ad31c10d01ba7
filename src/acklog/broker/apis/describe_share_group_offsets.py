"""DescribeShareGroupOffsets (90), v0-v1: where groups are on partitions; from v1 on how far behind (KIP-932, KIP-1226).

- Topics null: all partitions that the group has begun with. Named ones that it has not are answered with offset -1. A
  group that does not exist has begun with none, and that is no error: so it is on Kafka.
- The lag counts the records that are not settled: those that wait, are held or are still to be taken.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.described_topics import may
from acklog.broker.lazily import Lazily
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group
    from acklog.broker.deliveries.delivery import ShareDelivery

NONE = -1


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    asked = {(group.group_id, group.topics): group for group in request.groups}  # all of a group is much: it comes once
    return {'groups': Lazily(lambda group: _group(broker, caller, group), asked.values())}


def _group(broker: Broker, caller: Caller, asked: Any) -> dict[str, Any]:
    try:
        broker.authorize(caller, 'DESCRIBE', 'GROUP', asked.group_id)
    except Refused as refused:
        return {
            'group_id': asked.group_id, 'topics': [], 'error_code': refused.code, 'error_message': refused.message,
        }  # fmt: skip
    group = broker.catalog.groups.get(asked.group_id)
    topics: list[dict[str, Any]] | Lazily[Any, dict[str, Any]]
    if asked.topics is None:
        topics = [] if group is None else _begun(broker, caller, group)
    else:
        topics = Lazily(lambda topic: _named(broker, caller, group, topic.topic_name, topic.partitions), asked.topics)
    return {'group_id': asked.group_id, 'topics': topics, 'error_code': 0}


def _begun(broker: Broker, caller: Caller, group: Group) -> list[dict[str, Any]]:
    indexes: dict[bytes, list[int]] = {}
    for delivery in broker.deliveries.of_group(group.id):
        indexes.setdefault(delivery.key.topic, []).append(delivery.key.partition)
    names = {topic.name: key for key in indexes if (topic := broker.catalog.topics_by_id.get(key)) is not None}
    return [
        _named(broker, caller, group, name, sorted(indexes[names[name]]))
        for name in sorted(names)
        if may(broker, caller, 'DESCRIBE', 'TOPIC', name)
    ]


def _named(broker: Broker, caller: Caller, group: Group | None, name: str, indexes: Collection[int]) -> dict[str, Any]:
    topic = broker.catalog.topics.get(name)
    try:
        broker.authorize(caller, 'DESCRIBE', 'TOPIC', name)
    except Refused as refused:
        error = {'start_offset': NONE, 'error_code': refused.code, 'error_message': refused.message}
        return {'topic_name': name, 'partitions': Lazily(lambda index: {'partition_index': index, **error}, indexes)}
    if topic is None or group is None:
        return {'topic_name': name, 'partitions': Lazily(lambda index: _partition(index, None), indexes)}
    partitions = Lazily(lambda index: _partition(index, broker.deliveries.find(group, topic.id_bytes, index)), indexes)
    return {'topic_name': name, 'topic_id': topic.id, 'partitions': partitions}


def _partition(index: int, delivery: ShareDelivery | None) -> dict[str, Any]:
    if delivery is None:
        return {'partition_index': index, 'start_offset': NONE, 'leader_epoch': 0, 'lag': NONE, 'error_code': 0}
    return {
        'partition_index': index,
        'start_offset': delivery.state.status.start,
        'leader_epoch': delivery.partition.log.epoch,
        'lag': lag(delivery),
        'error_code': ErrorCode.NONE,
    }


def lag(delivery: ShareDelivery) -> int:
    """Records that are not settled."""
    counts = delivery.state.status.counts()
    return sum(counts) - counts.dead + max(0, delivery.log_end - delivery.state.end)


API = Api(90, 'DescribeShareGroupOffsets', (0, 1), handle)
