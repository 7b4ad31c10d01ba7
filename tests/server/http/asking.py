"""What tests of HTTP ask again and again."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx

from acklog.server.http.listener import HttpListener
from acklog.server.server import Server


def listener_of(server: Server) -> HttpListener:
    assert server.http is not None
    return server.http


def base_of(server: Server) -> str:
    host, port = listener_of(server).address
    return f'http://{host}:{port}'


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The problem object of an answer that is one."""
    assert answer.headers['content-type'] == 'application/problem+json'
    fields: dict[str, Any] = answer.json()
    assert fields['status'] == answer.status_code
    assert set(fields) >= {'type', 'title', 'detail'}
    return fields


def free_port() -> int:
    with socket.socket() as made:
        made.bind(('127.0.0.1', 0))
        port: int = made.getsockname()[1]
        return port


class Wire:
    """A connection on which a test says exactly what it wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, server: Server) -> Wire:
        return cls(*await asyncio.open_connection(*listener_of(server).address))

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self, seconds: float = 10.0) -> bytes:
        """All that comes until the server closes."""
        async with asyncio.timeout(seconds):
            return await self.reader.read()

    async def answer(self, seconds: float = 10.0) -> bytes:
        """The head of an answer."""
        async with asyncio.timeout(seconds):
            return await self.reader.readuntil(b'\r\n\r\n')

    def close(self) -> None:
        self.writer.close()
