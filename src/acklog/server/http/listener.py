"""The HTTP listener: its sockets, its connections, its bounds.

Strategy: the sockets are listened on from the start, but Starlette, uvicorn's protocol and all of our own API are
imported when the first connection comes, in a thread; the connection waits in the socket's queue meanwhile. So a
server that nobody talks HTTP to starts as fast and is as small as without. uvicorn's `Server` is not used: signals,
logging and the loop are ours, and it wakes ten times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from acklog.server.http import address
from acklog.server.rate_limit import RateLimited

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.server.http.connection import Connection, Wiring
    from acklog.server.http.events import Events
    from acklog.server.listener import Listener

BACKLOG = 128
LOOK_S = 1.0  # between two looks at the connections, while there are any

logger = logging.getLogger('acklog.http')
complaints = RateLimited(logger)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What clients may make the server hold."""

    connections: int = 1_000
    connections_per_ip: int = 1_000
    body_bytes: int = 16 << 20
    head_s: float = 10.0  # from the first byte of a request's head to its last, and for a new connection to begin one
    body_s: float = 60.0  # for a body to arrive
    idle_s: float = 75.0  # between requests
    stuck_s: float = 30.0  # without taking any byte of an answer
    rest_s: float = 5.0  # for the rest of a body that was refused


class HttpListener:
    """Made when there is an address to listen on. `kafka`: the other listener, with which it shares `budget` and
    `unsent`, the accounts of all requests and answers. `events`: made with the rest of the API."""

    events: Events

    def __init__(self, broker: Broker, kafka: Listener, limits: HttpLimits) -> None:
        self.broker = broker
        self.limits = limits
        self.kafka = kafka
        self.budget = kafka.budget
        self.unsent = kafka.unsent
        self.stopping = asyncio.Event()
        self.connections: set[Connection] = set()
        self._by_ip: Counter[str] = Counter()
        self._sockets: Sequence[socket.socket] = ()
        self._servers: list[asyncio.Server] = []
        self._loading: asyncio.Task[None] | None = None
        self._look: asyncio.TimerHandle | None = None
        self.address = ('', 0)
        self.host = (address.configured(broker.settings) or ('', 0))[0]

    # -- begin ---------------------------------------------------------------------------------------------------------

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Listen on bound sockets. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._sockets = sockets
        first = min(sockets, key=lambda each: each.family != socket.AF_INET)  # IPv4 if there is one
        host, port = first.getsockname()[:2]
        self.address = (host, port)
        for each in sockets:
            each.listen(BACKLOG)
            loop.add_reader(each, self._first_connection)

    def _first_connection(self) -> None:
        for each in self._sockets:
            asyncio.get_running_loop().remove_reader(each)
        self._loading = asyncio.ensure_future(self._load())
        self._loading.add_done_callback(self._loaded)

    def _loaded(self, loading: asyncio.Task[None]) -> None:
        if not loading.cancelled() and (error := loading.exception()) is not None:
            logger.error('no HTTP: its modules cannot be loaded', exc_info=error)

    async def _load(self) -> None:
        begun = monotonic()
        wiring = await _in_thread(self)
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            server = await loop.create_server(lambda: wiring.connection(self), sock=each, backlog=BACKLOG)
            self._servers.append(server)
        logger.debug('ready for HTTP after %.3f s', monotonic() - begun)

    # -- connections ---------------------------------------------------------------------------------------------------

    def admit(self, connection: Connection) -> str | None:
        """The limit that keeps it out, if one does."""
        if len(self.connections) >= self.limits.connections:
            return 'acklog.http.max.connections'
        if self._by_ip[connection.ip] >= self.limits.connections_per_ip:
            return 'max.connections.per.ip'
        self.connections.add(connection)
        self._by_ip[connection.ip] += 1
        if self._look is None:
            self._look_again()
        return None

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        if connection in self.connections:
            self.connections.remove(connection)
            self._by_ip[connection.ip] -= 1
            if not self._by_ip[connection.ip]:
                del self._by_ip[connection.ip]

    def _look_again(self) -> None:
        self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_at_connections)

    def _look_at_connections(self) -> None:
        self._look = None
        self.look(monotonic())
        if self.connections:
            self._look_again()

    def look(self, now: float) -> None:
        """Close who is too slow: with a request's head, with the rest of a refused body, in taking an answer, or, where
        answers are too many in all, slowest in taking theirs. `now`: of time.monotonic."""
        for connection in list(self.connections):
            connection.settle()
            reason = connection.overdue(now, self.limits)
            if reason is not None:
                complaints.warning('slow', 'closing the HTTP connection of %s: %s', connection.address, reason)
                connection.abort()
        for reader in self.unsent.slowest(self.connections, now):
            text = 'closing the HTTP connection of %s: it takes its answers too slowly: %s reached'
            complaints.warning('slow', text, reader.address, 'acklog.queued.max.answer.bytes')
            reader.abort()

    # -- end -----------------------------------------------------------------------------------------------------------

    async def close(self, grace: float) -> None:
        """Stop accepting, let what is under way finish for up to `grace` seconds, close."""
        self.stopping.set()
        loop = asyncio.get_running_loop()
        sockets, self._sockets = self._sockets, ()
        for each in sockets:
            loop.remove_reader(each)
        if self._loading is not None:
            await asyncio.wait([self._loading], timeout=grace)
            self._loading.cancel()
        for server in self._servers:
            server.close()
        for each in sockets:
            each.close()
        if self._look is not None:
            self._look.cancel()
        for connection in list(self.connections):
            connection.finish()
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for connection in list(self.connections):
            connection.abort()
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)


async def _in_thread(listener: HttpListener) -> Wiring:
    """Import and build the API without holding up the loop for longer than the interpreter makes it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Wiring] = loop.create_future()

    def finish(wiring: Wiring | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if wiring is not None:
            done.set_result(wiring)
        else:
            assert error is not None
            done.set_exception(error)

    def load() -> None:
        outcome: tuple[Wiring | None, BaseException | None]
        try:
            wiring = importlib.import_module('acklog.server.http.connection').wire(listener)
        except BaseException as error:
            outcome = (None, error)
        else:
            outcome = (wiring, None)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants it any more
            loop.call_soon_threadsafe(finish, *outcome)

    threading.Thread(target=load, name='acklog-http-import', daemon=True).start()
    return await done
