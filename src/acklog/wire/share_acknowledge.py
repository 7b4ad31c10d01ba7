"""ShareAcknowledge, versions 1 and 2 (API key 79, KIP-932), both ways.

    1   all of it, flexible
    2   is_renew in the request, the lock's duration in the answer (KIP-1222)

Its topics with acknowledgements look like those of ShareFetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from acklog.wire.primitives import Buffer
from acklog.wire.reader import CompactReader, refusing_nonsense
from acklog.wire.share_fetch import NodeEndpoint, read_endpoints, read_topics, write_endpoints, write_topics
from acklog.wire.share_fetch import Partition as Partition
from acklog.wire.share_fetch import Topic as Topic
from acklog.wire.writer import CompactWriter

API_KEY = 79

_MIN_ANSWERED_TOPIC = 18  # bytes, at least
_MIN_ANSWERED_PARTITION = 17


class Request(NamedTuple):
    """`session_epoch`: that of the share session, -1 closes it; topics and partitions are those of ShareFetch."""

    group_id: str | None
    member_id: str | None
    session_epoch: int
    is_renew: bool
    topics: Sequence[Topic]


class PartitionResponse(NamedTuple):
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    error_code: int = 0
    error_message: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1


class TopicResponse(NamedTuple):
    topic_id: bytes  # 16 bytes
    partitions: Sequence[PartitionResponse]


class Response(NamedTuple):
    """`lock_timeout_ms` is sent from v2 on."""

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
    session_epoch = message.int32()
    is_renew = version >= 2 and message.boolean()
    topics = read_topics(message)
    message.tags()
    return Request(group_id, member_id, session_epoch, is_renew, topics)


def encode_request(version: int, request: Request) -> list[Buffer]:
    """What the version does not know is left out."""
    message = CompactWriter()
    message.string(request.group_id)
    message.string(request.member_id)
    message.int32(request.session_epoch)
    if version >= 2:
        message.boolean(request.is_renew)
    write_topics(message, request.topics)
    message.tags()
    return message.buffers()


def encode_response(version: int, response: Response) -> list[Buffer]:
    """What the version does not know is left out."""
    message = CompactWriter()
    message.int32(response.throttle_ms)
    message.int16(response.error_code)
    message.string(response.error_message)
    if version >= 2:
        message.int32(response.lock_timeout_ms)
    message.array(len(response.topics))
    for topic in response.topics:
        message.uuid(topic.topic_id)
        message.array(len(topic.partitions))
        for index, error_code, error_message, leader_id, leader_epoch in topic.partitions:
            message.int32(index)
            message.int16(error_code)
            message.string(error_message)
            message.int32(leader_id)
            message.int32(leader_epoch)
            message.tags()  # of the leader
            message.tags()
        message.tags()
    write_endpoints(message, response.node_endpoints)
    message.tags()
    return message.buffers()


@refusing_nonsense
def decode_response(version: int, body: Buffer) -> Response:
    """Raises ProtocolError."""
    message = CompactReader(body)
    throttle_ms, error_code, error_message = message.int32(), message.int16(), message.nullable_string()
    lock_timeout_ms = message.int32() if version >= 2 else 0
    topics = []
    for _ in range(message.array(_MIN_ANSWERED_TOPIC)):
        topic_id = message.uuid()
        partitions = [_read_partition(message) for _ in range(message.array(_MIN_ANSWERED_PARTITION))]
        message.tags()
        topics.append(TopicResponse(topic_id, partitions))
    endpoints = read_endpoints(message)
    message.tags()
    return Response(error_code, error_message, lock_timeout_ms, topics, endpoints, throttle_ms)


def _read_partition(message: CompactReader) -> PartitionResponse:
    index, error_code, error_message = message.int32(), message.int16(), message.nullable_string()
    leader_id, leader_epoch = message.int32(), message.int32()
    message.tags()  # of the leader
    message.tags()
    return PartitionResponse(index, error_code, error_message, leader_id, leader_epoch)


class Codec:
    """The server's side of it."""

    decode = staticmethod(decode_request)
    encode = staticmethod(encode_response)


CODEC = Codec()
