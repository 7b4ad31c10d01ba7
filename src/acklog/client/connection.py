"""One connection to one server: requests out, answers matched by correlation id.

Strategy: asyncio's BufferedProtocol feeds `acklog.wire.stream.FrameReader`; an answer is given to whoever awaits it.
A server answers a connection's requests in their order, so a call that gets no answer in time makes the connection
useless for those behind it: it is closed, and whoever needs it opens another. A caller that is cancelled leaves its
place in the order; its answer is dropped when it comes.

Bounded: at most `MAX_IN_FLIGHT` requests await their answers, further calls wait for a place; an answer above
`max_answer_bytes` closes the connection; when the server reads slowly, calls wait until the socket takes more.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from typing import Any, TypeVar

from acklog.client.calls import API_VERSIONS, Api, Call, Cold
from acklog.client.errors import ClientClosed, Disconnected, TimedOut, Unreachable, Unsupported, check
from acklog.errors import ProtocolError
from acklog.wire.error_code import ErrorCode
from acklog.wire.frame import correlation_id, request_frame, response_body
from acklog.wire.stream import FrameReader

T = TypeVar('T')

ACKLOG_FEATURE = 'acklog.release.at'  # a server that names it is acklog, and knows of times and words

MAX_IN_FLIGHT = 64
MAX_ANSWER_BYTES = 256 << 20


class Connection:
    """A connection that has agreed on versions. Made by `open_connection`."""

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self.host, self.port, self.client_id = host, port, client_id
        self.versions: dict[int, tuple[int, int]] = {}  # what the server offers: API key -> (lowest, highest)
        self.features: dict[str, tuple[int, int]] = {}  # what else it says of itself: name -> (lowest, highest)
        self._link = _Link()
        self._ids = itertools.count(1)

    @property
    def address(self) -> str:
        """`host:port`, for messages."""
        return f'{self.host}:{self.port}'

    @property
    def closed(self) -> bool:
        """Whether no further call can succeed."""
        return self._link.failure is not None

    def version(self, api: Api) -> int:
        """The highest version that both sides know. Raises Unsupported."""
        offered = self.versions.get(api.key)
        if offered is None:
            raise Unsupported(f'the server at {self.address} does not offer {api.name}')
        version = min(offered[1], api.versions[1])
        if version < max(offered[0], api.versions[0]):
            raise Unsupported(
                f'the server at {self.address} offers {api.name} in versions {offered[0]} to {offered[1]}, '
                f'this client speaks {api.versions[0]} to {api.versions[1]}'
            )
        return version

    def offers(self, api: Api, version: int | None = None) -> bool:
        """Whether the server offers the API, in this version if one is named."""
        lowest, highest = self.versions.get(api.key, (0, -1))
        return lowest <= highest and (version is None or lowest <= version <= highest)

    async def call(self, call: Call[T], within: float) -> T:
        """Send the request and return the decoded answer.

        `within`: seconds until TimedOut is raised and the connection closed. Raises Unsupported before anything is
        sent; Disconnected when the connection is lost; ProtocolError when the answer makes no sense.
        """
        return await self._call(call, self.version(call.api), within)

    async def tell(self, call: Call[object]) -> None:
        """Send a request that has no answer (Produce with acks=0). Raises Unsupported or Disconnected."""
        version = self.version(call.api)
        await self._link.writable.wait()
        self._link.write(self._frame(call, version, next(self._ids)))

    async def negotiate(self, within: float) -> None:
        """Ask which versions the server offers (KIP-511: one that does not know our version answers in version 0)."""
        from acklog import __version__

        highest = API_VERSIONS.versions[1]
        fields = {'client_software_name': 'acklog', 'client_software_version': __version__}
        answer = await self._call(_Versions(API_VERSIONS, fields), highest, within)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = await self._call(_Versions(API_VERSIONS, fields), 0, within)
        check(answer.error_code, f'the server at {self.address}')
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        features = getattr(answer, 'supported_features', ())
        self.features = {feature.name: (feature.min_version, feature.max_version) for feature in features}

    async def _call(self, call: Call[T], version: int, within: float) -> T:
        try:
            async with asyncio.timeout(within):
                frame = await (await self._ask(call, version))
        except TimeoutError:
            error = TimedOut(f'no answer to {call.api.name} from {self.address} within {within:g} s')
            self._link.end(error)
            raise error from None
        try:
            return call.decode(version, response_body(call.api.key, version, frame))
        except ProtocolError as error:
            self._link.end(error)
            raise

    async def _ask(self, call: Call[object], version: int) -> asyncio.Future[memoryview]:
        link = self._link
        await link.places.acquire()
        try:
            await link.writable.wait()
            correlation = next(self._ids)
            link.write(self._frame(call, version, correlation))
        except BaseException:
            link.places.release()
            raise
        link.waiting[correlation] = answer = asyncio.get_running_loop().create_future()
        return answer

    def _frame(self, call: Call[object], version: int, correlation: int) -> bytes:
        return b''.join(request_frame(call.api.key, version, correlation, self.client_id, call.encode(version)))

    async def close(self) -> None:
        """Close it; what was written is sent first, for up to a second; calls that still wait raise ClientClosed."""
        await self._link.close()


class _Versions(Cold):
    """The one answer whose version is not known beforehand: an error may be in version 0, whatever was asked."""

    def decode(self, version: int, body: memoryview) -> Any:
        if version and body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2):
            version = 0
        return super().decode(version, body)


class _Link(asyncio.BufferedProtocol):
    """The asyncio side of a connection: takes bytes in, completes futures, knows why it ended."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[memoryview]] = {}
        self.failure: Exception | None = None
        self.places = asyncio.Semaphore(MAX_IN_FLIGHT)
        self.writable = asyncio.Event()
        self.gone = asyncio.Event()
        self._frames = FrameReader(MAX_ANSWER_BYTES)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.received(nbytes):
                answer = self.waiting.pop(correlation_id(frame), None)
                if answer is None:
                    raise ProtocolError('an answer that nobody asked for')
                self.places.release()
                if not answer.done():  # else its caller was cancelled
                    answer.set_result(frame)
        except ProtocolError as error:
            self.end(error)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(Disconnected(f'the server closed the connection{f": {exc}" if exc else ""}'))
        self.gone.set()

    def write(self, data: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        assert self._transport is not None
        self._transport.write(data)

    def end(self, failure: Exception) -> None:
        """Nothing more will come: the first failure counts, and all that wait get it."""
        self._fail(failure)
        if self._transport is None:
            self.gone.set()
        else:
            self._transport.abort()

    async def close(self) -> None:
        self._fail(ClientClosed('the connection was closed'))
        if self._transport is None:
            return
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self.gone.wait()
        self._transport.abort()

    def _fail(self, failure: Exception) -> None:
        if self.failure is None:
            self.failure = failure
        self.writable.set()
        waiting, self.waiting = self.waiting, {}
        for answer in waiting.values():
            self.places.release()
            if not answer.done():
                answer.set_exception(self.failure)
                answer.exception()  # whoever awaited it may be gone; that is no fault


async def open_connection(host: str, port: int, *, client_id: str, within: float) -> Connection:
    """Connect and agree on versions; `within`: seconds for both. Raises Unreachable, or Unsupported when what
    answers there does not speak Kafka's protocol from version 2.4 on."""
    connection = Connection(host, port, client_id)
    try:
        async with asyncio.timeout(within):
            await _connect(connection)
            await connection.negotiate(within)
    except TimeoutError:
        await connection.close()
        raise Unreachable(f'no server answers at {host}:{port} within {within:g} s') from None
    except (OSError, Disconnected, TimedOut) as error:
        await connection.close()
        raise Unreachable(f'no server answers at {host}:{port}: {_words(error)}') from None
    except ProtocolError as error:
        await connection.close()
        raise Unsupported(f'what answers at {host}:{port} does not speak the Kafka protocol: {error}') from None
    except BaseException:
        await connection.close()
        raise
    return connection


async def _connect(connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(lambda: connection._link, connection.host, connection.port)
    sock = transport.get_extra_info('socket')
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _words(error: Exception) -> str:
    """What went wrong while connecting, short: asyncio's own message repeats the address."""
    if isinstance(error, ConnectionRefusedError):
        return 'the connection was refused'
    if isinstance(error, socket.gaierror):
        return f'the name is not known ({error.strerror})'
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
