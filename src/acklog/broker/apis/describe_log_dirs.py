"""DescribeLogDirs (35), v1-v5 (KIP-113, KIP-827): the one data directory, and what each partition takes up in it.

How much room the disk has is not looked up: -1, which in Kafka's protocol means unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.eager import Pace
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        broker.authorize(caller, 'DESCRIBE', 'CLUSTER', '')
    except Refused as error:
        return {'error_code': answer_to(error)[0], 'results': []}
    topics: dict[str, list[dict[str, Any]]] = {}
    pace = Pace()
    for name, index in dict.fromkeys(_asked(broker, request.topics)):
        await pace.keep()
        topic = broker.catalog.topics.get(name)
        partition = None if topic is None else broker.partition(topic.id_bytes, index)
        if partition is not None:
            described = {'partition_index': index, 'partition_size': partition.log.size, 'is_future_key': False}
            topics.setdefault(name, []).append(described)
    described_topics = [{'name': name, 'partitions': partitions} for name, partitions in topics.items()]
    one = {'error_code': ErrorCode.NONE, 'log_dir': broker.node.directory, 'topics': described_topics}
    return {'error_code': ErrorCode.NONE, 'results': [one]}


def _asked(broker: Broker, topics: Any) -> Iterator[tuple[str, int]]:
    """(topic, partition), that need not exist; all there are if `topics` is None."""
    if topics is None:
        for topic in broker.catalog.topics.values():
            yield from ((topic.name, index) for index in range(topic.partitions))
    else:
        for entry in topics:
            yield from ((entry.topic, index) for index in entry.partitions)


API = Api(35, 'DescribeLogDirs', (1, 5), handle)
