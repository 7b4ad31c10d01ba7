"""The Kafka listener: its sockets, its connections, its bounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from acklog.server.budget import Budget
from acklog.server.connection import Connection
from acklog.server.outgoing import Outgoing
from acklog.server.rate_limit import RateLimited
from acklog.server.unsent import Unsent
from acklog.wire.buffer_pool import BufferPool

if TYPE_CHECKING:
    from acklog.server.dispatch import Dispatch

BACKLOG = 1024
LOOK_S = 1.0  # at readers that are slow, while there are any
IDLE_LOOK_S = (0.1, 30.0)  # shortest and longest time between two looks for idle connections


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may make the server hold."""

    connections: int = 1_000
    connections_per_ip: int = 1_000
    request_bytes: int = 100 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 512 * 1024 * 1024
    total_answer_bytes: int = 512 * 1024 * 1024
    requests_under_way: int = 5_000
    idle_ms: int = 600_000


class Listener:
    """Accepts connections and keeps account of them."""

    def __init__(self, dispatch: Dispatch, limits: Limits) -> None:
        self.limits = limits
        self.complaints = RateLimited(logging.getLogger('acklog.connection'))
        self.budget = Budget(limits.total_bytes)
        self.unsent = Unsent(limits.total_answer_bytes)
        self.buffers = BufferPool()
        self.last_arrival = 0.0  # of anything from anybody, by the loop's time
        self.slow_readers: dict[Outgoing, Connection] = {}  # those that have answers to take
        self._dispatch = dispatch
        self._connections: set[Connection] = set()
        self._by_ip: Counter[str] = Counter()
        self._servers: list[asyncio.Server] = []
        self._looks: dict[str, asyncio.TimerHandle] = {}
        self._quiet: asyncio.Event | None = None  # nothing is under way any more; while it closes

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Listen on bound sockets. Raises OSError."""
        loop = asyncio.get_running_loop()
        for each in sockets:
            server = await loop.create_server(
                lambda: Connection(self, self._dispatch), sock=each, backlog=BACKLOG, start_serving=False
            )
            self._servers.append(server)
            await server.start_serving()
        self._look_for_idle()

    def reconfigure(self, limits: Limits) -> None:
        """Other bounds from now on; connections that are there stay."""
        self.limits = limits
        self.budget.limit = limits.total_bytes
        self.budget.give_back(0)  # there may be room now
        self.unsent.limit = limits.total_answer_bytes

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    def admit(self, connection: Connection) -> str | None:
        """The limit that keeps it out, if one does."""
        if len(self._connections) >= self.limits.connections:
            return 'max.connections'
        if self._by_ip[connection.ip] >= self.limits.connections_per_ip:
            return 'max.connections.per.ip'
        self._connections.add(connection)
        self._by_ip[connection.ip] += 1
        return None

    def forget(self, connection: Connection) -> None:
        self.keeps_up(connection)
        if connection in self._connections:
            self._connections.remove(connection)
            self._by_ip[connection.ip] -= 1
            if not self._by_ip[connection.ip]:
                del self._by_ip[connection.ip]
            self.gone_quiet()

    def slow(self, connection: Connection) -> None:
        """Its client has answers to take, until `keeps_up`."""
        self.slow_readers[connection.outgoing] = connection
        if 'readers' not in self._looks:
            self._look_again('readers', LOOK_S)

    def keeps_up(self, connection: Connection) -> None:
        self.slow_readers.pop(connection.outgoing, None)

    # -- looks ---------------------------------------------------------------------------------------------------------

    def _look_again(self, look: str, seconds: float) -> None:
        call = self._look_for_idle if look == 'idle' else self._look_at_readers
        self._looks[look] = asyncio.get_running_loop().call_later(seconds, call)

    def _look_for_idle(self) -> None:
        idle_ms = self.limits.idle_ms
        if idle_ms >= 0:
            self.close_idle(asyncio.get_running_loop().time())
        shortest, longest = IDLE_LOOK_S
        self._look_again('idle', min(max(idle_ms / 8000, shortest), longest) if idle_ms >= 0 else longest)

    def _look_at_readers(self) -> None:
        del self._looks['readers']
        self.relieve(monotonic())
        if self.slow_readers:
            self._look_again('readers', LOOK_S)

    def close_idle(self, now: float) -> None:
        """Close what has been silent for `connections.max.idle.ms`, in the middle of a request or between them, and who
        has taken nothing of an answer for so long. `now`: the loop's time, s."""
        silent_since = now - self.limits.idle_ms / 1000
        for connection in list(self._connections):
            if connection.last_used < silent_since and connection.idle and not connection.waits_for_room:
                connection.close()

    def relieve(self, now: float) -> None:
        """Bring the account of unsent answers up to date; where there are too many, close who is slowest in taking
        them. `now`: of time.monotonic."""
        used = asyncio.get_running_loop().time()
        for answers, connection in self.slow_readers.items():
            before = answers.unsent
            answers.settle()
            if answers.unsent < before:
                connection.last_used = used
        for answers in self.unsent.slowest(self.slow_readers, now):
            connection = self.slow_readers[answers]
            text = (
                'closing the connection of %s: it takes its answers too slowly: acklog.queued.max.answer.bytes reached'
            )
            self.complaints.warning('slow', text, connection.caller)
            connection.abort()

    # -- the end -------------------------------------------------------------------------------------------------------

    def gone_quiet(self) -> None:
        """A connection that has been told to finish has done so, or is gone."""
        if self._quiet is not None and all(connection.idle for connection in self._connections):
            self._quiet.set()

    async def close(self, grace: float) -> None:
        """Stop accepting, let what is under way finish for up to `grace` seconds, close."""
        for look in self._looks.values():
            look.cancel()
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.finish()
        self._quiet = asyncio.Event()
        self.gone_quiet()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), grace)
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)
