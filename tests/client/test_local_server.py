"""The server that users' tests start: in the test's process, with a clock that the test moves; and as a process."""

from __future__ import annotations

import time

import pytest
from tests.client.taking import publish, take, told

from acklog.client import Client
from acklog.testing.local import LocalServer
from acklog.testing.process import ServerFailed, ServerProcess

EARLIEST = {'share.auto.offset.reset': 'earliest'}


async def prepared(client: Client, *values: bytes) -> None:
    await client.admin.create_topic('orders', partitions=1)
    await client.admin.alter_group_configs('billing', EARLIEST)
    await publish(client, 'orders', *values)


async def test_what_comes_back_after_six_hours_takes_milliseconds(acklog_server: LocalServer) -> None:
    async with Client(acklog_server.address) as client:
        await prepared(client, b'a')
        async with client.subscribe('billing', ['orders']) as subscription:
            (record,) = await take(subscription, 1)
            await subscription.release_after(record, 6 * 3600)
            await subscription.flush()
            acklog_server.move(hours=5, minutes=59)
            assert await subscription.poll(0.1) == []
            begun = time.monotonic()
            acklog_server.move(minutes=1, seconds=1)
            assert told(await take(subscription, 1)) == [(0, b'a', 2)]
            assert time.monotonic() - begun < 0.5


async def test_locks_run_out_when_the_clock_is_moved(acklog_server: LocalServer) -> None:
    async with Client(acklog_server.address) as client:
        await prepared(client, b'a')
        async with client.subscribe('billing', ['orders']) as subscription:
            await take(subscription, 1)
            acklog_server.move(seconds=31)
            assert told(await take(subscription, 1)) == [(0, b'a', 2)]


async def test_it_starts_again_with_what_it_had(acklog_server: LocalServer) -> None:
    async with Client(acklog_server.address) as client:
        await prepared(client, b'a')
        address = acklog_server.address
        acklog_server.stop()
        acklog_server.start()
        assert acklog_server.address == address
        async with client.subscribe('billing', ['orders']) as subscription:
            assert told(await take(subscription, 1)) == [(0, b'a', 1)]


def test_it_is_ready_at_once() -> None:
    begun = time.monotonic()
    with LocalServer() as server:
        assert time.monotonic() - begun < 0.3
        assert server.running
    assert not server.running


def test_the_clock_does_not_go_back(acklog_server: LocalServer) -> None:
    before = acklog_server.now()
    with pytest.raises(ValueError, match='does not go back'):
        acklog_server.move(seconds=-1)
    with pytest.raises(ValueError, match='past the year 9999'):
        acklog_server.move(days=1e9)
    acklog_server.move(days=365)
    assert acklog_server.now() - before >= 365 * 24 * 3_600_000


def test_a_server_that_is_not_running_cannot_be_moved() -> None:
    server = LocalServer()
    with pytest.raises(ServerFailed, match='not running'):
        server.move(hours=1)


def test_what_is_wrong_with_the_settings_is_said() -> None:
    with pytest.raises(Exception, match=r'num\.partitions'), LocalServer({'num.partitions': 'many'}):
        pass


@pytest.mark.system
async def test_a_process_of_its_own(acklog_process: ServerProcess) -> None:
    async with Client(acklog_process.address) as client:
        await prepared(client, b'a')
        acklog_process.restart()
        async with client.subscribe('billing', ['orders']) as subscription:
            assert told(await take(subscription, 1)) == [(0, b'a', 1)]
