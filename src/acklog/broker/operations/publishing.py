"""Publishing for those who have no Kafka client.

Records of one call that go to the same partition are one batch: all of it is there, or none. A call with an
idempotency key may be repeated: its batches carry a producer id that is made of topic and key, so that the log knows a
repeat as it knows one of an idempotent producer, over restarts too, for a day. (Such ids have bit 62 set, where none
that is given out will get.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.appending import append
from acklog.broker.configs import TOPIC
from acklog.broker.eager import concurrently
from acklog.broker.operations.chosen import Operation
from acklog.broker.operations.exchanged import NewRecord
from acklog.errors import BatchError, LogError, OutOfOrderSequence
from acklog.log.seam import Appended, Durability
from acklog.wire import deliver_at, record_batch
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import delivers_at_once
from acklog.wire.murmur2 import partition_of

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Topic

DURABILITY = {-1: Durability.SYNCED, 1: Durability.WRITTEN}
NO_PRODUCER = -1
DELIVER_AT = 'acklog.deliver.at.enable'
DERIVED = 1 << 62  # bit of ids that are made of a key


class Publishing(Operation):
    """Appending."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._turn = 0  # for records without key

    async def publish(
        self,
        caller: Caller,
        topic: str,
        records: Sequence[NewRecord],
        acks: int = -1,
        idempotency_key: str | None = None,
    ) -> list[tuple[int, int]]:
        """Append records; (partition, offset) of each. `acks`: -1 (all) on disk, 1 written. `idempotency_key`: a
        repeat with the same one gives the answer of the first, and appends nothing; with other records it is refused
        (DUPLICATE_RESOURCE)."""
        known = self._topic(caller, topic, 'WRITE')
        durability = DURABILITY.get(acks)
        if durability is None:
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, 'acks must be -1 (all) or 1')
        if not records:
            raise Refused(ErrorCode.INVALID_REQUEST, 'no records')
        producer = NO_PRODUCER if idempotency_key is None else _producer(known, idempotency_key)
        places = self._chosen(known, records, producer)
        by_partition: dict[int, list[NewRecord]] = {}
        for record, index in zip(records, places, strict=True):
            by_partition.setdefault(index, []).append(record)
        appends = [self._append(known, index, each, producer, durability) for index, each in by_partition.items()]
        firsts = dict(zip(by_partition, await concurrently(appends), strict=True))
        nexts: dict[int, int] = {}
        for index, appended in firsts.items():
            if isinstance(appended, OutOfOrderSequence):
                raise _used()
            if isinstance(appended, BaseException):
                raise appended
            if appended.duplicate and not await self._are_there(known, index, by_partition[index], appended.first):
                raise _used()
            nexts[index] = appended.first
        result = []
        for index in places:
            result.append((index, nexts[index]))
            nexts[index] += 1
        return result

    def _chosen(self, topic: Topic, records: Sequence[NewRecord], producer: int) -> list[int]:
        """The partition of each: as it says, by its key, or all of the rest in one, which changes from call to call.
        Repeats with an idempotency key choose the same."""
        self._turn += 1
        rest = (self._turn if producer < 0 else producer) % topic.partitions
        places = []
        for record in records:
            if record.partition is not None:
                self._partition(topic, record.partition)
                places.append(record.partition)
            else:
                places.append(rest if record.key is None else partition_of(record.key, topic.partitions))
        return places

    async def _append(
        self, topic: Topic, index: int, records: Sequence[NewRecord], producer: int, durability: Durability
    ) -> Appended:
        """One batch. Raises Refused, BatchError, LogError."""
        batch = record_batch.build(
            [record_batch.NewRecord(each.key, each.value, _headers(topic, each), each.timestamp) for each in records],
            timestamp=self.broker.clock(),
            producer_id=producer,
            producer_epoch=NO_PRODUCER if producer < 0 else 0,
            base_sequence=NO_PRODUCER if producer < 0 else 0,
        )
        return await append(self.broker, self._partition(topic, index), batch, durability)

    async def _are_there(self, topic: Topic, index: int, records: Sequence[NewRecord], first: int) -> bool:
        """What an earlier call with the same key appended, from `first` on, are these records: key, value and headers.
        Where that cannot be seen any more, their number has to do."""
        partition = self._partition(topic, index)
        try:
            read = await partition.log.read(first, 1)
            stored = [row[2:] for row in islice(record_batch.records(read.data), len(records))]
        except (LogError, BatchError):
            return True
        wanted = [(each.key, each.value, tuple(_headers(topic, each))) for each in records]
        return not stored or [(key, value, tuple(headers)) for key, value, headers in stored] == wanted


def _used() -> Refused:
    return Refused(ErrorCode.DUPLICATE_RESOURCE, 'the idempotency key was used for other records')


def _headers(topic: Topic, record: NewRecord) -> Sequence[tuple[str, bytes | None]]:
    if record.deliver_at is None:
        return record.headers
    if not (DELIVER_AT in TOPIC and topic.flag(DELIVER_AT)):
        raise Refused(ErrorCode.INVALID_REQUEST, delivers_at_once(topic.name))
    others = [header for header in record.headers if header[0] != deliver_at.NAME]
    return [*others, (deliver_at.NAME, deliver_at.text(record.deliver_at))]


def _producer(topic: Topic, key: str) -> int:
    digest = hashlib.blake2b(key.encode(), key=topic.id_bytes, digest_size=8).digest()
    return DERIVED | int.from_bytes(digest, 'big') & (DERIVED - 1)
