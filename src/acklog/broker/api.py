"""What an API of the Kafka protocol is to the broker: key, versions, codec, handler, together in one place.

Each file in `apis/` defines one `API = Api(...)`; `apis/__init__.py` lists them; ApiVersions follows from that list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

Buffers = Sequence[bytes | bytearray | memoryview]


class Refused(AcklogError):
    """A request, or a part of one, is answered with an error: Kafka's code and words that name what was wrong."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


SHOWN = 64  # characters of what a client calls itself in a log line


def _boundless() -> int:
    return 1 << 31


@dataclass(slots=True, eq=False)
class Caller:
    """Who sent a request. One object per connection, so that identity means 'the same connection'."""

    address: str
    principal: str = 'ANONYMOUS'
    client_id: str | None = None
    software: str = ''  # name and version of the client library, where ApiVersions told
    closed: bool = False
    alone: bool = False  # nobody has asked for anything right before: nothing is gained by waiting for others
    on_close: dict[Callable[[], None], None] = field(default_factory=dict)  # called once, when the connection is gone
    order: asyncio.Lock | None = None  # held by a publish of many partitions while it begins: the next begins after it
    room: Callable[[], int] = _boundless  # bytes that an answer may have now; 0: its client takes none of the earlier

    def __str__(self) -> str:
        """For a line of the log."""
        names = [name[:SHOWN] for name in (self.client_id, self.software) if name]
        return f'{self.address} ({", ".join(names)})' if names else self.address


class Codec(Protocol):
    """Hand-written codec of a hot API. `decode` raises ProtocolError."""

    def decode(self, version: int, body: memoryview) -> Any: ...

    def encode(self, version: int, response: Any) -> Buffers: ...


Handler = Callable[['Broker', Caller, int, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Api:
    """One API.

    `versions`: (lowest, highest) that are served. `handle(broker, caller, version, request)` returns the response or
    None for no answer at all. With a `codec` request and response are its types; without one they go through
    `acklog.wire.cold`: the request is kio's entity of that version, the response a dict of kio's field names, from
    which what the version does not know is left out.
    """

    key: int
    name: str
    versions: tuple[int, int]
    handle: Handler
    codec: Codec | None = None
