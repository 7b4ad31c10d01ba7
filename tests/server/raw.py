"""A client that says anything: frames as bytes, messages with any values, answers or not."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from acklog.wire import cold
from acklog.wire.frame import request_frame, response_body

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 3, 18, 19
SHARE_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 78, 79


class Closed(Exception):
    """The server has closed the connection."""


class Raw:
    """One connection. `opened`: all that were made; whoever makes some closes them by `close_all` in the end."""

    opened: ClassVar[list[Raw]] = []

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._id = 0
        Raw.opened.append(self)

    @classmethod
    async def connect(cls, address: str, *, receive_buffer: int = 0) -> Raw:
        """`receive_buffer`: bytes that the operating system takes for a client that does not read, about."""
        host, _, port = address.rpartition(':')
        host = host.strip('[]')
        sock = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
        raw = cls(sock)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
        return raw

    async def send(self, data: bytes) -> None:
        """Raises Closed."""
        try:
            await asyncio.get_running_loop().sock_sendall(self.sock, data)
        except ConnectionError:
            raise Closed from None

    def frame(self, key: int, version: int, fields: Mapping[str, Any], client_id: str | None = 'raw') -> bytes:
        self._id += 1
        return request(key, version, fields, client_id, self._id)

    async def answer(self, key: int, version: int, seconds: float = 10.0) -> dict[str, Any]:
        """The next answer, which must be one to this request. Raises Closed, TimeoutError."""
        frame = await self.answer_frame(seconds)
        return cold.as_dict(cold.decode_response(key, version, response_body(key, version, memoryview(frame))))

    async def answer_frame(self, seconds: float = 10.0) -> bytes:
        async with asyncio.timeout(seconds):
            (size,) = struct.unpack('>i', await self.read(4))
            return await self.read(size)

    async def read(self, size: int) -> bytes:
        """So many bytes. Raises Closed."""
        data = bytearray()
        while len(data) < size:
            try:
                more = await asyncio.get_running_loop().sock_recv(self.sock, min(size - len(data), 1 << 20))
            except ConnectionError:
                raise Closed from None
            if not more:
                raise Closed
            data += more
        return bytes(data)

    async def call(self, key: int, version: int, fields: Mapping[str, Any], seconds: float = 10.0) -> dict[str, Any]:
        await self.send(self.frame(key, version, fields))
        return await self.answer(key, version, seconds)

    async def closed(self, seconds: float = 5.0) -> bool:
        """Whether the server closes within that time; what it still says is passed over."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if not await asyncio.get_running_loop().sock_recv(self.sock, 1 << 20):
                        return True
                    await asyncio.sleep(0)
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        """Go without a word."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.sock.close()

    @classmethod
    def close_all(cls) -> None:
        for raw in cls.opened:
            raw.close()
        cls.opened.clear()


def request(
    key: int, version: int, fields: Mapping[str, Any], client_id: str | None = 'raw', correlation_id: int = 1
) -> bytes:
    """The bytes of a request."""
    return b''.join(request_frame(key, version, correlation_id, client_id, [cold.encode_request(key, version, fields)]))
