"""A connection to a peer that does what the test says, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from acklog.client.calls import API_VERSIONS, FIND_COORDINATOR, LIST_GROUPS, Cold
from acklog.client.connection import MAX_ANSWER_BYTES, MAX_IN_FLIGHT, Connection, open_connection
from acklog.client.errors import ClientClosed, Disconnected, TimedOut, Unreachable, Unsupported
from acklog.errors import ProtocolError
from acklog.wire import cold
from acklog.wire.frame import RequestHeader, read_request_header, response_frame

LIST = Cold(LIST_GROUPS, {})
LISTED = {'groups': [{'group_id': 'g', 'protocol_type': 'share', 'group_state': 'Stable', 'group_type': 'share'}]}


class Peer:
    """The other side of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> RequestHeader:
        (size,) = struct.unpack('>i', await self.reader.readexactly(4))
        return read_request_header(memoryview(await self.reader.readexactly(size)))

    def answer(self, request: RequestHeader, fields: dict[str, Any], version: int | None = None) -> None:
        version = request.version if version is None else version
        body = cold.encode_response(request.api_key, version, fields)
        self.writer.write(b''.join(response_frame(request.api_key, version, request.correlation_id, [body])))

    async def greet(self) -> None:
        """Answer ApiVersions: ListGroups in all versions, and nothing else."""
        offered = {LIST_GROUPS.key: (0, 5), API_VERSIONS.key: (0, 3)}
        keys = [{'api_key': key, 'min_version': low, 'max_version': high} for key, (low, high) in offered.items()]
        self.answer(await self.request(), {'api_keys': keys})


Script = Callable[[Peer], Awaitable[None]]


@contextlib.asynccontextmanager
async def peer(script: Script) -> AsyncIterator[int]:
    """A server on a free port that follows the script with each connection, and then closes it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await script(Peer(reader, writer))
        writer.close()

    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextlib.asynccontextmanager
async def connected(script: Script) -> AsyncIterator[Connection]:
    async with peer(script) as port:
        connection = await open_connection('127.0.0.1', port, client_id='test', within=5)
        try:
            yield connection
        finally:
            await connection.close()


async def test_the_highest_common_version_is_spoken() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        request = await peer.request()
        assert (request.api_key, request.version, request.client_id) == (16, 5, 'test')
        peer.answer(request, LISTED)

    async with connected(script) as connection:
        answer = await connection.call(LIST, 5)
        assert [(group.group_id, group.group_type) for group in answer.groups] == [('g', 'share')]


async def test_a_server_that_does_not_know_our_apiversions_answers_in_version_0() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.request()
        assert first.version == API_VERSIONS.versions[1]
        peer.answer(first, {'error_code': 35, 'api_keys': []}, version=0)
        second = await peer.request()
        assert second.version == 0
        peer.answer(second, {'api_keys': [{'api_key': 16, 'min_version': 0, 'max_version': 2}]})

    async with connected(script) as connection:
        assert connection.version(LIST_GROUPS) == 2


async def test_what_is_not_offered() -> None:
    async with connected(Peer.greet) as connection:
        with pytest.raises(Unsupported, match='does not offer FindCoordinator'):
            await connection.call(Cold(FIND_COORDINATOR, {}), 5)
        with pytest.raises(Unsupported, match='in versions 0 to 5, this client speaks 7 to 9'):
            connection.version(LIST_GROUPS._replace(versions=(7, 9)))


async def test_answers_find_their_callers() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        for request in [await peer.request() for _ in range(3)]:
            name = str(request.correlation_id)
            peer.answer(request, {'groups': [{**LISTED['groups'][0], 'group_id': name}]})

    async with connected(script) as connection:
        answers = await asyncio.gather(*(connection.call(LIST, 5) for _ in range(3)))
        assert [answer.groups[0].group_id for answer in answers] == ['2', '3', '4']


async def test_no_answer_in_time_closes_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.reader.read()

    async with connected(script) as connection:
        with pytest.raises(TimedOut, match=r'no answer to ListGroups from 127\.0\.0\.1:\d+ within 0\.1 s'):
            await connection.call(LIST, 0.1)
        assert connection.closed


async def test_a_lost_connection_tells_all_that_wait() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        for _ in range(2):
            await peer.request()

    async with connected(script) as connection:
        results = await asyncio.gather(*(connection.call(LIST, 5) for _ in range(2)), return_exceptions=True)
        assert [type(result) for result in results] == [Disconnected, Disconnected]
        with pytest.raises(Disconnected):
            await connection.call(LIST, 5)


@pytest.mark.parametrize(
    'garbage',
    [
        b'\xff\xff\xff\xff',
        struct.pack('>i', MAX_ANSWER_BYTES + 1),
        struct.pack('>ii', 4, 999_999),
        struct.pack('>i', 2) + b'xx',
        struct.pack('>iib', 5, 2, 5),
        struct.pack('>ii', 12, 2) + b'\0\0\0\0\0\0\xff\xff',
    ],
    ids=['negative length', 'too long', 'not asked for', 'too short', 'broken header', 'broken body'],
)
async def test_an_answer_that_makes_no_sense(garbage: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        peer.writer.write(garbage)
        await peer.reader.read()

    async with connected(script) as connection:
        with pytest.raises(ProtocolError):
            await connection.call(LIST, 5)
        assert connection.closed


async def test_the_answer_to_a_cancelled_call_is_dropped() -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.request()
        asked.set()
        second = await peer.request()
        peer.answer(first, {})
        peer.answer(second, LISTED)

    async with connected(script) as connection:
        cancelled = asyncio.create_task(connection.call(LIST, 5))
        await asked.wait()
        cancelled.cancel()
        assert len((await connection.call(LIST, 5)).groups) == 1


async def test_no_more_than_so_many_requests_are_under_way() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.reader.read()

    async with connected(script) as connection:
        calls = [asyncio.create_task(connection.call(LIST, 0.3)) for _ in range(MAX_IN_FLIGHT + 5)]
        await asyncio.sleep(0.1)
        assert len(connection._link.waiting) == MAX_IN_FLIGHT
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, TimedOut) for result in results)


async def test_closing_tells_those_that_wait() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.reader.read()

    async with connected(script) as connection:
        waiting = asyncio.create_task(connection.call(LIST, 5))
        await asyncio.sleep(0.05)
        await connection.close()
        with pytest.raises(ClientClosed):
            await waiting


async def test_what_answers_is_no_kafka() -> None:
    async def script(peer: Peer) -> None:
        peer.writer.write(b'SSH-2.0-OpenSSH_9.0\r\n')
        await peer.reader.read()

    async with peer(script) as port:
        with pytest.raises(Unsupported, match='does not speak the Kafka protocol'):
            await open_connection('127.0.0.1', port, client_id='test', within=5)


async def test_nobody_answers() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read()

    async with peer(script) as port:
        with pytest.raises(Unreachable, match=r'within 0\.2 s'):
            await open_connection('127.0.0.1', port, client_id='test', within=0.2)
    with pytest.raises(Unreachable, match='refused'):
        await open_connection('127.0.0.1', port, client_id='test', within=1)
    with pytest.raises(Unreachable, match='the name is not known'):
        await open_connection('no-such-host.invalid', port, client_id='test', within=5)
