"""How a program gets a client: `acklog.connect`, and `acklog.connect_sync` for synchronous code."""

from __future__ import annotations

from acklog.client.blocking import BlockingClient
from acklog.client.client import Client


def connect(bootstrap: str = 'localhost:9092', *, timeout: float = 10.0, client_id: str = 'acklog') -> Client:
    """A client of acklog, or of Apache Kafka from 4.2 on, for `async with`. Parameters and errors as `Client`."""
    return Client(bootstrap, timeout=timeout, client_id=client_id)


def connect_sync(
    bootstrap: str = 'localhost:9092', *, timeout: float = 10.0, client_id: str = 'acklog'
) -> BlockingClient:
    """The same for `with`: its methods return when what they do is done. Parameters and errors as `Client`."""
    return BlockingClient(bootstrap, timeout=timeout, client_id=client_id)
