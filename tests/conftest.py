"""Fixtures for tests against real server processes.

`start_server(**settings)` starts one more server (free port, directory of its own); settings by name, as in
`start_server(**{'acklog.state.sync': 'all'})`. `server` is one with its defaults. `shared` is one for the whole run,
for tests that use topics and groups of their own and do not touch the process; with ACKLOG_TEST_ADDRESS=HOST:PORT these
run against any other server that speaks the protocol. A server that prints a traceback fails the test that caused it,
and what it wrote to stderr is shown when a test fails.
"""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from acklog.testing.process import ServerProcess
from acklog.testing.wall_clock import WallClock

StartServer = Callable[..., ServerProcess]
OnTime = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def on_time() -> OnTime:
    """`with on_time():` goes around what compares with the wall clock, and nothing else. Where that was set since
    the test began, a failure in it says nothing, and the test is skipped with these words."""
    wall_clock = WallClock()

    @contextlib.contextmanager
    def judge() -> Iterator[None]:
        try:
            yield
        except AssertionError:
            if by := wall_clock.set_by_s():
                pytest.skip(f'the wall clock was set by {by:+.3f} s meanwhile')
            raise

    return judge


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    servers: list[ServerProcess] = []

    def start(**settings: object) -> ServerProcess:
        server = ServerProcess(tmp_path / f'server-{len(servers)}' / 'data', settings)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.kill()
        sys.stderr.write(f'stderr of {server.directory}:\n{server.last_words(200)}\n')
    assert not sum(server.tracebacks() for server in servers), 'a server printed a traceback'


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


class Shared:
    """A server that many tests use at the same time or after each other."""

    def __init__(self, address: str, process: ServerProcess | None = None) -> None:
        self.address, self.process = address, process

    @property
    def http(self) -> str:
        """Where its HTTP API is. A test that asks is skipped where that is not known."""
        if self.process is None:
            pytest.skip('ACKLOG_TEST_ADDRESS names a server without HTTP')
        return self.process.http


@pytest.fixture(scope='session')
def shared_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    foreign = os.environ.get('ACKLOG_TEST_ADDRESS')
    if foreign:
        yield Shared(foreign)
        return
    process = ServerProcess(tmp_path_factory.mktemp('shared') / 'data', {'http': '127.0.0.1:0'})
    process.start()
    yield Shared(process.address, process)
    process.kill()


@pytest.fixture
def shared(shared_process: Shared) -> Iterator[Shared]:
    process = shared_process.process
    before = process.tracebacks() if process else 0
    length = len(process.stderr()) if process else 0
    yield shared_process
    if process:
        sys.stderr.write(f'stderr of the shared server during this test:\n{process.stderr()[length:]}\n')
        assert process.running, 'the server has ended'
        assert process.tracebacks() == before, 'the server printed a traceback'


@pytest.fixture
def name() -> str:
    """A name for a topic and a group that nobody else uses."""
    return f't-{uuid.uuid4().hex[:10]}'
