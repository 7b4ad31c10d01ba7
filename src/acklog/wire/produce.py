"""Produce, versions 3 to 13 (API key 0), both ways.

    3     record batches v2; transactional id
    5     answer: log start offset
    8     answer: record errors and a message (KIP-467)
    9     flexible
    10    answer, tagged: current leader and node endpoints (KIP-951)
    13    topic ids instead of names (KIP-516)

Versions 4, 6, 7, 11 and 12 look like the ones before. Records are views into the frame, never copied or unpacked here.

Strategy: nearly all requests of clients that send one record at a time are for one partition of one topic, without
tags. That shape is read and written by itself, in a fifth of the time; anything else takes the general way.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from acklog.wire.primitives import Buffer
from acklog.wire.reader import Reader, reader, refusing_nonsense
from acklog.wire.writer import Writer, writer

API_KEY = 0
FIRST_FLEXIBLE = 9
TOPIC_IDS = 13  # from this version on

_MIN_TOPIC = 2  # bytes that a topic takes at least, so that a count of them can be refused
_MIN_PARTITION = 5

_MAX_ELEMENTS = 50_000  # more than twice the partitions that there may be by default, each with a topic around it

_SETTINGS = struct.Struct('>hi')
_INT = struct.Struct('>i')
_PARTITION = struct.Struct('>ihqqqB')  # without record errors, up to the words
_ONE = struct.Struct('>ihqqqBBBBiB')  # a partition, no record errors, no words, no tags twice, throttle time, no tags


class Partition(NamedTuple):
    """What is to be appended to one partition. `records`: batches, None if none were sent."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    records: Buffer | None


class Topic(NamedTuple):
    """`name` up to v12 (else ''), `topic_id` (16 bytes) from v13 on (else None)."""

    name: str
    topic_id: bytes | None
    partitions: Sequence[Partition]


class Request(NamedTuple):
    """`acks`: 0, 1 or -1 (all); other values are not checked here. `timeout_ms`: int32."""

    acks: int
    timeout_ms: int
    transactional_id: str | None
    topics: Sequence[Topic]


class PartitionResponse(NamedTuple):
    """`base_offset`: of the first record; `append_time`: ms where the log sets timestamps, else -1."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    error_code: int
    base_offset: int = -1
    append_time: int = -1
    log_start: int = -1
    error_message: str | None = None


class TopicResponse(NamedTuple):
    name: str
    topic_id: bytes | None
    partitions: Sequence[PartitionResponse]


class Response(NamedTuple):
    topics: Sequence[TopicResponse]
    throttle_ms: int = 0


@refusing_nonsense
def decode_request(version: int, body: Buffer) -> Request:
    """Raises ProtocolError."""
    if version >= FIRST_FLEXIBLE and (request := _decode_one(version, body)) is not None:
        return request
    message = reader(body, flexible=version >= FIRST_FLEXIBLE, elements=_MAX_ELEMENTS)
    transactional_id = message.nullable_string()
    acks, timeout_ms = message.int16(), message.int32()
    topics = []
    for _ in range(message.array(_MIN_TOPIC)):
        name, topic_id = _read_topic(message, version)
        partitions = []
        for _ in range(message.array(_MIN_PARTITION)):
            partitions.append(Partition(message.int32(), message.nullable_view()))
            message.tags()
        message.tags()
        topics.append(Topic(name, topic_id, partitions))
    message.tags()
    return Request(acks, timeout_ms, transactional_id, topics)


def _decode_one(version: int, body: Buffer) -> Request | None:
    """A request for one partition, without transactional id or tags; None if it is anything else, or broken."""
    try:
        if body[0] or body[7] != 2:
            return None
        acks, timeout_ms = _SETTINGS.unpack_from(body, 1)
        if version >= TOPIC_IDS:
            name, topic_id, at = '', bytes(body[8:24]), 24
        else:
            at = 8 + body[8]
            if body[8] > 127 or at == 8:
                return None
            name, topic_id = str(body[9:at], 'utf-8'), None
        if body[at] != 2:
            return None
        (index,) = _INT.unpack_from(body, at + 1)
        at += 5
        size, shift = body[at], 0
        if size > 127:
            size &= 127
            while body[at] > 127 and shift < 28:  # of more bytes the number would grow with each
                at += 1
                shift += 7
                size |= (body[at] & 127) << shift
        end = at + size
        if body[at] > 127 or not size or body[end] or body[end + 1] or body[end + 2]:
            return None
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    partition = Partition(index, memoryview(body)[at + 1 : end])
    return Request(acks, timeout_ms, None, [Topic(name, topic_id, [partition])])


def encode_request(version: int, request: Request) -> list[Buffer]:
    """In pieces; the records are not copied and must stay unchanged until the request is sent."""
    message = writer(flexible=version >= FIRST_FLEXIBLE)
    message.string(request.transactional_id)
    message.int16(request.acks)
    message.int32(request.timeout_ms)
    message.array(len(request.topics))
    for topic in request.topics:
        _write_topic(message, version, topic.name, topic.topic_id)
        message.array(len(topic.partitions))
        for partition in topic.partitions:
            message.int32(partition.index)
            message.reference(partition.records)
            message.tags()
        message.tags()
    message.tags()
    return message.buffers()


def encode_response(version: int, response: Response) -> list[Buffer]:
    """What the version does not know is left out."""
    if version >= FIRST_FLEXIBLE and len(response.topics) == 1 and len(response.topics[0].partitions) == 1:
        partition = response.topics[0].partitions[0]
        if partition.error_message is None:
            return [_encode_one(version, response.topics[0], partition, response.throttle_ms)]
    return _general(version, response)


def _general(version: int, response: Response) -> list[Buffer]:
    message = writer(flexible=version >= FIRST_FLEXIBLE)
    message.array(len(response.topics))
    for topic in response.topics:
        _write_topic(message, version, topic.name, topic.topic_id)
        message.array(len(topic.partitions))
        for partition in topic.partitions:
            _write_partition(message, version, partition)
        message.tags()
    message.int32(response.throttle_ms)
    message.tags()
    return message.buffers()


def _encode_one(version: int, topic: TopicResponse, partition: PartitionResponse, throttle_ms: int) -> bytes:
    """An answer about one partition, without words about an error."""
    if version >= TOPIC_IDS:
        name = topic.topic_id or bytes(16)
    else:
        text = topic.name.encode()
        if len(text) > 126:
            return b''.join(_general(version, Response((topic,), throttle_ms)))
        name = bytes((len(text) + 1,)) + text
    index, error_code, base_offset, append_time, log_start, _ = partition
    return b'\2%b\2%b' % (
        name,
        _ONE.pack(index, error_code, base_offset, append_time, log_start, 1, 0, 0, 0, throttle_ms, 0),
    )


@refusing_nonsense
def decode_response(version: int, body: Buffer) -> Response:
    """Raises ProtocolError. Errors of single records, current leader and node endpoints are passed over."""
    message = reader(body, flexible=version >= FIRST_FLEXIBLE)
    topics = []
    for _ in range(message.array(_MIN_TOPIC)):
        name, topic_id = _read_topic(message, version)
        partitions = [_read_partition(message, version) for _ in range(message.array(22))]
        message.tags()
        topics.append(TopicResponse(name, topic_id, partitions))
    throttle_ms = message.int32()
    message.tags()
    return Response(topics, throttle_ms)


def _read_topic(message: Reader, version: int) -> tuple[str, bytes | None]:
    if version >= TOPIC_IDS:
        return '', message.uuid()
    return message.string(), None


def _write_topic(message: Writer, version: int, name: str, topic_id: bytes | None) -> None:
    if version >= TOPIC_IDS:
        message.uuid(topic_id or bytes(16))
    else:
        message.string(name)


def _write_partition(message: Writer, version: int, partition: PartitionResponse) -> None:
    if version >= FIRST_FLEXIBLE:
        message.out += _PARTITION.pack(*partition[:5], 1)
        message.string(partition.error_message)
        message.tags()
        return
    message.int32(partition.index)
    message.int16(partition.error_code)
    message.int64(partition.base_offset)
    message.int64(partition.append_time)
    if version >= 5:
        message.int64(partition.log_start)
    if version >= 8:
        message.array(0)  # errors of single records
        message.string(partition.error_message)
    message.tags()


def _read_partition(message: Reader, version: int) -> PartitionResponse:
    index, error_code, base_offset = message.int32(), message.int16(), message.int64()
    append_time = message.int64()
    log_start = message.int64() if version >= 5 else -1
    error_message = None
    if version >= 8:
        for _ in range(message.array(5)):
            message.int32()
            message.nullable_string()
            message.tags()
        error_message = message.nullable_string()
    message.tags()
    return PartitionResponse(index, error_code, base_offset, append_time, log_start, error_message)


class Codec:
    """The server's side of it."""

    decode = staticmethod(decode_request)
    encode = staticmethod(encode_response)


CODEC = Codec()
