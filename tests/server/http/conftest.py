"""`api`: a client of a real server process that all tests of a run share; topics and groups are a test's own (`name`).
`serve_http(**settings)`: a server in the test's process and loop, and a client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx
import pytest
from tests.server.conftest import Serve
from tests.server.http.asking import base_of

from acklog.server.server import Server
from acklog.testing.process import ServerProcess

ServeHttp = Callable[..., Awaitable[tuple[Server, httpx.AsyncClient]]]


@pytest.fixture(scope='session')
def http_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp('http') / 'data', {'http': '127.0.0.1:0'})
    process.start()
    yield process
    process.stop()


@pytest.fixture
def api(http_process: ServerProcess) -> Iterator[httpx.Client]:
    before = http_process.tracebacks()
    with httpx.Client(base_url=http_process.http, timeout=30) as client:
        yield client
    assert http_process.tracebacks() == before, http_process.last_words()


@pytest.fixture
def topic(api: httpx.Client, name: str) -> str:
    """A topic with two partitions, and its name."""
    assert api.post('/v1/topics', json={'name': name, 'partitions': 2}).status_code == 201
    return name


@pytest.fixture
async def serve_http(serve: Serve) -> AsyncIterator[ServeHttp]:
    clients: list[httpx.AsyncClient] = []

    async def start(**settings: object) -> tuple[Server, httpx.AsyncClient]:
        server = await serve({'http': '127.0.0.1:0'}, **settings)
        client = httpx.AsyncClient(base_url=base_of(server), timeout=30)
        clients.append(client)
        return server, client

    yield start
    for client in clients:
        await client.aclose()
