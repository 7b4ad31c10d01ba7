"""DescribeTopicPartitions (75), v0 (KIP-966): topics in the order of their names, a page of partitions at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.described_topics import authorized_operations, may, partitions
from acklog.broker.catalog.catalog import Topic
from acklog.broker.eager import Pace
from acklog.broker.refusals import check_topic_name
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    asked = sorted({entry.name for entry in request.topics})
    start, first = ('', 0) if request.cursor is None else (request.cursor.topic_name, request.cursor.partition_index)
    names = [name for name in asked or sorted(broker.catalog.topics) if name >= start]
    if first < 0 or (asked and not names):
        return {'topics': [_nothing(name, ErrorCode.INVALID_REQUEST) for name in asked], 'next_cursor': None}
    room = max(1, min(request.response_partition_limit, broker.settings.integer('max.request.partition.size.limit')))
    wrong: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    pace = Pace()
    for name in names:
        await pace.keep()
        found = _find(broker, caller, name)
        if isinstance(found, ErrorCode):
            if asked:  # else it is one that the caller may not see
                wrong.append(_nothing(name, found) | {'topic_authorized_operations': _operations(broker, caller, name)})
            continue
        begin = first if name == start else 0
        if room <= 0:
            return {'topics': wrong + answers, 'next_cursor': {'topic_name': name, 'partition_index': begin}}
        answers.append(_describe(broker, caller, found, begin, room))
        end = begin + len(answers[-1]['partitions'])
        room -= end - begin
        if end < found.partitions and begin < found.partitions:
            return {'topics': wrong + answers, 'next_cursor': {'topic_name': name, 'partition_index': end}}
    return {'topics': wrong + answers, 'next_cursor': None}


def _find(broker: Broker, caller: Caller, name: str) -> Topic | ErrorCode:
    try:
        check_topic_name(name)
    except Refused as error:
        return error.code
    topic = broker.catalog.topics.get(name)
    if topic is None or not may(broker, caller, 'DESCRIBE', 'TOPIC', name):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return topic


def _operations(broker: Broker, caller: Caller, name: str) -> int:
    return authorized_operations(broker, caller, 'TOPIC', name)


def _nothing(name: str, code: ErrorCode) -> dict[str, Any]:
    return {'error_code': code, 'name': name, 'topic_id': None, 'partitions': []}


def _describe(broker: Broker, caller: Caller, topic: Topic, first: int, count: int) -> dict[str, Any]:
    return {
        'error_code': ErrorCode.NONE,
        'name': topic.name,
        'topic_id': topic.id,
        'is_internal': False,
        'partitions': partitions(broker, topic, first, count, eligible_leader_replicas=(), last_known_elr=()),
        'topic_authorized_operations': _operations(broker, caller, topic.name),
    }


API = Api(75, 'DescribeTopicPartitions', (0, 0), handle)
