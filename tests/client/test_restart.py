"""The client while the server is killed and comes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.client.taking import publish, take

from acklog.client import Client, ClientError, Disconnected, TimedOut, Unreachable

if TYPE_CHECKING:
    from tests.conftest import StartServer

    from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system


async def restart(server: ServerProcess) -> None:
    await asyncio.to_thread(server.restart)


async def test_each_record_is_stored_once_and_in_order(server: ServerProcess) -> None:
    async with Client(server.address) as client:
        await client.admin.create_topic('t', partitions=1)
        async with client.producer(linger=0.001, batch_bytes=2000) as producer:
            futures = []
            for number in range(3000):
                futures.append(await producer.send('t', b'%d' % number))
                if number % 1000 == 500:
                    await asyncio.sleep(0.05)
                    await restart(server)
                if number % 50 == 0:
                    await asyncio.sleep(0.002)
        assert [future.result().offset for future in futures] in ([*range(3000)], _with_unknown(futures))
        await client.admin.alter_group_configs('g', {'share.auto.offset.reset': 'earliest'})
        async with client.subscribe('g', ['t']) as subscription:
            values: list[bytes | None] = []
            while len(values) < 3000:
                for record in await take(subscription, 1):
                    values.append(record.value)
                    subscription.accept(record)
    assert values == [b'%d' % number for number in range(3000)]


def _with_unknown(futures: list[asyncio.Future[object]]) -> list[int]:
    """The offsets, -1 where the server had stored a batch before and no longer knew where."""
    found = [getattr(future.result(), 'offset', None) for future in futures]
    return [number if found[number] != -1 else -1 for number in range(len(found))]


async def said(caplog: pytest.LogCaptureFixture, count: int) -> None:
    for _ in range(400):
        if len(caplog.messages) >= count:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(caplog.messages)


async def test_that_no_server_answers_and_that_one_does_again_is_a_warning_each(
    server: ServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(server.address) as client:
        await client.admin.create_topic('t', partitions=1)
        await client.admin.alter_group_configs('g', {'share.heartbeat.interval.ms': '1000'})
        async with client.subscribe('g', ['t']) as subscription:
            await asyncio.to_thread(server.kill)
            polling = asyncio.create_task(subscription.poll(30))
            await said(caplog, 1)
            await asyncio.sleep(2)  # no second one of the same
            await asyncio.to_thread(server.start)
            await said(caplog, 2)
            await publish(client, 't', b'x')
            assert [record.value for record in await polling] == [b'x']
    assert caplog.messages == [
        f"group 'g': no server answers at {server.address}: the connection was refused; trying again",
        "group 'g': the server answers again",
    ]


async def test_a_subscription_keeps_what_it_holds(server: ServerProcess) -> None:
    async with Client(server.address) as client:
        await client.admin.create_topic('t', partitions=1)
        await client.admin.alter_group_configs('g', {'share.auto.offset.reset': 'earliest'})
        await publish(client, 't', *(b'%d' % number for number in range(6)))
        async with client.subscribe('g', ['t'], strict=True, max_records=4) as subscription:
            records = await take(subscription, 4)
            subscription.accept(records[0])
            await subscription.flush()
            await restart(server)
            subscription.accept(records[1])
            subscription.accept(records[2])
            more = await take(subscription, 2)
            assert [(r.offset, r.deliveries) for r in more] == [(4, 1), (5, 1)]
            subscription.accept(records[3])
            for record in more:
                subscription.accept(record)
            await subscription.flush()
        assert [(part.start, part.lag) for part in await client.admin.lag('g')] == [(6, 0)]


async def test_what_was_decided_while_nobody_answered_is_told_later(server: ServerProcess) -> None:
    async with Client(server.address) as client:
        await client.admin.create_topic('t', partitions=1)
        await client.admin.alter_group_configs('g', {'share.auto.offset.reset': 'earliest'})
        await publish(client, 't', b'0', b'1')
        async with client.subscribe('g', ['t']) as subscription:
            first, second = await take(subscription, 2)
            server.kill()
            first.accept()
            second.release(after=3600)
            for _ in range(3):
                await asyncio.sleep(0.15)  # the decisions are sent by themselves meanwhile, in vain
                with pytest.raises((Unreachable, Disconnected)):
                    await subscription.flush()
            await asyncio.to_thread(server.start)
            await subscription.flush()
            assert await subscription.poll(0.3) == []
        assert [(part.start, part.lag) for part in await client.admin.lag('g')] == [(1, 1)]


async def test_a_poll_waits_through_a_restart(server: ServerProcess) -> None:
    async with Client(server.address) as client:
        await client.admin.create_topic('t', partitions=1)
        async with client.subscribe('g', ['t']) as subscription:
            assert await subscription.poll(0.2) == []
            polling = asyncio.create_task(subscription.poll(20))
            await asyncio.sleep(0.2)
            await restart(server)
            await publish(client, 't', b'after')
            assert [record.value for record in await polling] == [b'after']


async def test_nobody_answers_any_more(server: ServerProcess) -> None:
    async with Client(server.address, timeout=4) as client:
        await client.admin.create_topic('t', partitions=1)
        async with client.producer(patience=1) as producer:
            await producer.publish('t', b'x')
            server.kill()
            with pytest.raises((Unreachable, Disconnected, TimedOut)):
                await producer.publish('t', b'y')
        with pytest.raises(Unreachable, match='the connection was refused'):
            await client.admin.list_topics()


async def test_closing_when_nobody_answers_any_more(server: ServerProcess) -> None:
    async with Client(server.address, timeout=4) as client:
        await client.admin.create_topic('t', partitions=1)
        await publish(client, 't', b'x')
        subscription = client.subscribe('g', ['t'])
        await subscription.start()
        await subscription.poll(0.1)
        server.kill()
        async with asyncio.timeout(20):
            await subscription.close()


async def test_a_server_that_stops_answering(start_server: StartServer) -> None:
    import os
    import signal

    server = start_server()
    async with Client(server.address, timeout=4) as client:
        await client.admin.list_topics()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ClientError):
                await client.admin.create_topic('t')
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await client.admin.list_topics()
