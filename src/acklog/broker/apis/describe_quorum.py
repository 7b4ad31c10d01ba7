"""DescribeQuorum (55), v0-v2 (KIP-836): who keeps the cluster's metadata.

That is this node alone, in its catalog, which takes the place of Kafka's topic `__cluster_metadata`: epoch and offsets
are those of the catalog's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.lazily import Lazily
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

METADATA = '__cluster_metadata'


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        broker.authorize(caller, 'DESCRIBE', 'CLUSTER', '')
    except Refused as error:
        code, message = answer_to(error)
        return {'error_code': code, 'error_message': message}
    node = broker.node

    def describe(topic: Any) -> dict[str, Any]:
        name, indexes = topic.topic_name, [entry.partition_index for entry in topic.partitions]
        return {'topic_name': name, 'partitions': Lazily(lambda index: _partition(broker, name, index), indexes)}

    here = any(
        topic.topic_name == METADATA and any(entry.partition_index == 0 for entry in topic.partitions)
        for topic in request.topics
    )
    listeners = [{'name': 'PLAINTEXT', 'host': node.host, 'port': node.port}]
    return {
        'error_code': ErrorCode.NONE,
        'error_message': '',
        'topics': Lazily(describe, request.topics),
        'nodes': [{'node_id': node.id, 'listeners': listeners}] if here else [],
    }


def _partition(broker: Broker, topic: str, index: int) -> dict[str, Any]:
    if topic != METADATA or index != 0:
        message = 'This server does not host this topic-partition.'
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {'partition_index': index, 'error_code': code, 'error_message': message, 'current_voters': []}
    now, (epoch, end) = broker.clock(), broker.catalog.position
    voter = {
        'replica_id': broker.node.id,
        'log_end_offset': end,
        'last_fetch_timestamp': now,
        'last_caught_up_timestamp': now,
    }
    return {
        'partition_index': index,
        'error_code': ErrorCode.NONE,
        'error_message': '',
        'leader_id': broker.node.id,
        'leader_epoch': epoch,
        'high_watermark': end,
        'current_voters': [voter],
        'observers': [],
    }


API = Api(55, 'DescribeQuorum', (0, 2), handle)
