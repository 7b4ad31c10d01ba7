"""Appending what is published: batches are checked against the configs of the topic, and stored as they came."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from acklog.broker.api import Refused
from acklog.broker.refusals import no_topic
from acklog.log.seam import Appended, Durability
from acklog.wire.error_code import ErrorCode
from acklog.wire.primitives import Buffer
from acklog.wire.record_batch import TRANSACTIONAL, check

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.configs.values import Readable
    from acklog.broker.partition import Partition

BEFORE, AFTER = 'message.timestamp.before.max.ms', 'message.timestamp.after.max.ms'
NO_TIMESTAMP = -1
MOST_BATCHES = 1  # of one partition in one request, as Kafka


def append(
    broker: Broker, partition: Partition, records: Buffer, durability: Durability, *, at_once: bool = False
) -> Coroutine[Any, Any, Appended]:
    """Append batches as a producer made them, in the next write or in one `at_once`. To be awaited soon.

    Raises Refused, BatchError, ProducerError, LogError."""
    now, topic = broker.clock(), broker.catalog.topics_by_id.get(partition.topic_id)
    if topic is None:  # deleted since the partition was found
        raise no_topic(partition.topic_name)
    _check(topic.derived(_Limits.of), records, now)
    return partition.append(records, now, durability, at_once=at_once)


class _Limits(NamedTuple):
    """What a topic's configs ask of published batches."""

    max_bytes: int
    create_time: bool
    before_ms: int
    after_ms: int

    @classmethod
    def of(cls, topic: Readable) -> _Limits:
        create_time = topic.text('message.timestamp.type') == 'CreateTime'
        return cls(topic.integer('max.message.bytes'), create_time, topic.integer(BEFORE), topic.integer(AFTER))


def _check(limits: _Limits, records: Buffer, now: int) -> None:
    for header in check(records, limits.max_bytes, MOST_BATCHES):
        if limits.create_time:
            first, latest = header.base_timestamp, header.max_timestamp
            if latest - now > limits.after_ms:
                raise _invalid_time(latest, now, AFTER)
            if now - first > limits.before_ms and first != NO_TIMESTAMP:
                raise _invalid_time(first, now, BEFORE)
        if header.attributes & TRANSACTIONAL:
            raise Refused(ErrorCode.INVALID_TXN_STATE, 'transactions are not served yet')


def _invalid_time(time: int, now: int, config: str) -> Refused:
    return Refused(ErrorCode.INVALID_TIMESTAMP, f'time {time} is further from now, {now}, than {config} allows')
