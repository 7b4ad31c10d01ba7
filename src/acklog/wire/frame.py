"""Frames: the headers of requests and answers, and which versions are flexible.

A frame is a four-byte length and a message. A message begins with a header, whose form hangs on the API's version:
see `FIRST_FLEXIBLE`. Request header v1 is key, version, correlation id, client id; v2 adds tagged fields. Response
header v0 is the correlation id, v1 adds tagged fields. The client id stays a legacy string in v2, and answers to
ApiVersions have header v0 in every version, because a client that asks does not know yet what its peer understands
(KIP-511).

Splitting a stream into frames is in `acklog.wire.stream`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from acklog.errors import ProtocolError
from acklog.wire.primitives import Buffer
from acklog.wire.reader import CompactReader, Reader, refusing_nonsense

API_VERSIONS = 18

NEVER = 1 << 15  # above every version

# First flexible version of each API's requests and answers (Kafka's message definitions, "flexibleVersions").
FIRST_FLEXIBLE: dict[int, int] = {
    0: 9,  # Produce
    1: 12,  # Fetch
    2: 6,  # ListOffsets
    3: 9,  # Metadata
    8: 8,  # OffsetCommit
    9: 6,  # OffsetFetch
    10: 3,  # FindCoordinator
    11: 6,  # JoinGroup
    12: 4,  # Heartbeat
    13: 4,  # LeaveGroup
    14: 4,  # SyncGroup
    15: 5,  # DescribeGroups
    16: 3,  # ListGroups
    17: NEVER,  # SaslHandshake
    18: 3,  # ApiVersions
    19: 5,  # CreateTopics
    20: 4,  # DeleteTopics
    21: 2,  # DeleteRecords
    22: 2,  # InitProducerId
    23: 4,  # OffsetForLeaderEpoch
    24: 3,  # AddPartitionsToTxn
    25: 3,  # AddOffsetsToTxn
    26: 3,  # EndTxn
    27: 1,  # WriteTxnMarkers
    28: 3,  # TxnOffsetCommit
    29: 2,  # DescribeAcls
    30: 2,  # CreateAcls
    31: 2,  # DeleteAcls
    32: 4,  # DescribeConfigs
    33: 2,  # AlterConfigs
    34: 2,  # AlterReplicaLogDirs
    35: 2,  # DescribeLogDirs
    36: 2,  # SaslAuthenticate
    37: 2,  # CreatePartitions
    38: 2,  # CreateDelegationToken
    39: 2,  # RenewDelegationToken
    40: 2,  # ExpireDelegationToken
    41: 2,  # DescribeDelegationToken
    42: 2,  # DeleteGroups
    43: 2,  # ElectLeaders
    44: 1,  # IncrementalAlterConfigs
    45: 0,  # AlterPartitionReassignments
    46: 0,  # ListPartitionReassignments
    47: NEVER,  # OffsetDelete
    48: 1,  # DescribeClientQuotas
    49: 1,  # AlterClientQuotas
    50: 0,  # DescribeUserScramCredentials
    51: 0,  # AlterUserScramCredentials
    55: 0,  # DescribeQuorum
    57: 0,  # UpdateFeatures
    60: 0,  # DescribeCluster
    61: 0,  # DescribeProducers
    64: 0,  # UnregisterBroker
    65: 0,  # DescribeTransactions
    66: 0,  # ListTransactions
    68: 0,  # ConsumerGroupHeartbeat
    69: 0,  # ConsumerGroupDescribe
    71: 0,  # GetTelemetrySubscriptions
    72: 0,  # PushTelemetry
    74: 0,  # ListConfigResources
    75: 0,  # DescribeTopicPartitions
    76: 0,  # ShareGroupHeartbeat
    77: 0,  # ShareGroupDescribe
    78: 0,  # ShareFetch
    79: 0,  # ShareAcknowledge
    83: 0,  # InitializeShareGroupState
    84: 0,  # ReadShareGroupState
    85: 0,  # WriteShareGroupState
    86: 0,  # DeleteShareGroupState
    87: 0,  # ReadShareGroupStateSummary
    88: 0,  # StreamsGroupHeartbeat
    89: 0,  # StreamsGroupDescribe
    90: 0,  # DescribeShareGroupOffsets
    91: 0,  # AlterShareGroupOffsets
    92: 0,  # DeleteShareGroupOffsets
}

_REQUEST = struct.Struct('>hhih')
_RESPONSE = struct.Struct('>ii')
_CORRELATION = struct.Struct('>i')


class RequestHeader(NamedTuple):
    """What a request says before its body.

    `api_key`, `version`: -32768 to 32767, not yet looked at; `correlation_id`: int32, comes back in the answer;
    `body`: view into the frame. For an API that `FIRST_FLEXIBLE` does not list the body is not to be relied on.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: memoryview


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version has compact types and tagged fields. False for APIs that are not listed."""
    return version >= FIRST_FLEXIBLE.get(api_key, NEVER)


@refusing_nonsense
def read_request_header(frame: memoryview) -> RequestHeader:
    """Header and body of a request. `frame`: without its length. Raises ProtocolError."""
    api_key, version, correlation_id, size = _REQUEST.unpack_from(frame)
    position = 10
    client_id = None
    if size >= 0:
        position += size
        if position > len(frame):
            raise ProtocolError(f'a client id of {size} bytes in a frame of {len(frame)}')
        client_id = str(frame[10:position], 'utf-8')
    elif size != -1:
        raise ProtocolError(f'a client id of {size} bytes')
    if is_flexible(api_key, version):
        if frame[position]:
            tail = CompactReader(frame[position:])
            tail.tags()
            position += tail.position
        else:
            position += 1
    return RequestHeader(api_key, version, correlation_id, client_id, frame[position:])


def response_frame(api_key: int, version: int, correlation_id: int, body: Iterable[Buffer]) -> list[Buffer]:
    """A whole answer: length, header and body, in pieces to be sent one after the other. The body is not copied."""
    pieces = list(body)
    size = 4 + sum(map(len, pieces))
    if is_flexible(api_key, version) and api_key != API_VERSIONS:
        head = _RESPONSE.pack(size + 1, correlation_id) + b'\0'
    else:
        head = _RESPONSE.pack(size, correlation_id)
    return [head, *pieces]


def request_frame(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Iterable[Buffer]
) -> list[Buffer]:
    """A whole request: length, header and body, in pieces to be sent one after the other. The body is not copied."""
    pieces = list(body)
    name = b'' if client_id is None else client_id.encode()
    head = _REQUEST.pack(api_key, version, correlation_id, -1 if client_id is None else len(name)) + name
    if is_flexible(api_key, version):
        head += b'\0'
    return [_CORRELATION.pack(len(head) + sum(map(len, pieces))) + head, *pieces]


@refusing_nonsense
def correlation_id(frame: memoryview) -> int:
    """Which request an answer belongs to. `frame`: without its length. Raises ProtocolError."""
    return _CORRELATION.unpack_from(frame)[0]  # type: ignore[no-any-return]


@refusing_nonsense
def response_body(api_key: int, version: int, frame: memoryview) -> memoryview:
    """Body of an answer to a request of this version: a view into the frame. Raises ProtocolError."""
    flexible = is_flexible(api_key, version) and api_key != API_VERSIONS
    message = CompactReader(frame) if flexible else Reader(frame)
    message.int32()
    message.tags()
    return frame[message.position :]
