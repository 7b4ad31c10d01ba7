"""How Metadata and DescribeTopicPartitions describe topics, partitions and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.api import Caller, Refused
from acklog.broker.lazily import Lazily
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Topic

NOT_ASKED = -(1 << 31)

# Bits of Kafka's AclOperation that can be granted on a resource (KIP-430).
_OPERATIONS = {
    'READ': 3,
    'WRITE': 4,
    'CREATE': 5,
    'DELETE': 6,
    'ALTER': 7,
    'DESCRIBE': 8,
    'CLUSTER_ACTION': 9,
    'DESCRIBE_CONFIGS': 10,
    'ALTER_CONFIGS': 11,
    'IDEMPOTENT_WRITE': 12,
}
_GRANTABLE = {
    'TOPIC': ('READ', 'WRITE', 'CREATE', 'DELETE', 'ALTER', 'DESCRIBE', 'DESCRIBE_CONFIGS', 'ALTER_CONFIGS'),
    'CLUSTER': (
        'CREATE',
        'ALTER',
        'DESCRIBE',
        'CLUSTER_ACTION',
        'DESCRIBE_CONFIGS',
        'ALTER_CONFIGS',
        'IDEMPOTENT_WRITE',
    ),
}


def may(broker: Broker, caller: Caller, operation: str, kind: str, name: str) -> bool:
    """Whether `broker.authorize` lets the caller."""
    try:
        broker.authorize(caller, operation, kind, name)
    except Refused:
        return False
    return True


def authorized_operations(broker: Broker, caller: Caller, kind: str, name: str) -> int:
    """The bit field of what the caller may do."""
    return sum(
        1 << _OPERATIONS[operation] for operation in _GRANTABLE[kind] if may(broker, caller, operation, kind, name)
    )


def partitions(
    broker: Broker, topic: Topic, first: int = 0, count: int | None = None, **more: Any
) -> Lazily[int, dict[str, Any]]:
    """The partitions from `first` on, with `more` about each.

    One whose log is not open (yet) has no leader; clients then ask again."""
    node = broker.node.id
    last = topic.partitions if count is None else min(first + count, topic.partitions)

    def describe(index: int) -> dict[str, Any]:
        partition = broker.partition(topic.id_bytes, index)
        return {
            'error_code': ErrorCode.LEADER_NOT_AVAILABLE if partition is None else ErrorCode.NONE,
            'partition_index': index,
            'leader_id': -1 if partition is None else node,
            'leader_epoch': -1 if partition is None else partition.log.epoch,
            'replica_nodes': (node,),
            'isr_nodes': (node,),
            'offline_replicas': () if partition is not None else (node,),
            **more,
        }

    return Lazily(describe, range(first, last))
