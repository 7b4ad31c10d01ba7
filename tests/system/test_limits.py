"""What a server costs with many clients, and what clients feel of each other: memory, idle CPU, equal shares, latency
beside a large group."""

from __future__ import annotations

import asyncio
import resource
import struct
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from tests.server.raw import API_VERSIONS, FETCH, PRODUCE, SHARE_FETCH, Raw, request
from tests.server.traffic import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    accept,
    acquired,
    batch,
    create,
    fetch,
    join,
    produce,
    publish,
    share_fetch,
)

from acklog.testing import usage
from acklog.testing.process import ServerProcess
from acklog.testing.stock_client import configure_group

pytestmark = pytest.mark.system

MB = 1 << 20
StartServer = Callable[..., ServerProcess]


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    Raw.close_all()


# -- memory ------------------------------------------------------------------------------------------------------------


async def test_memory_is_bounded_whatever_clients_send_and_do_not_read(start_server: StartServer) -> None:
    """Limits of 32 MB for requests and 32 MB for answers, and clients that could make it hold gigabytes."""
    server = start_server(
        **{
            'queued.max.request.bytes': 32 * MB,
            'acklog.queued.max.answer.bytes': 32 * MB,
            'acklog.connection.queued.bytes': 16 * MB,
            'message.max.bytes': 64 * MB,
            'log.retention.ms': -1,
        }
    )
    raw = await Raw.connect(server.address)
    await create(raw, 't')
    for _ in range(16):
        assert await publish(raw, 't', batch(MB)) == 0
    before = server.resident_bytes()
    frames = b''.join(raw.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(50))  # 800 MB of answers
    polls = b''.join(raw.frame(FETCH, FETCH_VERSION, fetch('t', 16, wait=20_000)) for _ in range(2000))
    large = request(PRODUCE, PRODUCE_VERSION, produce('t', batch(20 * MB)))
    sending = []
    for _ in range(20):
        deaf = await Raw.connect(server.address, receive_buffer=65536)
        await deaf.send(frames)
        stalling = await Raw.connect(server.address)
        sending.append(asyncio.create_task(stalling.send(large[:-1])))
        polling = await Raw.connect(server.address)
        sending.append(asyncio.create_task(polling.send(polls)))
    for _ in range(15):
        await asyncio.sleep(0.1)
        await raw.call(API_VERSIONS, 0, {}, 5)
    used = usage.peak_resident_bytes(server.pid) - before
    for task in sending:
        task.cancel()
    assert used < 200 * MB, f'{used >> 20} MB'
    Raw.close_all()
    raw = await Raw.connect(server.address)
    assert await publish(raw, 't', batch(10 * MB)) == 0


async def test_connections_that_come_and_go_leave_nothing(server: ServerProcess) -> None:
    async def visit(number: int) -> None:
        raw = await Raw.connect(server.address)
        await raw.send(struct.pack('>i', 50_000_000) + b'\0' * 100_000)
        if number % 2:
            raw.reset()
        raw.close()

    async def visits(count: int) -> int:
        for start in range(0, count, 50):
            await asyncio.gather(*(visit(number) for number in range(start, start + 50)))
            Raw.close_all()
        raw = await Raw.connect(server.address)
        await raw.call(API_VERSIONS, 0, {})
        await asyncio.sleep(0.2)
        return server.resident_bytes()

    await visits(1500)  # what the allocator keeps for itself
    before = await visits(500)
    assert await visits(1500) < before + 16 * MB
    assert usage.open_files(server.pid) < 60


async def test_no_file_for_one_more_connection(server: ServerProcess) -> None:
    """Who is connected goes on, and the next ones are let in when there are files again."""
    raw = await Raw.connect(server.address)
    await create(raw, 't')
    assert await publish(raw, 't', batch(10)) == 0
    await raw.call(API_VERSIONS, 0, {})  # modules are loaded at their first use, which takes files
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (usage.open_files(server.pid), limits[1]))
    waiting = [await Raw.connect(server.address) for _ in range(3)]
    assert (await raw.call(API_VERSIONS, 0, {}))['api_keys']
    with pytest.raises(TimeoutError):
        await waiting[0].call(API_VERSIONS, 0, {}, 0.3)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    assert (await waiting[0].answer(API_VERSIONS, 0, 5))['api_keys']
    assert await publish(raw, 't', batch(10)) == 0
    assert 'no more connections for a second: Too many open files' in server.stderr()


# -- CPU ---------------------------------------------------------------------------------------------------------------


async def test_who_waits_costs_nothing(server: ServerProcess) -> None:
    """1000 connections, of which 200 wait in long polls, and half of these are members whose locks and waiting records
    are due some time."""
    raw = await Raw.connect(server.address)
    topic = await create(raw, 't', 10)
    await publish(raw, 't', batch(1000, 100), index=0)
    for number in range(100):
        waiting = await Raw.connect(server.address)
        await waiting.send(waiting.frame(FETCH, FETCH_VERSION, fetch('t', index=1 + number % 9, wait=60_000)))
        poll = await Raw.connect(server.address)
        await join(poll, 'g', f'm{number}', 't')
        await poll.send(poll.frame(SHARE_FETCH, 1, share_fetch('g', f'm{number}', 0, topic, range(10), wait=60_000)))
    [await Raw.connect(server.address) for _ in range(800)]
    await raw.call(API_VERSIONS, 0, {})
    await asyncio.sleep(0.5)
    before = server.cpu_seconds()
    await asyncio.sleep(2)
    assert server.cpu_seconds() - before <= 0.1


# -- fairness ----------------------------------------------------------------------------------------------------------


async def member(address: str, group: str, name: str, topic: UUID, index: int, until: float, records: int) -> int:
    """How many records it signs off until then."""
    raw, epoch, count = await Raw.connect(address), 0, 0
    while asyncio.get_running_loop().time() < until:
        poll = share_fetch(group, name, epoch, topic, (index,), wait=200, records=records)
        await raw.send(raw.frame(SHARE_FETCH, 1, poll))
        taken = acquired(await raw.answer(SHARE_FETCH, 1))
        epoch += 1
        if taken:
            assert await accept(raw, group, name, epoch, topic, taken) == 0
            epoch += 1
            count += sum(last - first + 1 for _, first, last in taken)
    return count


@pytest.mark.parametrize('case', ['a backlog', 'records that trickle in'])
async def test_equal_members_get_equal_shares(case: str, server: ServerProcess) -> None:
    seconds = 2.5
    raw = await Raw.connect(server.address)
    topic = await create(raw, 't')
    configure_group(server.address, 'g', {'share.auto.offset.reset': 'earliest'})
    until = asyncio.get_running_loop().time() + seconds
    if case == 'a backlog':
        for _ in range(200):
            await publish(raw, 't', batch(10_000, 1000))
    members = [
        asyncio.create_task(member(server.address, 'g', f'm{number}', topic, 0, until, 20)) for number in range(10)
    ]
    while case != 'a backlog' and asyncio.get_running_loop().time() < until:
        await raw.send(b''.join(raw.frame(PRODUCE, PRODUCE_VERSION, produce('t', batch(10))) for _ in range(20)))
        for _ in range(20):
            await raw.answer(PRODUCE, PRODUCE_VERSION)
        await asyncio.sleep(0.01)
    counts = await asyncio.gather(*members)
    assert sum(counts) > 300
    assert min(counts) >= sum(counts) / 20, counts


async def test_a_large_group_does_not_slow_another(server: ServerProcess) -> None:
    """Latency of a group that is up to date, beside one with a million records to take: at most double, give or take
    what this machine does by itself."""
    raw = await Raw.connect(server.address)
    large, small = await create(raw, 'large'), await create(raw, 'small')
    configure_group(server.address, 'large', {'share.auto.offset.reset': 'earliest'})
    configure_group(server.address, 'small', {'share.auto.offset.reset': 'earliest'})
    alone = await latencies(server.address, small, 0)
    for _ in range(100):
        await publish(raw, 'large', batch(1_000_000, 10_000))
    until = asyncio.get_running_loop().time() + 6
    taking = [
        asyncio.create_task(member(server.address, 'large', f'm{number}', large, 0, until, 500)) for number in range(2)
    ]
    await asyncio.sleep(0.5)
    beside = await latencies(server.address, small, 1)
    for task in taking:
        task.cancel()
    assert beside[98] < 2 * alone[98] + 0.02, (alone[98], beside[98])


async def latencies(address: str, topic: UUID, run: int) -> list[float]:
    """Hundredths of the time from publishing a record to having it, with a member that waits for it."""
    publisher, subscriber, epoch, found = await Raw.connect(address), await Raw.connect(address), 0, []
    loop, name = asyncio.get_running_loop(), f'member-{run}'
    for _ in range(300):
        poll = share_fetch('small', name, epoch, topic, wait=5000)
        await subscriber.send(subscriber.frame(SHARE_FETCH, 1, poll))
        await asyncio.sleep(0.002)
        begun = loop.time()
        await publisher.send(publisher.frame(PRODUCE, PRODUCE_VERSION, produce('small', batch(10))))
        taken = acquired(await subscriber.answer(SHARE_FETCH, 1))
        found.append(loop.time() - begun)
        await publisher.answer(PRODUCE, PRODUCE_VERSION)
        assert await accept(subscriber, 'small', name, epoch + 1, topic, taken) == 0
        epoch += 2
    found.sort()
    return found[2::3]
