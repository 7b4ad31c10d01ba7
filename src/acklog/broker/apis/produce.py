"""Produce (0), v3-v13: append batches to partitions.

- acks=0: no answer; what cannot be stored closes the connection, as Kafka does, for there is no other way to say so.
- acks=1: answered when the operating system has it. acks=-1: when it is on disk (one node: no replicas to wait for).
- Batches are checked (lengths, CRC, format v2) and stored as they came. Older formats, more than one batch for a
  partition and what cannot be, such as more records than the bytes hold, are INVALID_RECORD, upon which producers give
  up; CORRUPT_MESSAGE, upon which they send again, is for lengths and CRC.
- Very many partitions are begun with a few at a time. What else the same connection publishes begins after that, so its
  order stays.
- Idempotent producers: duplicates are answered with the offsets of the original, gaps with
  OUT_OF_ORDER_SEQUENCE_NUMBER.
- A time of a record further from now than the topic's `message.timestamp.before.max.ms` and `...after.max.ms` allow is
  INVALID_TIMESTAMP (KIP-937); looked at are the first and the latest time that a batch names in its header.
- Transactional ids are refused: transactions are not served yet.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.appending import append
from acklog.broker.eager import AT_A_TIME, concurrently
from acklog.broker.refusals import no_partition, no_topic, no_topic_id
from acklog.errors import AcklogError, ProtocolError
from acklog.log.seam import Durability
from acklog.wire import produce
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.partition import Partition

_DURABILITY = {0: Durability.WRITTEN, 1: Durability.WRITTEN, -1: Durability.SYNCED}


async def handle(broker: Broker, caller: Caller, version: int, request: produce.Request) -> produce.Response | None:
    durability = _DURABILITY.get(request.acks)
    if len(request.topics) == 1 and len(request.topics[0].partitions) == 1:  # by far the most frequent
        topic = request.topics[0]
        if caller.order is not None:
            async with caller.order:
                pass
        answer = await _append(broker, caller, version, topic, topic.partitions[0], durability)
        topics = [produce.TopicResponse(topic.name, topic.topic_id, [answer])]
    else:
        topics = await _several(broker, caller, version, request, durability)
    if request.acks != 0:
        return produce.Response(topics, 0)
    for answer in (answer for topic in topics for answer in topic.partitions):
        if answer.error_code != ErrorCode.NONE:
            raise ProtocolError(f'produce with acks=0 failed: {answer.error_message}')
    return None


async def _several(
    broker: Broker, caller: Caller, version: int, request: produce.Request, durability: Durability | None
) -> list[produce.TopicResponse]:
    if caller.order is None and sum([len(topic.partitions) for topic in request.topics]) > AT_A_TIME:
        caller.order = asyncio.Lock()
    begun = None
    if caller.order is not None:
        await caller.order.acquire()
        begun = caller.order.release
    appends = [
        _append(broker, caller, version, topic, partition, durability)
        for topic in request.topics
        for partition in topic.partitions
    ]
    answers = iter(_raised(await concurrently(appends, begun)))
    return [
        produce.TopicResponse(topic.name, topic.topic_id, [next(answers) for _ in topic.partitions])
        for topic in request.topics
    ]


def _raised(results: list[produce.PartitionResponse | BaseException]) -> list[produce.PartitionResponse]:
    answers = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        answers.append(result)
    return answers


async def _append(
    broker: Broker,
    caller: Caller,
    version: int,
    topic: produce.Topic,
    request: produce.Partition,
    durability: Durability | None,
) -> produce.PartitionResponse:
    try:
        if durability is None:
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, 'acks must be 0, 1 or -1 (all)')
        partition = _partition(broker, caller, topic, request.index)
        if not request.records:
            raise Refused(ErrorCode.INVALID_RECORD, 'a partition without records')
        appended = await append(broker, partition, request.records, durability, at_once=caller.alone)
    except AcklogError as error:
        code, message = answer_to(error)
        return produce.PartitionResponse(request.index, code, -1, -1, -1, message)
    return produce.PartitionResponse(
        request.index, ErrorCode.NONE, appended.first, appended.append_time, partition.log.start, None
    )


def _partition(broker: Broker, caller: Caller, topic: produce.Topic, index: int) -> Partition:
    if topic.topic_id is not None:
        known = broker.catalog.topics_by_id.get(topic.topic_id)
        if known is None:
            raise no_topic_id()
    else:
        known = broker.catalog.topics.get(topic.name)
        if known is None:
            raise no_topic(topic.name)
    broker.authorize(caller, 'WRITE', 'TOPIC', known.name)
    partition = broker.partition(known.id_bytes, index)
    if partition is None:
        raise no_partition(known, index)
    return partition


API = Api(0, 'Produce', (3, 13), handle, produce.CODEC)
