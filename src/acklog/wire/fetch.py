"""Fetch, versions 4 to 18 (API key 1), both ways.

    4     record batches v2, isolation level, aborted transactions
    5     log start offset
    7     fetch sessions: session id and epoch, forgotten topics (KIP-227)
    9     current leader epoch (KIP-320)
    11    rack in the request, preferred read replica in the answer (KIP-392)
    12    flexible; last fetched epoch; answer, tagged: diverging epoch, current leader, snapshot (KIP-595)
    13    topic ids instead of names (KIP-516)
    15    the replica's state is tagged (KIP-903); consumers send none
    16    answer, tagged: node endpoints (KIP-951)

The others look like the ones before, or add tagged fields between brokers only. What concerns brokers that replicate is
passed over. Records in an answer are not copied: encoding gives a list of buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from acklog.wire.primitives import Buffer
from acklog.wire.reader import Reader, reader, refusing_nonsense
from acklog.wire.writer import Writer, writer

API_KEY = 1
FIRST_FLEXIBLE = 12
TOPIC_IDS = 13  # from this version on

READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_NO_SESSION = -1  # epoch of a request outside any session

_MAX_ELEMENTS = 50_000  # more than twice the partitions that there may be by default, each with a topic around it
_MIN_TOPIC = 3
_MIN_PARTITION = 16
_MIN_ANSWERED_PARTITION = 24
_LEADER_TAG = 1
_NO_LEADER = (-1, -1)  # as the client thinks, which is what it is told by no such field
_LEADER = struct.Struct('>ii')


class Partition(NamedTuple):
    """Where to read on, and how much at most. Epochs are -1 where none was sent."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start: int = -1


class Topic(NamedTuple):
    """`name` up to v12 (else ''), `topic_id` (16 bytes) from v13 on (else None)."""

    name: str
    topic_id: bytes | None
    partitions: Sequence[Partition]


class Forgotten(NamedTuple):
    """Partitions that leave the session."""

    name: str
    topic_id: bytes | None
    partitions: Sequence[int]


class Request(NamedTuple):
    """`max_wait_ms`, `min_bytes`, `max_bytes`: int32 as sent, unchecked; `session_id` 0 and `session_epoch` -1: outside
    any session; `replica_id` -1: a consumer."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int = READ_UNCOMMITTED
    session_id: int = 0
    session_epoch: int = _NO_SESSION
    topics: Sequence[Topic] = ()
    forgotten: Sequence[Forgotten] = ()
    rack_id: str = ''
    replica_id: int = -1


class PartitionResponse(NamedTuple):
    """`records`: whole batches, or a sequence of buffers that hold them one after the other; `aborted`: (producer id,
    first offset) of aborted transactions in them, None where nobody asked; `leader_id` -1: as the client thinks."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    error_code: int = 0
    high_watermark: int = -1
    last_stable: int = -1
    log_start: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    records: Buffer | Sequence[Buffer] | None = b''
    leader_id: int = -1
    leader_epoch: int = -1


class TopicResponse(NamedTuple):
    name: str
    topic_id: bytes | None
    partitions: Sequence[PartitionResponse]


class Response(NamedTuple):
    """`error_code` and `session_id` are sent from v7 on."""

    topics: Sequence[TopicResponse]
    error_code: int = 0
    session_id: int = 0
    throttle_ms: int = 0


@refusing_nonsense
def decode_request(version: int, body: Buffer) -> Request:
    """Raises ProtocolError."""
    message = reader(body, flexible=version >= FIRST_FLEXIBLE, elements=_MAX_ELEMENTS)
    replica_id = message.int32() if version < 15 else -1
    max_wait_ms, min_bytes, max_bytes = message.int32(), message.int32(), message.int32()
    isolation_level = message.int8()
    session_id, session_epoch = 0, _NO_SESSION
    if version >= 7:
        session_id, session_epoch = message.int32(), message.int32()
    topics = [_read_topic(message, version) for _ in range(message.array(_MIN_TOPIC))]
    forgotten = []
    if version >= 7:
        for _ in range(message.array(_MIN_TOPIC)):
            forgotten.append(Forgotten(*_read_topic_name(message, version), message.int32s()))
            message.tags()
    rack_id = message.string() if version >= 11 else ''
    message.tags()
    return Request(
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
        replica_id,
    )


def encode_request(version: int, request: Request) -> list[Buffer]:
    """What the version does not know is left out."""
    message = writer(flexible=version >= FIRST_FLEXIBLE)
    if version < 15:
        message.int32(request.replica_id)
    message.int32(request.max_wait_ms)
    message.int32(request.min_bytes)
    message.int32(request.max_bytes)
    message.int8(request.isolation_level)
    if version >= 7:
        message.int32(request.session_id)
        message.int32(request.session_epoch)
    message.array(len(request.topics))
    for topic in request.topics:
        _write_topic(message, version, topic)
    if version >= 7:
        message.array(len(request.forgotten))
        for name, topic_id, partitions in request.forgotten:
            _write_topic_name(message, version, name, topic_id)
            message.int32s(partitions)
            message.tags()
    if version >= 11:
        message.string(request.rack_id)
    message.tags()
    return message.buffers()


def encode_response(version: int, response: Response) -> list[Buffer]:
    """In pieces; the records are not copied and must stay unchanged until the answer is sent."""
    message = writer(flexible=version >= FIRST_FLEXIBLE)
    message.int32(response.throttle_ms)
    if version >= 7:
        message.int16(response.error_code)
        message.int32(response.session_id)
    message.array(len(response.topics))
    for topic in response.topics:
        _write_topic_name(message, version, topic.name, topic.topic_id)
        message.array(len(topic.partitions))
        for partition in topic.partitions:
            _write_answer(message, version, partition)
        message.tags()
    message.tags()
    return message.buffers()


@refusing_nonsense
def decode_response(version: int, body: Buffer) -> Response:
    """Raises ProtocolError. Records are views into `body`."""
    message = reader(body, flexible=version >= FIRST_FLEXIBLE)
    throttle_ms, error_code, session_id = message.int32(), 0, 0
    if version >= 7:
        error_code, session_id = message.int16(), message.int32()
    topics = []
    for _ in range(message.array(_MIN_TOPIC)):
        name, topic_id = _read_topic_name(message, version)
        partitions = [_read_answer(message, version) for _ in range(message.array(_MIN_ANSWERED_PARTITION))]
        message.tags()
        topics.append(TopicResponse(name, topic_id, partitions))
    message.tags()
    return Response(topics, error_code, session_id, throttle_ms)


def _read_topic_name(message: Reader, version: int) -> tuple[str, bytes | None]:
    if version >= TOPIC_IDS:
        return '', message.uuid()
    return message.string(), None


def _write_topic_name(message: Writer, version: int, name: str, topic_id: bytes | None) -> None:
    if version >= TOPIC_IDS:
        message.uuid(topic_id or bytes(16))
    else:
        message.string(name)


def _read_topic(message: Reader, version: int) -> Topic:
    name, topic_id = _read_topic_name(message, version)
    partitions = [_read_partition(message, version) for _ in range(message.array(_MIN_PARTITION))]
    message.tags()
    return Topic(name, topic_id, partitions)


def _read_partition(message: Reader, version: int) -> Partition:
    index = message.int32()
    leader_epoch = message.int32() if version >= 9 else -1
    offset = message.int64()
    last_fetched_epoch = message.int32() if version >= 12 else -1
    log_start = message.int64() if version >= 5 else -1
    max_bytes = message.int32()
    message.tags()
    return Partition(index, offset, max_bytes, leader_epoch, last_fetched_epoch, log_start)


def _write_topic(message: Writer, version: int, topic: Topic) -> None:
    _write_topic_name(message, version, topic.name, topic.topic_id)
    message.array(len(topic.partitions))
    for index, offset, max_bytes, leader_epoch, last_fetched_epoch, log_start in topic.partitions:
        message.int32(index)
        if version >= 9:
            message.int32(leader_epoch)
        message.int64(offset)
        if version >= 12:
            message.int32(last_fetched_epoch)
        if version >= 5:
            message.int64(log_start)
        message.int32(max_bytes)
        message.tags()
    message.tags()


def _write_answer(message: Writer, version: int, partition: PartitionResponse) -> None:
    message.int32(partition.index)
    message.int16(partition.error_code)
    message.int64(partition.high_watermark)
    message.int64(partition.last_stable)
    if version >= 5:
        message.int64(partition.log_start)
    if partition.aborted is None:
        message.array(-1)
    else:
        message.array(len(partition.aborted))
        for producer_id, first_offset in partition.aborted:
            message.int64(producer_id)
            message.int64(first_offset)
            message.tags()
    if version >= 11:
        message.int32(-1)  # preferred read replica: none
    message.references(partition.records)
    leader = (partition.leader_id, partition.leader_epoch)
    if leader == _NO_LEADER:
        message.tags()
    else:
        message.tagged([(_LEADER_TAG, _LEADER.pack(*leader) + b'\0')])


def _read_answer(message: Reader, version: int) -> PartitionResponse:
    index, error_code = message.int32(), message.int16()
    high_watermark, last_stable = message.int64(), message.int64()
    log_start = message.int64() if version >= 5 else -1
    aborted = None
    count = message.nullable_array(16)
    if count is not None:
        aborted = []
        for _ in range(count):
            aborted.append((message.int64(), message.int64()))
            message.tags()
    if version >= 11:
        message.int32()  # preferred read replica
    records = message.nullable_view()
    leader = message.tagged().get(_LEADER_TAG)
    leader_id, leader_epoch = _NO_LEADER if leader is None else _LEADER.unpack_from(leader)
    return PartitionResponse(
        index, error_code, high_watermark, last_stable, log_start, aborted, records, leader_id, leader_epoch
    )


class Codec:
    """The server's side of it."""

    decode = staticmethod(decode_request)
    encode = staticmethod(encode_response)


CODEC = Codec()
