"""Bounds of the listener follow the configs while the server runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from acklog.broker.configs import Settings
from acklog.server.server import Server


async def is_let_in(server: Server) -> bool:
    """Whether a connection stays; it is left open."""
    reader, writer = await asyncio.open_connection('127.0.0.1', server.broker.node.port)
    kept.append(writer)
    try:
        await asyncio.wait_for(reader.read(1), 0.2)
    except TimeoutError:
        return True
    except ConnectionError:
        pass
    return False


kept: list[asyncio.StreamWriter] = []


async def test_connections_are_bounded(tmp_path: Path) -> None:
    settings = Settings(
        {'data': str(tmp_path / 'data'), 'listen': '127.0.0.1:0', 'http': 'off', 'max.connections': '2'}
    )
    server = await Server.open(settings)
    try:
        assert [await is_let_in(server) for _ in range(3)] == [True, True, False]
        await server.broker.catalog.alter_broker_configs('', lambda _: {'max.connections.per.ip': '3'})
        assert not await is_let_in(server)
        await server.broker.catalog.alter_broker_configs('0', lambda _: {'max.connections': '10'})
        assert [await is_let_in(server) for _ in range(2)] == [True, False]
        kept[0].close()
        await asyncio.sleep(0.05)
        assert await is_let_in(server)
    finally:
        for writer in kept:
            writer.close()
        await server.close()
