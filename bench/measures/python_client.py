"""The own client beside the C client (confluent-kafka), with records of 100 bytes in 4 partitions.

Publish with acks=all until all are confirmed, and take until all are accepted; each client in the ways it has for it.
Wall time on a shared machine says little, so CPU of this process is given too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from stock import Target, consume, own_cpu_seconds, publish

import acklog

RECORDS, AT_ONCE = 300_000, 5000
VALUE = b'x' * 100


def measure(target: Target) -> dict[str, float]:
    count = target.records(RECORDS)
    figures = asyncio.run(_own(target, count))
    topic = target.topic()
    publish(target, topic, count, len(VALUE), acks='all')
    figures |= _sync(target, topic, count)
    topic = target.topic()
    wall, cpu = time.perf_counter(), own_cpu_seconds()
    publish(target, topic, count, len(VALUE), acks='all')
    figures['c_publish'] = count / (time.perf_counter() - wall)
    figures['c_publish_cpu'] = (own_cpu_seconds() - cpu) / count * 1e6
    cpu = own_cpu_seconds()
    figures['c_take'] = consume(target, topic, count, None)
    figures['c_take_cpu'] = (own_cpu_seconds() - cpu) / count * 1e6
    figures['own_publish_slower'] = figures['c_publish'] / figures['own_publish']
    return figures


async def _own(target: Target, count: int) -> dict[str, float]:
    figures: dict[str, float] = {}

    async def timed(name: str, work: Callable[[acklog.Client, str, int], Awaitable[float]], topic: str) -> None:
        cpu = own_cpu_seconds()
        figures[name] = count / await work(client, topic, count)
        figures[f'{name}_cpu'] = (own_cpu_seconds() - cpu) / count * 1e6

    async with acklog.connect(target.address) as client:
        await client.publish_all(target.topic(), [b'warm'])  # opens the connection, gets a producer id
        batches, singles = target.topic(), target.topic()
        await timed('own_publish', _publish_all, batches)
        await timed('own_send', _send, singles)
        await timed('own_take', _take, batches)
        await timed('own_take_one', _take_one_by_one, singles)
    return figures


async def _publish_all(client: acklog.Client, topic: str, count: int) -> float:
    begun = time.perf_counter()
    await client.publish_all(topic, [VALUE] * count)
    return time.perf_counter() - begun


async def _send(client: acklog.Client, topic: str, count: int) -> float:
    async with client.producer() as producer:
        begun = time.perf_counter()
        for _ in range(count):
            await producer.send(topic, VALUE)
        await producer.flush()
        return time.perf_counter() - begun


async def _take(client: acklog.Client, topic: str, count: int) -> float:
    got = 0
    async with client.subscribe(topic, [topic], max_records=AT_ONCE, ahead=True) as subscription:
        begun = time.perf_counter()
        while got < count:
            records = await subscription.poll(5.0)
            subscription.accept(records)
            got += len(records)
        await subscription.flush()
        return time.perf_counter() - begun


async def _take_one_by_one(client: acklog.Client, topic: str, count: int) -> float:
    got = 0
    async with client.subscribe(topic, [topic], max_records=AT_ONCE) as subscription:
        begun = time.perf_counter()
        async for record in subscription:
            record.accept()
            got += 1
            if got == count:
                break
        await subscription.flush()
        return time.perf_counter() - begun


def _sync(target: Target, topic: str, count: int) -> dict[str, float]:
    """The own client's synchronous face."""
    got = 0
    with (
        acklog.connect_sync(target.address) as client,
        client.subscribe(topic, [topic], max_records=AT_ONCE, ahead=True) as subscription,
    ):
        begun = time.perf_counter()
        while got < count:
            records = subscription.poll(5.0)
            subscription.accept(records)
            got += len(records)
        subscription.flush()
        return {'own_take_sync': count / (time.perf_counter() - begun)}
