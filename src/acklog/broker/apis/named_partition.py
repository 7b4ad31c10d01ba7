"""Admin requests that name a partition: the partition, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acklog.broker.api import Caller
from acklog.broker.apis.described_topics import may
from acklog.broker.refusals import no_partition, no_topic

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.partition import Partition


def named_partition(broker: Broker, caller: Caller, operation: str, name: str, index: int) -> Partition:
    """Raises Refused (UNKNOWN_TOPIC_OR_PARTITION, or what `authorize` raises on `operation` on the cluster)."""
    broker.authorize(caller, operation, 'CLUSTER', '')
    topic = broker.catalog.topics.get(name)
    if topic is None or not may(broker, caller, 'DESCRIBE', 'TOPIC', name):
        raise no_topic(name)
    partition = broker.partition(topic.id_bytes, index)
    if partition is None:
        raise no_partition(topic, index)
    return partition
