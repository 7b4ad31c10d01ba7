"""A real server inside the test's process, with a clock that the test moves.

    with LocalServer() as server:
        ...                          # any client, at server.address
        server.move(hours=6)         # what is due by then has happened when this returns

Strategy: the server of `acklog serve`, all of it, in a thread with an event loop of its own, so that synchronous tests
use it like asynchronous ones. Its files are in memory unless a directory is named. Only the clock is another one: the
layers below the server get the time as an argument, so what happens when it moves is what happens when it passes.
Clients go by their own clocks: their timeouts and heartbeats do not follow.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from acklog.broker.configs import Settings
from acklog.log.memory_files import MemoryFiles
from acklog.server.addresses import show_address
from acklog.server.clock import MovableClock
from acklog.server.server import Server
from acklog.testing.process import ServerFailed

START_S = 30.0


class LocalServer:
    """One server, started by `with` or `start`. `settings`: configs by name; `directory`: where its files are, None
    for memory, where they last as long as this object does; `http`: with HTTP on a free port."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        http: bool = False,
    ) -> None:
        self.clock = MovableClock()
        self.address = ''  # HOST:PORT, as clients take it
        self.http = ''  # http://HOST:PORT; '' without HTTP
        self.complaints: list[str] = []  # of the event loop, about calls that raised: each one is a bug of the server
        texts: dict[str, object] = {
            'data': 'memory' if directory is None else os.fspath(directory),
            'listen': '127.0.0.1:0',
            'http': '127.0.0.1:0' if http else 'off',
            'acklog.disk.reserve.bytes': 0,
        }
        self._settings = {name: str(value) for name, value in {**texts, **(settings or {})}.items()}
        self._files = MemoryFiles() if directory is None else None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None

    def __enter__(self) -> LocalServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Returns when it answers. After `stop` it starts again with what it had, at the same address.

        Raises ConfigError, LogError, OSError."""
        if self._thread is not None:
            raise ServerFailed('the server is running already')
        ready = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, args=(ready,), name='acklog server', daemon=True)
        self._thread.start()
        ready.wait(START_S)
        if self._server is None:
            self._thread.join(START_S)
            self._thread = None
            self._raise_failure()
            raise ServerFailed(f'the server was not ready within {START_S} s')

    def stop(self) -> None:
        """As SIGTERM does. Nothing happens when it is not running. Raises ServerFailed if it complained of anything."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(START_S)
        self._server = None
        self._raise_failure()
        if self.complaints:
            raise ServerFailed('the server complained: ' + '\n'.join(self.complaints))

    def move(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Move its clock ahead; what is due by then has been done when this returns. Raises ValueError for less than
        nothing, ServerFailed when it is not running."""
        whole = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds

        def move() -> None:
            assert self._server is not None
            self.clock.move(round(whole))
            self._server.clock_moved()

        self.call(move)

    def now(self) -> int:
        """What its clock shows, ms since 1970."""
        return self.clock()

    def call(self, function: Callable[[], None]) -> None:
        """Run a function between two turns of the server's loop; what it raises is raised here."""
        if self._loop is None or self._thread is None:
            raise ServerFailed('the server is not running')

        async def run() -> None:
            function()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(START_S)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- in the thread

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as error:  # raised again by whoever started or stops it
            self._failure = error
        finally:
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(self._complain)
        server = await Server.open(Settings(self._settings), self._files, self.clock)
        node = server.broker.node
        self.address = self._settings['listen'] = show_address(node.host, node.port)
        if server.http is not None:
            self._settings['http'] = show_address(*server.http.address)
            self.http = f'http://{self._settings["http"]}'
        self._server = server
        ready.set()
        await self._stop.wait()
        await server.close()

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.complaints.append(f'{context.get("message")}: {context.get("exception")!r}')
