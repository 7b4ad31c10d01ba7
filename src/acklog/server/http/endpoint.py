"""One operation of the API: method, path, and a function whose signature says the rest.

    @endpoint('POST', '/v1/topics', tag='topics', status=201, refuses=(409, 422))
    async def create_topic(call: Call, body: NewTopic) -> TopicView:
        '''Create a topic. ...'''

Parameters: `call`; those of the path by name; `query`, a Struct with one field for each query parameter; `body`, what
the JSON body is decoded to, and with `bytes` in its union what comes as application/octet-stream as it is. What comes
back is the answer's JSON, or a `Raw`, `Stream` or None (no content). The OpenAPI document is made from the same
signature, so it says what the code does.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from acklog.broker.api import Caller

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.server.http.listener import HttpListener

JSON = 'application/json'
OCTETS = 'application/octet-stream'
EVENTS = 'text/event-stream'
CONNECTION = 'acklog.connection'  # in the state of an ASGI scope


@dataclass(slots=True)
class Call:
    """One request. `headers`: by name in lower case; `location`: the path of what it has made; `unsent`: is called if
    the answer certainly does not reach the client."""

    listener: HttpListener
    caller: Caller
    headers: Mapping[str, str]
    location: str | None = None
    unsent: Callable[[], None] | None = None

    @property
    def broker(self) -> Broker:
        return self.listener.broker


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is no JSON."""

    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer without end."""

    pieces: AsyncGenerator[bytes, None]
    media_type: str


Handler = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`refuses`: statuses that it may answer with besides those that every operation may. `headers`: of the request, by
    name: what they mean and their pattern. `examples`: (of the body, of the answer). `waits`: it may take long, so
    that its client may go meanwhile."""

    method: str
    path: str
    tag: str
    handle: Handler
    status: int = 200
    refuses: Sequence[int] = ()
    headers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    examples: tuple[Any, Any] = (None, None)
    media_types: Sequence[str] = (JSON,)
    waits: bool = False
    path_types: Mapping[str, Any]
    query: Any = None
    body: Any = None  # type of the JSON body; None: there is no body
    body_optional: bool = False
    raw: bool = False  # the body may be bytes
    answer: Any = None

    @property
    def name(self) -> str:
        return self.handle.__name__

    @property
    def words(self) -> str:
        """What it does."""
        return inspect.getdoc(self.handle) or ''


def endpoint(method: str, path: str, *, tag: str, **more: Any) -> Callable[[Handler], Endpoint]:
    """See the module's docstring; `more`: attributes of `Endpoint`."""

    def make(handle: Handler) -> Endpoint:
        hints = get_type_hints(handle, include_extras=True)
        parameters = inspect.signature(handle).parameters
        names = [part[1:-1] for part in path.split('/') if part.startswith('{')]
        body = hints.get('body')
        raw = False
        if body is not None:
            parts = get_args(body) if get_origin(body) in (Union, types.UnionType) else (body,)
            raw = bytes in parts
            [body] = [part for part in parts if part is not bytes]
        unknown = set(parameters) - {'call', 'query', 'body', *names}
        assert not unknown and set(names) <= set(parameters), (path, unknown)
        return Endpoint(
            method=method,
            path=path,
            tag=tag,
            handle=handle,
            path_types={name: hints[name] for name in names},
            query=hints.get('query'),
            body=body,
            body_optional=body is not None and not any(part.required for part in _fields(body)),
            raw=raw,
            answer=hints.get('return'),
            **more,
        )

    return make


def _fields(struct: Any) -> Sequence[Any]:
    import msgspec

    return msgspec.structs.fields(struct)
