"""What the client asks of a server: each API with the versions that the client speaks.

A call knows how to encode itself in a version and how to decode the answer; the connection picks the highest version
that both sides know. APIs that are called once per batch have hand-written codecs; all others are a table entry and
go through `acklog.wire.cold` as a mapping of field names, of which each version takes what it knows. So fields of
older and newer versions stand side by side in one mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from acklog.wire import cold
from acklog.wire.primitives import Buffer

T_co = TypeVar('T_co', covariant=True)
R = TypeVar('R')
A = TypeVar('A')


class Api(NamedTuple):
    """An API as the client speaks it: `versions` are (lowest, highest)."""

    key: int
    name: str
    versions: tuple[int, int]


PRODUCE = Api(0, 'Produce', (3, 13))
LIST_OFFSETS = Api(2, 'ListOffsets', (1, 9))
METADATA = Api(3, 'Metadata', (10, 13))
FIND_COORDINATOR = Api(10, 'FindCoordinator', (1, 5))
LIST_GROUPS = Api(16, 'ListGroups', (0, 5))
API_VERSIONS = Api(18, 'ApiVersions', (0, 3))
CREATE_TOPICS = Api(19, 'CreateTopics', (4, 7))
DELETE_TOPICS = Api(20, 'DeleteTopics', (1, 6))
INIT_PRODUCER_ID = Api(22, 'InitProducerId', (0, 5))
DESCRIBE_CONFIGS = Api(32, 'DescribeConfigs', (1, 4))
DELETE_GROUPS = Api(42, 'DeleteGroups', (0, 2))
INCREMENTAL_ALTER_CONFIGS = Api(44, 'IncrementalAlterConfigs', (0, 1))
SHARE_GROUP_HEARTBEAT = Api(76, 'ShareGroupHeartbeat', (1, 1))
SHARE_GROUP_DESCRIBE = Api(77, 'ShareGroupDescribe', (1, 1))
SHARE_FETCH = Api(78, 'ShareFetch', (1, 2))
SHARE_ACKNOWLEDGE = Api(79, 'ShareAcknowledge', (1, 2))
DESCRIBE_SHARE_GROUP_OFFSETS = Api(90, 'DescribeShareGroupOffsets', (0, 1))


class Call(Protocol[T_co]):
    """A request that can be encoded in any of its API's versions, and how to read the answer."""

    @property
    def api(self) -> Api: ...

    def encode(self, version: int) -> Sequence[Buffer]: ...

    def decode(self, version: int, body: memoryview) -> T_co: ...


class Cold(NamedTuple):
    """A call of an API without a codec of its own. The answer is kio's entity of the version that was spoken."""

    api: Api
    fields: Mapping[str, Any]

    def encode(self, version: int) -> Sequence[Buffer]:
        return [cold.encode_request(self.api.key, version, self.fields)]

    def decode(self, version: int, body: memoryview) -> Any:
        return cold.decode_response(self.api.key, version, body)


@dataclass(frozen=True, slots=True)
class Hot(Generic[R, A]):
    """A call of an API that has its own codec, given as its two functions for a client."""

    api: Api
    encoder: Callable[[int, R], Sequence[Buffer]]
    decoder: Callable[[int, Buffer], A]
    request: R

    def encode(self, version: int) -> Sequence[Buffer]:
        return self.encoder(version, self.request)

    def decode(self, version: int, body: memoryview) -> A:
        return self.decoder(version, body)
