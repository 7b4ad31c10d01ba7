"""The worker: how a call ends decides what becomes of the record."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import acklog
from acklog.client import NotFound
from acklog.client.worker import Worker
from acklog.testing.local import LocalServer


@asynccontextmanager
async def at_work(worker: Worker, server: LocalServer, *values: bytes) -> AsyncIterator[acklog.Client]:
    async with acklog.connect(server.address) as client:
        await client.admin.create_topic('orders', partitions=1)
        await client.admin.alter_group_configs('billing', {'share.auto.offset.reset': 'earliest'})
        await client.publish_all('orders', values)
        serving = asyncio.create_task(worker.serve(client))
        yield client
        worker.stop()
        await asyncio.wait_for(serving, 10)


async def until(condition: object, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def lag(client: acklog.Client) -> int:
    try:
        return sum(part.lag or 0 for part in await client.admin.lag('billing'))
    except NotFound:  # the worker has not joined yet
        return -1


@pytest.mark.parametrize(('begin', 'taken'), [('earliest', [b'old', b'new']), ('latest', [b'new']), (None, [b'new'])])
async def test_where_a_new_group_begins(acklog_server: LocalServer, begin: str | None, taken: list[bytes]) -> None:
    seen: list[bytes | None] = []
    joined = asyncio.Event()

    @acklog.worker('billing', ['orders'], begin=begin)
    async def charge(record: acklog.Received) -> None:
        seen.append(record.value)

    async with acklog.connect(acklog_server.address) as client:
        await client.admin.create_topic('orders', partitions=1)
        await client.publish('orders', b'old')
        serving = asyncio.create_task(charge.serve(client))
        while not joined.is_set():
            with contextlib.suppress(acklog.AcklogError):
                if await client.admin.lag('billing') or begin == 'earliest':
                    joined.set()
            await asyncio.sleep(0.05)
        await client.publish('orders', b'new')
        await until(lambda: b'new' in seen)
        charge.stop()
        await serving
    assert seen == taken


async def test_a_group_that_exists_goes_on_wherever_a_member_would_begin(acklog_server: LocalServer) -> None:
    async with acklog.connect(acklog_server.address) as client:
        await client.admin.create_topic('orders', partitions=1)
        await client.publish('orders', b'old')
        async with client.subscribe('billing', ['orders'], begin='latest') as subscription:
            assert await subscription.poll(0.3) == []
        async with client.subscribe('billing', ['orders'], begin='earliest') as subscription:
            assert await subscription.poll(0.3) == []
        assert [c.value for c in await client.admin.group_configs('billing') if c.is_set] == ['latest']


async def test_a_call_that_fails_is_logged_with_the_place_of_its_record(
    acklog_server: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    @acklog.worker('billing', ['orders'], backoff=[60])
    async def charge(record: acklog.Received) -> None:
        raise OSError('the bank is closed')

    async with at_work(charge, acklog_server, b'x'):
        await until(lambda: caplog.messages)
    assert re.fullmatch(
        r'orders/0/0 failed \(delivery 1\), handed back, to come again in (5|6)\d\.\d s', caplog.messages[0]
    )


async def test_accepts_rejects_and_releases_with_a_growing_delay(acklog_server: LocalServer) -> None:
    seen: list[tuple[bytes | None, int]] = []

    @acklog.worker('billing', ['orders'], backoff=[60, 3600])
    async def charge(record: acklog.Received) -> None:
        seen.append((record.value, record.deliveries))
        if record.value == b'poison':
            raise acklog.Reject('not an order')
        if record.value == b'flaky' and record.deliveries < 3:
            raise ConnectionError('the bank is closed')

    async with at_work(charge, acklog_server, b'good', b'poison', b'flaky') as client:
        await until(lambda: len(seen) == 3)
        await asyncio.sleep(0.3)
        acklog_server.move(seconds=30)
        await asyncio.sleep(0.3)
        assert len(seen) == 3
        acklog_server.move(seconds=60)
        await until(lambda: len(seen) == 4)
        await asyncio.sleep(0.3)
        acklog_server.move(hours=1.2)
        await until(lambda: len(seen) == 5)
    assert seen == [(b'good', 1), (b'poison', 1), (b'flaky', 1), (b'flaky', 2), (b'flaky', 3)]
    async with acklog.connect(acklog_server.address) as client:
        assert await lag(client) == 0


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError('no words either')


class NoException(BaseException):
    """Of the kind that `except Exception` does not see."""


ENDS: list[Callable[[], BaseException]] = [
    ValueError,
    TimeoutError,
    Wordless,
    NoException,
    asyncio.CancelledError,
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    lambda: OSError('a file \udcff'),
    lambda: acklog.Reject(5),  # type: ignore[arg-type]
    lambda: acklog.Reject('x' * 5000),
    lambda: acklog.Reject('a file \udcff'),
]


@pytest.mark.parametrize('in_threads', [False, True])
async def test_however_a_call_ends_its_record_is_settled(acklog_server: LocalServer, in_threads: bool) -> None:
    def end(record: acklog.Received) -> None:
        if record.value:
            raise ENDS[record.value[0] - 1]()

    async def end_in_loop(record: acklog.Received) -> None:
        end(record)

    handler = end if in_threads else end_in_loop
    worker = acklog.worker('billing', ['orders'], concurrency=3, backoff=[3600])(handler)
    values = [*(bytes([number + 1]) for number in range(len(ENDS))), b'']
    async with at_work(worker, acklog_server, *values), acklog.connect(acklog_server.address) as client:
        for _ in range(500):
            if await lag(client) == len(ENDS) - 3:  # those that wait; the others are dead or done
                break
            await asyncio.sleep(0.02)
        acklog_server.move(hours=2)
        await asyncio.sleep(0.3)
        assert await lag(client) == len(ENDS) - 3


@pytest.mark.parametrize('in_threads', [False, True])
async def test_no_more_calls_at_once_than_its_concurrency(acklog_server: LocalServer, in_threads: bool) -> None:
    running, most, done = 0, 0, 0

    def begin(step: int) -> None:
        nonlocal running, most, done
        running += step
        most = max(most, running)
        done += step < 0

    async def slow(record: acklog.Received) -> None:
        begin(1)
        await asyncio.sleep(0.02)
        begin(-1)

    def slow_in_a_thread(record: acklog.Received) -> None:
        begin(1)
        time.sleep(0.02)
        begin(-1)

    worker = acklog.worker('billing', 'orders', concurrency=4)(slow_in_a_thread if in_threads else slow)
    async with at_work(worker, acklog_server, *[b'x'] * 40):
        await until(lambda: done == 40)
    assert 2 <= most <= 4


async def test_what_runs_is_finished_when_it_stops(acklog_server: LocalServer) -> None:
    begun, ended = asyncio.Event(), []

    @acklog.worker('billing', ['orders'], concurrency=1)
    async def slow(record: acklog.Received) -> None:
        begun.set()
        await asyncio.sleep(0.5)
        ended.append(record.offset)

    async with at_work(slow, acklog_server, b'a', b'b') as client:
        await begun.wait()
        slow.stop()
        await until(lambda: ended == [0])
        await asyncio.sleep(0.2)
        assert await lag(client) == 1


async def test_what_does_not_end_in_time_goes_to_others_at_once(acklog_server: LocalServer) -> None:
    begun = asyncio.Event()

    @acklog.worker('billing', ['orders'], drain=0.1)
    async def stuck(record: acklog.Received) -> None:
        begun.set()
        await asyncio.sleep(3600)

    async with at_work(stuck, acklog_server, b'a'):
        await begun.wait()
    async with acklog.connect(acklog_server.address) as client, client.subscribe('billing', ['orders']) as other:
        (record,) = await other.poll(2.0)
        record.accept()


@pytest.mark.system
async def test_sigterm_drains_it(acklog_server: LocalServer, tmp_path: Path) -> None:
    program = tmp_path / 'program.py'
    program.write_text(f"""
import asyncio, acklog
@acklog.worker('billing', ['orders'])
async def slow(record):
    print('begun', flush=True)
    await asyncio.sleep(0.5)
    print('ended', flush=True)
slow.run({acklog_server.address!r})
""")
    async with acklog.connect(acklog_server.address) as client:
        await client.admin.create_topic('orders', partitions=1)
        await client.admin.alter_group_configs('billing', {'share.auto.offset.reset': 'earliest'})
        await client.publish('orders', b'a')
        process = await asyncio.create_subprocess_exec(sys.executable, str(program), stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert await process.stdout.readline() == b'begun\n'
        process.send_signal(signal.SIGTERM)
        assert await process.stdout.read() == b'ended\n'
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert await lag(client) == 0


def test_options_that_make_no_sense() -> None:
    wrong: tuple[Any, ...] = ([], [-1], [1, math.inf], [math.nan], ['1s'], '15', 5, [1e20], [timedelta(seconds=1)])
    for options in ({'concurrency': 0}, *({'backoff': each} for each in wrong)):
        with pytest.raises(ValueError, match=r'a backoff is|concurrency has to be'):
            acklog.worker('g', ['t'], **options)(lambda record: None)  # type: ignore[arg-type]


async def test_calling_it_calls_the_function() -> None:
    worker = acklog.worker('g', ['t'])(lambda record: None)
    assert worker(acklog.Received('t', 0, 0, 0, None, b'', (), 1)) is None


async def test_a_call_that_is_thrown_away_settles_nothing(acklog_server: LocalServer) -> None:
    """As when the loop ends in the middle of it: its record is given back with all that is held, not as failed."""

    @acklog.worker('billing', ['orders'])
    async def charge(record: acklog.Received) -> None:
        await asyncio.get_running_loop().create_future()

    async with acklog.connect(acklog_server.address) as client:
        await client.admin.create_topic('orders', partitions=1)
        await client.publish('orders', b'1')
        async with client.subscribe('billing', ['orders'], begin='earliest') as subscription:
            [record] = await subscription.poll(5)
            call = charge._work(subscription, record)
            call.send(None)
            call.close()
            assert subscription.holds(record)
