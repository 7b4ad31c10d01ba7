"""Taking records in tests, as input and answer."""

from __future__ import annotations

import time

from acklog.client import Client, Received, Subscription


async def publish(client: Client, topic: str, *values: bytes) -> None:
    """Publish these to partition 0, in order, each batch waited for."""
    async with client.producer() as producer:
        for value in values:
            await producer.send(topic, value, partition=0)


async def take(subscription: Subscription, count: int, seconds: float = 15.0) -> list[Received]:
    """Poll until there are so many records; fails when there are not in time."""
    taken: list[Received] = []
    deadline = time.monotonic() + seconds
    while len(taken) < count:
        assert time.monotonic() < deadline, f'{len(taken)} of {count} records after {seconds} s'
        taken += await subscription.poll(0.5)
    return taken


def told(records: list[Received]) -> list[tuple[int, bytes | None, int]]:
    """Offset, value and deliveries of each."""
    return [(record.offset, record.value, record.deliveries) for record in records]
