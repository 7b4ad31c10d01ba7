"""Connections that break: what is held stays held, for as long as the grace lasts."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.taking import publish, take, told

from acklog.client import Client, Disconnected
from acklog.testing.local import LocalServer


async def prepared(client: Client, *values: bytes) -> None:
    await client.admin.create_topic('orders', partitions=1)
    await client.admin.alter_group_configs('billing', {'share.auto.offset.reset': 'earliest'})
    await publish(client, 'orders', *values)


def cut(client: Client) -> None:
    """Break all its connections, as a network does."""
    for connection in list(client._cluster._connections.values()):
        connection._link.end(Disconnected('the network is gone'))


@pytest.mark.parametrize('waiting', [False, True])
async def test_what_is_held_stays_held_over_a_broken_connection(acklog_server: LocalServer, waiting: bool) -> None:
    async with Client(acklog_server.address) as client, Client(acklog_server.address) as others:
        await prepared(client, *(b'%d' % number for number in range(6)))
        async with client.subscribe('billing', ['orders'], strict=True, max_records=2) as subscription:
            held = await take(subscription, 2)
            for _ in range(3):
                if waiting:  # the poll that is on its way is lost with the connection
                    polling = asyncio.create_task(subscription.poll(0.5, max_records=1))
                    await asyncio.sleep(0.02)
                    cut(client)
                    held += await polling
                else:
                    cut(client)
                    held += await subscription.poll(5.0, max_records=1)
            held += await take(subscription, 6 - len(held))
            async with others.subscribe('billing', ['orders']) as other:
                assert await other.poll(0.3) == []
            for record in held:
                record.accept()
            await subscription.flush()
        assert [(record.offset, record.deliveries) for record in held] == [(number, 1) for number in range(6)]
        assert sum(part.lag or 0 for part in await others.admin.lag('billing')) == 0


async def test_without_a_grace_it_goes_to_others_at_once(acklog_server: LocalServer) -> None:
    async with Client(acklog_server.address) as client, Client(acklog_server.address) as others:
        await prepared(client, b'a')
        subscription = client.subscribe('billing', ['orders'], grace=0)
        await subscription.start()
        await take(subscription, 1)
        async with others.subscribe('billing', ['orders']) as other:
            cut(client)
            assert told(await take(other, 1, 2.0)) == [(0, b'a', 2)]
        await subscription.close()


async def test_who_does_not_come_back_loses_it_when_the_grace_is_over(acklog_server: LocalServer) -> None:
    async with Client(acklog_server.address) as others:
        client = Client(acklog_server.address)
        await prepared(client, b'a')
        subscription = client.subscribe('billing', ['orders'])
        await subscription.start()
        await take(subscription, 1)
        await client.close()  # as if the process had been killed: no goodbye
        async with others.subscribe('billing', ['orders']) as other:
            assert await other.poll(0.3) == []
            acklog_server.move(seconds=10)
            assert told(await take(other, 1, 2.0)) == [(0, b'a', 2)]
        await subscription.close()
