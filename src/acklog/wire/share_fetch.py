"""ShareFetch, versions 1 and 2 (API key 78, KIP-932), both ways.

    1   all of it, flexible
    2   acquire mode (0 whole batches, 1 not more than max_records) and is_renew (KIP-1222)

acklog adds a tagged field to the request, tag 1000: an int32, the grace that the member asks for (ms): for so long it
may be without any connection before it counts as lost. Apache Kafka passes over it.

Records in an answer are not copied: encoding gives a list of buffers. A request without acknowledgements, which is what
a waiting consumer sends over and over, is read in about 4 us.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from acklog.errors import ProtocolError
from acklog.wire.acknowledgements import PLACE_COST, Acknowledgement, read_acknowledgements, write_acknowledgements
from acklog.wire.primitives import Buffer
from acklog.wire.reader import CompactReader, Reader, refusing_nonsense
from acklog.wire.writer import CompactWriter, Writer

API_KEY = 78

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1  # acquire modes

GRACE_TAG = 1000

_NUMBERS = struct.Struct('>iiiiii')
_PARTITION_HEAD = struct.Struct('>ih')
_LEADER = struct.Struct('>ii')
_HEAD = struct.Struct('>ihxi')  # an answer up to its topics, without a message
_PLAIN = struct.Struct('>ihxhxiix')  # a partition up to its records, with neither message nor tagged fields
_ACQUIRED = struct.Struct('>qqhx')  # and no tagged fields
_ACQUIRED_SIZE = _ACQUIRED.size

_MIN_TOPIC = 18
_MIN_PARTITION = 6
_MIN_ANSWERED_TOPIC = 18
_MIN_ANSWERED_PARTITION = 21
_MIN_ENDPOINT = 11


class Partition(NamedTuple):
    """A partition to be fetched from, and what became of records from it."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    acknowledgements: Sequence[Acknowledgement]


class Topic(NamedTuple):
    topic_id: bytes  # 16 bytes
    partitions: Sequence[Partition]


class Forgotten(NamedTuple):
    topic_id: bytes  # 16 bytes
    partitions: Sequence[int]


class Request(NamedTuple):
    """`session_epoch`: 0 opens a share session, -1 closes it; `max_wait_ms`, `min_bytes`, `max_bytes`, `max_records`,
    `batch_size`, `grace_ms` (None: says nothing about it): int32 as sent, unchecked; `forgotten`: partitions that leave
    the session."""

    group_id: str | None
    member_id: str | None
    session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    acquire_mode: int
    is_renew: bool
    topics: Sequence[Topic]
    forgotten: Sequence[Forgotten]
    grace_ms: int | None = None


class PartitionResponse(NamedTuple):
    """`records`: whole batches, or a sequence of buffers that hold them one after the other; `acquired`: (first offset,
    last offset, delivery count), int16."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    error_code: int = 0
    error_message: str | None = None
    ack_error_code: int = 0
    ack_error_message: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1
    records: Buffer | Sequence[Buffer] | None = b''
    acquired: Sequence[tuple[int, int, int]] = ()


class TopicResponse(NamedTuple):
    topic_id: bytes  # 16 bytes
    partitions: Sequence[PartitionResponse]


class NodeEndpoint(NamedTuple):
    """Where a current leader named in the answer is to be found."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class Response(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    lock_timeout_ms: int = 0
    topics: Sequence[TopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()
    throttle_ms: int = 0


@refusing_nonsense
def decode_request(version: int, body: Buffer) -> Request:
    """Raises ProtocolError."""
    message = CompactReader(body)
    group_id, member_id = message.nullable_string(), message.nullable_string()
    numbers = _NUMBERS.unpack_from(message.data, message.position)
    session_epoch, max_wait_ms, min_bytes, max_bytes, max_records, batch_size = numbers
    message.position += _NUMBERS.size
    acquire_mode, is_renew = BATCH_OPTIMIZED, False
    if version >= 2:
        acquire_mode, is_renew = message.int8(), message.boolean()
    topics = read_topics(message)
    forgotten = []
    for _ in range(message.array(_MIN_TOPIC, PLACE_COST)):
        forgotten.append(Forgotten(message.uuid(), message.int32s()))
        message.tags()
    grace = message.tagged().get(GRACE_TAG)
    if grace is not None and len(grace) != 4:
        raise ProtocolError(f'a grace has 4 bytes, not {len(grace)}')
    return Request(
        group_id,
        member_id,
        session_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        max_records,
        batch_size,
        acquire_mode,
        is_renew,
        topics,
        forgotten,
        None if grace is None else int.from_bytes(grace, signed=True),
    )


def encode_request(version: int, request: Request) -> list[Buffer]:
    """What the version does not know is left out."""
    message = CompactWriter()
    message.string(request.group_id)
    message.string(request.member_id)
    message.out += _NUMBERS.pack(
        request.session_epoch,
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.max_records,
        request.batch_size,
    )
    if version >= 2:
        message.int8(request.acquire_mode)
        message.boolean(request.is_renew)
    write_topics(message, request.topics)
    message.array(len(request.forgotten))
    for topic_id, partitions in request.forgotten:
        message.uuid(topic_id)
        message.int32s(partitions)
        message.tags()
    grace = request.grace_ms
    message.tagged([] if grace is None else [(GRACE_TAG, grace.to_bytes(4, signed=True))])
    return message.buffers()


def encode_response(version: int, response: Response) -> list[Buffer]:
    """In pieces; the records are not copied and must stay unchanged until the answer is sent."""
    error_code, error, lock_timeout_ms, topics, endpoints, throttle_ms = response
    message = CompactWriter()
    if error is None:
        message.out += _HEAD.pack(throttle_ms, error_code, lock_timeout_ms)
    else:
        message.int32(throttle_ms)
        message.int16(error_code)
        message.string(error)
        message.int32(lock_timeout_ms)
    message.array(len(topics))
    for topic_id, partitions in topics:
        message.uuid(topic_id)
        message.array(len(partitions))
        for partition in partitions:
            _write_partition(message, partition)
        message.tags()
    write_endpoints(message, endpoints)
    message.tags()
    return message.buffers()


@refusing_nonsense
def decode_response(version: int, body: Buffer) -> Response:
    """Raises ProtocolError. Records are views into `body`."""
    message = CompactReader(body)
    throttle_ms, error_code, error_message = message.int32(), message.int16(), message.nullable_string()
    lock_timeout_ms = message.int32()
    topics = []
    for _ in range(message.array(_MIN_ANSWERED_TOPIC)):
        topic_id = message.uuid()
        partitions = [_read_partition(message) for _ in range(message.array(_MIN_ANSWERED_PARTITION))]
        message.tags()
        topics.append(TopicResponse(topic_id, partitions))
    endpoints = read_endpoints(message)
    message.tags()
    return Response(error_code, error_message, lock_timeout_ms, topics, endpoints, throttle_ms)


def read_topics(message: Reader) -> list[Topic]:
    """The array of topics that comes next in a request, with what became of records."""
    topics = []
    for _ in range(message.array(_MIN_TOPIC, PLACE_COST)):
        topic_id = message.uuid()
        partitions = []
        for _ in range(message.array(_MIN_PARTITION, PLACE_COST)):
            partitions.append(Partition(message.int32(), read_acknowledgements(message)))
            message.tags()
        message.tags()
        topics.append(Topic(topic_id, partitions))
    return topics


def write_topics(message: Writer, topics: Sequence[Topic]) -> None:
    """The array of topics of a request."""
    message.array(len(topics))
    for topic in topics:
        message.uuid(topic.topic_id)
        message.array(len(topic.partitions))
        for partition in topic.partitions:
            message.int32(partition.index)
            write_acknowledgements(message, partition.acknowledgements)
            message.tags()
        message.tags()


def _write_partition(message: CompactWriter, partition: PartitionResponse) -> None:
    index, error_code, error, ack_error_code, ack_error, leader_id, leader_epoch, records, acquired = partition
    if error is None and ack_error is None:
        message.out += _PLAIN.pack(index, error_code, ack_error_code, leader_id, leader_epoch)
    else:
        message.out += _PARTITION_HEAD.pack(index, error_code)
        message.string(error)
        message.int16(ack_error_code)
        message.string(ack_error)
        message.out += _LEADER.pack(leader_id, leader_epoch)
        message.tags()
    message.references(records)
    message.array(len(acquired))
    pack = _ACQUIRED.pack
    message.out += b''.join([pack(*taken) for taken in acquired])
    message.tags()


def _read_partition(message: CompactReader) -> PartitionResponse:
    index, error_code, error = message.int32(), message.int16(), message.nullable_string()
    ack_error_code, ack_error = message.int16(), message.nullable_string()
    leader_id, leader_epoch = message.int32(), message.int32()
    message.tags()
    records = message.nullable_view()
    acquired = []
    for _ in range(message.array(_ACQUIRED_SIZE)):
        acquired.append((message.int64(), message.int64(), message.int16()))
        message.tags()
    message.tags()
    return PartitionResponse(
        index, error_code, error, ack_error_code, ack_error, leader_id, leader_epoch, records, acquired
    )


def write_endpoints(message: Writer, endpoints: Sequence[NodeEndpoint]) -> None:
    """The array of node endpoints."""
    message.array(len(endpoints))
    for node_id, host, port, rack in endpoints:
        message.int32(node_id)
        message.string(host)
        message.int32(port)
        message.string(rack)
        message.tags()


def read_endpoints(message: Reader) -> list[NodeEndpoint]:
    """The array of node endpoints that comes next."""
    endpoints = []
    for _ in range(message.array(_MIN_ENDPOINT)):
        endpoints.append(NodeEndpoint(message.int32(), message.string(), message.int32(), message.nullable_string()))
        message.tags()
    return endpoints


class Codec:
    """The server's side of it."""

    decode = staticmethod(decode_request)
    encode = staticmethod(encode_response)


CODEC = Codec()
