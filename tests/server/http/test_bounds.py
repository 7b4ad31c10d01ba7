"""What clients may make the server hold, and for how long they may keep it waiting."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.server.http.asking import Wire, listener_of
from tests.server.http.conftest import ServeHttp

from acklog.server.server import Server

HEAD = b'GET /v1 HTTP/1.1\r\nhost: localhost\r\n'


def limit(server: Server, **limits: float) -> None:
    listener = listener_of(server)
    listener.limits = replace(listener.limits, **limits)  # type: ignore[arg-type]


async def test_connections_are_bounded(serve_http: ServeHttp) -> None:
    server, _ = await serve_http(acklog_http_max_connections=2)
    wires = [await Wire.open(server) for _ in range(2)]
    for wire in wires:
        await wire.say(HEAD + b'\r\n')
        assert (await wire.answer()).startswith(b'HTTP/1.1 200 ')
    third = await Wire.open(server)
    answer = await third.rest()
    assert answer.startswith(b'HTTP/1.1 503 Service Unavailable\r\n')
    assert b'acklog.http.max.connections' in answer
    wires[0].close()
    await asyncio.sleep(0.05)
    again = await Wire.open(server)
    await again.say(HEAD + b'\r\n')
    assert (await again.answer()).startswith(b'HTTP/1.1 200 ')
    for wire in (*wires, third, again):
        wire.close()


@pytest.mark.parametrize('said', [b'', b'GET /v1 HT', HEAD + b'x-more: '], ids=['nothing', 'a word', 'half a head'])
async def test_a_head_has_to_come(serve_http: ServeHttp, said: bytes) -> None:
    server, _ = await serve_http()
    limit(server, head_s=0.3)
    wire = await Wire.open(server)
    await wire.say(said)
    assert await wire.rest(5) == b''
    wire.close()


async def test_a_head_is_bounded(serve_http: ServeHttp) -> None:
    server, _ = await serve_http()
    wire = await Wire.open(server)
    await wire.say(HEAD + b'x-more: ' + b'y' * 100_000)
    assert (await wire.rest()).startswith(b'HTTP/1.1 400 ')
    wire.close()


async def test_a_body_has_to_come(serve_http: ServeHttp) -> None:
    server, _ = await serve_http()
    limit(server, body_s=0.3)
    wire = await Wire.open(server)
    head = (
        b'POST /v1/topics HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{'
    )
    await wire.say(head)
    assert (await wire.rest()).startswith(b'HTTP/1.1 408 ')
    wire.close()


async def test_the_rest_of_what_was_refused_is_not_read_for_ever(serve_http: ServeHttp) -> None:
    server, _ = await serve_http()
    limit(server, rest_s=0.3)
    wire = await Wire.open(server)
    head = b'POST /v1/topics HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n'
    await wire.say(head + b'content-length: 1000000000\r\n\r\n')
    assert (await wire.answer()).startswith(b'HTTP/1.1 413 ')
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        async with asyncio.timeout(5):
            while True:
                await wire.say(b' ' * 1000)
                await asyncio.sleep(0.01)
    wire.close()


async def test_who_takes_no_answer_is_closed(serve_http: ServeHttp) -> None:
    server, client = await serve_http()
    await client.get('/v1')
    limit(server, stuck_s=0.5)
    wire = await Wire.open(server)
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(500):  # each answer is a hundred kilobytes: more than the sockets take
        wire.writer.write(b'GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n')
    for _ in range(100):
        await asyncio.sleep(0.1)
        if len(listener_of(server).connections) == 1:
            break
    assert len(listener_of(server).connections) == 1  # the other client's
    assert listener_of(server).unsent.total == 0
    wire.writer.transport.abort()  # type: ignore[attr-defined]


async def test_too_many_bytes_of_requests_in_all(serve_http: ServeHttp) -> None:
    server, client = await serve_http()
    budget = listener_of(server).budget
    budget.take(budget.limit)
    answer = await client.post('/v1/topics', json={'name': 'a'})
    assert (answer.status_code, answer.headers['retry-after']) == (503, '1')
    budget.give_back(budget.limit)
    assert (await client.post('/v1/topics', json={'name': 'a'})).status_code == 201
    assert budget.taken == 0


async def test_a_stop_answers_what_is_under_way(serve_http: ServeHttp) -> None:
    server, client = await serve_http()
    await client.get('/v1')
    idle = await Wire.open(server)
    async with client.stream('GET', '/v1/events') as events:
        pieces = events.aiter_bytes()
        await anext(pieces)
        await asyncio.wait_for(server.close(), 2)
        async for _ in pieces:
            pass
    assert await idle.rest() == b''
    idle.close()
