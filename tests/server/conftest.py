"""`serve(**settings)` opens a server in the test's process and loop; names with `_` for `.`, or in a dict. Whatever it
logs as an error, and whatever the loop has to complain about, fails the test. A server over other `files` need not end
cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.server.raw import Raw

from acklog.broker.configs import Settings
from acklog.errors import LogError
from acklog.log.files import Files
from acklog.server.addresses import show_address
from acklog.server.clock import Clock
from acklog.server.server import Server

OF_DISKS = ('acklog.retention', 'acklog.storage', 'acklog.log.marks')  # loggers that say what is wrong with a disk

Serve = Callable[..., Awaitable[Server]]


def address_of(server: Server) -> str:
    return show_address(server.broker.node.host, server.broker.node.port)


@pytest.fixture
async def serve(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Serve]:
    servers: list[tuple[Server, bool]] = []
    complaints: list[Mapping[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def start(
        more: Mapping[str, object] | None = None,
        *,
        files: Files | None = None,
        clock: Clock | None = None,
        **settings: object,
    ) -> Server:
        named = {name.replace('_', '.'): value for name, value in settings.items()} | dict(more or {})
        texts = {
            'data': str(tmp_path / 'data'),
            'listen': '127.0.0.1:0',
            'http': 'off',
            'acklog.disk.reserve.bytes': '0',
        }
        server = await Server.open(Settings(texts | {name: str(value) for name, value in named.items()}), files, clock)
        servers.append((server, files is not None))
        return server

    yield start
    Raw.close_all()
    for server, may_fail in servers:
        with contextlib.suppress(*([LogError] if may_fail else [])):
            await server.close()
    assert not complaints
    expected = OF_DISKS if any(may_fail for _, may_fail in servers) else ()
    errors = [record for record in caplog.get_records('call') if record.levelno >= logging.ERROR]
    assert not [(each.name, each.getMessage(), each.exc_text) for each in errors if each.name not in expected]


@pytest.fixture
async def server(serve: Serve) -> Server:
    return await serve()
