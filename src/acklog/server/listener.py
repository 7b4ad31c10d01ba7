"""The Kafka listener: its socket, its connections, its bounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acklog.server.budget import Budget
from acklog.server.connection import Connection

if TYPE_CHECKING:
    from acklog.server.dispatch import Dispatch


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may make the server hold."""

    connections: int = 1_000
    connections_per_ip: int = 1_000
    request_bytes: int = 100 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 512 * 1024 * 1024
    requests_under_way: int = 5_000
    idle_ms: int = 600_000


class Listener:
    """Accepts connections and keeps account of them."""

    def __init__(self, dispatch: Dispatch, limits: Limits) -> None:
        self.limits = limits
        self.budget = Budget(limits.total_bytes)
        self._dispatch = dispatch
        self._connections: set[Connection] = set()
        self._by_ip: Counter[str] = Counter()
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; the address that was really taken (port 0 picks one) comes back. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self, self._dispatch), host, port, backlog=1024, start_serving=False
        )
        address = self._server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.start_serving()

    def reconfigure(self, limits: Limits) -> None:
        """Other bounds from now on; connections that are there stay."""
        self.limits = limits
        self.budget.limit = limits.total_bytes

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
        if connection in self._connections:
            self._connections.remove(connection)
            self._by_ip[connection.ip] -= 1
            if not self._by_ip[connection.ip]:
                del self._by_ip[connection.ip]

    def close_idle(self, now: float) -> None:
        """Close what has been silent for `connections.max.idle.ms`. `now`: the loop's time, s."""
        for connection in list(self._connections):
            if self.limits.idle_ms >= 0 and connection.idle and now - connection.last_used > self.limits.idle_ms / 1000:
                connection.close()

    async def close(self, grace: float) -> None:
        """Stop accepting, let what is under way finish for up to `grace` seconds, close."""
        if self._server is not None:
            self._server.close()
        until = asyncio.get_running_loop().time() + grace
        while any(not connection.idle for connection in self._connections):
            if asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(0.005)
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)
