"""Whatever bytes come over a connection: an answer, a close, or a wait for more; the server goes on, holds nothing of
connections that are gone, and says little about them.

ACKLOG_FUZZ_EXAMPLES=N makes it N mutated requests per API (default 40).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import struct
import uuid
import zlib

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.hostile import VERSIONS, Hostile
from tests.server.raw import API_VERSIONS, METADATA, Closed, Raw, request
from tests.wire.test_fuzz import mutated

from acklog.broker.apis import APIS
from acklog.server.server import Server

EXAMPLES = int(os.environ.get('ACKLOG_FUZZ_EXAMPLES', '40'))
SEED = int(os.environ.get('ACKLOG_FUZZ_SEED', '1'))
NAMES = {api.key: api.name for api in APIS}
LIES = [b'\x7f\xff\xff\xff', b'\xff\xff\xff\xff', b'\x7f\xff', b'\xff\xff', b'\x80\x00', b'\xff\xff\xff\xff\x07', b'\0']
WAYS = ['overwrite', 'insert', 'delete', 'cut', 'repeat']


def framed(data: bytes) -> bytes:
    return struct.pack('>i', len(data)) + data


async def is_well(server: Server) -> None:
    """It answers, and holds nothing for anybody once they are gone."""
    raw = await Raw.connect(address_of(server))
    assert (await raw.call(METADATA, 12, {'topics': []}))['brokers']
    Raw.close_all()
    for _ in range(200):
        if not server.listener._connections and not server.listener.budget.taken:
            break
        await asyncio.sleep(0.01)
    assert not server.listener._connections
    assert (server.listener.budget.taken, server.listener.unsent.total) == (0, 0)
    assert not server.listener._by_ip
    assert not server.listener.slow_readers


async def test_random_bytes(server: Server) -> None:
    pick = random.Random(SEED)
    for number in range(EXAMPLES * 5):
        raw = await Raw.connect(address_of(server))
        data = pick.randbytes(pick.choice([1, 3, 4, 5, 14, 100, 5000]))
        with contextlib.suppress(Closed):
            await raw.send(framed(data) if number % 2 else data)
        if number % 3:
            raw.close()
        elif number % 7 == 0:
            raw.reset()
    await asyncio.sleep(0.05)
    await is_well(server)


@pytest.mark.parametrize('key', sorted(VERSIONS), ids=lambda key: NAMES[key])
async def test_mutated_requests(key: int, server: Server) -> None:
    pick = random.Random(SEED + zlib.crc32(NAMES[key].encode()))
    hostile = Hostile(pick.randrange(1 << 30), ['t'], [uuid.UUID(int=1)])
    raw = await Raw.connect(address_of(server))
    for _ in range(EXAMPLES):
        version, fields = hostile.request(key)
        data = request(key, version, fields)[4:]
        changes = [
            (pick.choice(WAYS), pick.randrange(400), pick.choice([*LIES, pick.randbytes(3)]))
            for _ in range(pick.randrange(1, 4))
        ]
        try:
            await raw.send(framed(mutated(data, changes)))
            await raw.answer_frame(0.05)
        except TimeoutError:  # it waits for something, and may: then so do the next ones on its connection
            raw = await Raw.connect(address_of(server))
        except Closed:
            raw.close()
            raw = await Raw.connect(address_of(server))
    await is_well(server)


@pytest.mark.parametrize('size', [-1, -(1 << 31), (1 << 31) - 1, 100 * 1024 * 1024 + 1, 0, 1, 9])
async def test_sizes_that_cannot_be(size: int, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    raw = await Raw.connect(address_of(server))
    await raw.send(struct.pack('>i', size) + b'\0' * max(0, min(size, 10)))
    assert await raw.closed()
    assert len(caplog.messages) == 1
    assert 'closing the connection of 127.0.0.1:' in caplog.text
    await is_well(server)


async def test_a_large_size_that_is_allowed_costs_nothing_until_it_comes(server: Server) -> None:
    raws = [await Raw.connect(address_of(server)) for _ in range(20)]
    for raw in raws:
        await raw.send(struct.pack('>i', 100 * 1024 * 1024) + b'\0' * 100_000)
    await asyncio.sleep(0.1)
    assert server.listener.budget.taken < 20 * 500_000
    await is_well(server)


async def test_hang_ups_at_every_byte(server: Server) -> None:
    data = request(METADATA, 12, {'topics': [{'name': 't'}]}) + request(API_VERSIONS, 3, {'client_software_name': 'x'})
    for size in range(len(data)):
        raw = await Raw.connect(address_of(server))
        await raw.send(data[:size])
        if size % 2:
            raw.reset()
        else:
            raw.close()
    await is_well(server)


async def test_one_byte_at_a_time(server: Server) -> None:
    raw = await Raw.connect(address_of(server))
    for byte in raw.frame(METADATA, 12, {'topics': []}):
        await raw.send(bytes([byte]))
        await asyncio.sleep(0)
    assert (await raw.answer(METADATA, 12))['brokers']


async def test_thousands_at_once_are_answered_in_order_and_keep_nobody_waiting(serve: Serve) -> None:
    server = await serve(num_partitions=50)
    raw, other = await Raw.connect(address_of(server)), await Raw.connect(address_of(server))
    await raw.call(METADATA, 12, {'topics': [{'name': f't{n}'} for n in range(20)], 'allow_auto_topic_creation': True})
    count = 400
    frames = b''.join(raw.frame(METADATA, 12, {'topics': None}) for _ in range(count))
    both = asyncio.gather(raw.send(frames), answers(raw, count))
    turns = 0
    while not both.done():
        await other.call(API_VERSIONS, 0, {})
        turns += 1
    assert (await both)[1] == list(range(2, count + 2))  # correlation ids
    assert turns >= 10  # they take some hundred milliseconds, of which nobody has more than a slice at a time


async def answers(raw: Raw, count: int) -> list[int]:
    return [struct.unpack_from('>i', await raw.answer_frame(60))[0] for _ in range(count)]


async def test_what_is_not_served_closes_the_connection_with_few_lines(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for key, version in [(4, 0), (5, 0), (11, 9), (-1, 0), (999, 0), (32767, 32767), (3, 99), (0, 2), (1, -1)] * 6:
        raw = await Raw.connect(address_of(server))
        await raw.send(framed(struct.pack('>hhihx', key, version, 1, -1)))
        assert await raw.closed()
    assert 5 <= len(caplog.messages) <= 15
    assert 'API 4 is not served' in caplog.text
    await is_well(server)


@pytest.mark.parametrize(
    ('client_id', 'software', 'names'),
    [
        (None, None, ''),
        ('', None, ''),
        ('billing', None, ' (billing)'),
        (None, ('librdkafka', '2.11.0'), ' (librdkafka 2.11.0)'),
        ('billing', ('apache-kafka-java', '4.1.0'), ' (billing, apache-kafka-java 4.1.0)'),
        ('i' * 65, ('n' * 65, '1'), f' ({"i" * 64}, {"n" * 64})'),
    ],
)
async def test_a_closed_connection_is_told_with_what_its_client_calls_itself(
    client_id: str | None,
    software: tuple[str, str] | None,
    names: str,
    server: Server,
    caplog: pytest.LogCaptureFixture,
) -> None:
    raw = await Raw.connect(address_of(server))
    port = raw.sock.getsockname()[1]
    if software is None:
        await raw.send(raw.frame(METADATA, 12, {'topics': []}, client_id))
    else:
        name, version = software
        fields = {'client_software_name': name, 'client_software_version': version}
        await raw.send(raw.frame(API_VERSIONS, 3, fields, client_id))
    await raw.answer_frame()
    await raw.send(struct.pack('>i', -1))
    assert await raw.closed()
    [line] = caplog.messages
    assert line.startswith(f'closing the connection of 127.0.0.1:{port}{names}: ')


@pytest.mark.parametrize('version', [5 + 94, 32767, -1, -32768])
async def test_api_versions_of_an_unknown_version_is_answered_in_v0(version: int, server: Server) -> None:
    raw = await Raw.connect(address_of(server))
    await raw.send(framed(struct.pack('>hhih', API_VERSIONS, version, 7, 1) + b'c\0'))
    answer = await raw.answer(API_VERSIONS, 0)
    assert answer['error_code'] == 35
    assert {'api_key': 18, 'min_version': 0, 'max_version': max(VERSIONS[18])} in answer['api_keys']
    assert (await raw.call(API_VERSIONS, 3, {'client_software_name': 'x', 'client_software_version': '1'}))['api_keys']


@pytest.mark.parametrize('client_id', [None, '', 'x' * 32767, 'a\nb\r\x1b[31m\0', 'ü\u2028\U0001f4a9'])
async def test_client_ids(client_id: str | None, server: Server) -> None:
    raw = await Raw.connect(address_of(server))
    await raw.send(raw.frame(METADATA, 12, {'topics': []}, client_id))
    assert (await raw.answer(METADATA, 12))['brokers']


@pytest.mark.parametrize('length', [-2, -32768, 5, 32767])
async def test_client_ids_that_are_none(length: int, server: Server) -> None:
    raw = await Raw.connect(address_of(server))
    await raw.send(framed(struct.pack('>hhih', METADATA, 1, 1, length) + b'\xff\xfe\0\0'))
    assert await raw.closed()


async def test_a_refused_request_does_not_take_the_answers_before_it(server: Server) -> None:
    raw = await Raw.connect(address_of(server))
    await raw.send(raw.frame(METADATA, 12, {'topics': []}) + framed(b'\x03\xe7') + raw.frame(API_VERSIONS, 0, {}))
    assert (await raw.answer(METADATA, 12))['brokers']
    assert await raw.closed()
