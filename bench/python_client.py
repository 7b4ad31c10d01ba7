"""The Python client beside the C client (confluent-kafka), both against one acklog server, in one run.

    python bench/python_client.py [--records 300000] [--address HOST:PORT]

Publish: records of 100 bytes to 4 partitions, acks=all, until all are confirmed. Take: the same records, all accepted.
Held: every tenth record is held to the end while the rest is settled, then those are settled too; and what that costs
in memory. Wall time on a shared machine says little, so CPU of this process is given too.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import acklog
from acklog.testing import usage
from acklog.testing.process import ServerProcess

VALUE = b'x' * 100
PARTITIONS = 4
EARLIEST = {'share.auto.offset.reset': 'earliest'}


@dataclass(slots=True)
class Timed:
    """How long something took, in all and of this process's CPU."""

    seconds: float = 0.0
    cpu: float = 0.0


@contextmanager
def timed() -> Iterator[Timed]:
    taken, wall, cpu = Timed(), time.perf_counter(), time.process_time()
    yield taken
    taken.seconds, taken.cpu = time.perf_counter() - wall, time.process_time() - cpu


def show(what: str, records: int, taken: Timed, more: str = '') -> float:
    rate = records / taken.seconds
    print(f'{what:46}{rate:>12,.0f}/s  {taken.cpu / records * 1e6:6.2f} us CPU a record{more}', flush=True)
    return rate


async def new_topic(client: acklog.Client) -> str:
    name = f'bench-{uuid.uuid4().hex[:8]}'
    await client.admin.create_topic(name, partitions=PARTITIONS)
    await client.admin.alter_group_configs(name, EARLIEST)
    return name


async def publish(client: acklog.Client, count: int) -> tuple[str, float]:
    topic = await new_topic(client)
    await client.publish_all(topic, [b'warm'])  # opens the connection, gets a producer id
    topic = await new_topic(client)
    with timed() as taken:
        await client.publish_all(topic, [VALUE] * count)
    return topic, show('acklog publish_all', count, taken)


async def send(client: acklog.Client, count: int) -> None:
    topic = await new_topic(client)
    async with client.producer() as producer:
        with timed() as taken:
            for _ in range(count):
                await producer.send(topic, VALUE)
            await producer.flush()
    show('acklog send, a future for each', count, taken)


async def take(client: acklog.Client, topic: str, count: int) -> None:
    got = 0
    async with client.subscribe(topic, [topic], max_records=5000, ahead=True) as subscription:
        with timed() as taken:
            while got < count:
                records = await subscription.poll(5.0)
                subscription.accept(records)
                got += len(records)
            await subscription.flush()
    show('acklog poll, accept a batch', count, taken)


async def take_one_by_one(client: acklog.Client, topic: str, count: int) -> None:
    got = 0
    async with client.subscribe(topic, [topic], max_records=5000) as subscription:
        with timed() as taken:
            async for record in subscription:
                record.accept()
                got += 1
                if got == count:
                    break
            await subscription.flush()
    show('acklog async for, record.accept()', count, taken)


async def hold(client: acklog.Client, topic: str, count: int, server: int | None) -> None:
    """Every tenth to the end, the rest settled."""
    gc.collect()
    before = resident(os.getpid())
    server_before = resident(server)
    held = []
    got = 0
    async with client.subscribe(topic, [topic], max_records=5000, max_unsettled=None) as subscription:
        with timed() as taken:
            async for record in subscription:
                got += 1
                if got % 10:
                    record.accept()
                else:
                    held.append(record)
                if got == count:
                    break
            await subscription.flush()
        most = f', {len(held):,} held: {resident(os.getpid()) - before:+.0f} MB here'
        most += f', {resident(server) - server_before:+.0f} MB in the server' if server else ''
        show('acklog, every tenth held', count, taken, most)
        with timed() as taken:
            subscription.accept(held)
            await subscription.flush()
        show('acklog, then those settled', len(held), taken)
    lag = sum(part.lag or 0 for part in await client.admin.lag(topic))
    assert lag == 0, f'{lag} records are left'


def take_sync(address: str, topic: str, count: int) -> None:
    got = 0
    with (
        acklog.connect_sync(address) as client,
        client.subscribe(topic, [topic], max_records=5000, ahead=True) as subscription,
        timed() as taken,
    ):
        while got < count:
            records = subscription.poll(5.0)
            subscription.accept(records)
            got += len(records)
        subscription.flush()
    show('acklog synchronous, poll, accept a batch', count, taken)


def resident(pid: int | None) -> float:
    """MB in use."""
    return 0.0 if pid is None else usage.resident_bytes(pid) / 1e6


def stock(address: str, publish_topic: str, take_topic: str, count: int) -> float:
    """The same with the C client: implicit accept, which is its fastest."""
    from stock import Target, consume
    from stock import publish as stock_publish

    target = Target(address, os.getpid(), 1.0)
    with timed() as taken:
        stock_publish(target, publish_topic, count, len(VALUE), acks='all')
    rate = show('confluent-kafka produce', count, taken)
    with timed() as taken:
        consume(target, take_topic, count, None)
    show('confluent-kafka poll, implicit accept', count, taken)
    return rate


async def measure(address: str, count: int, server: int | None) -> None:
    async with acklog.connect(address) as client:
        _, ours = await publish(client, count)
        topic, _ = await publish(client, count)
        await send(client, count)
        await take(client, topic, count)
        groups = [f'{topic}-{number}' for number in range(4)]
        for group in groups:
            await client.admin.alter_group_configs(group, EARLIEST)
        await again(client, count)
        topic, _ = await publish(client, count)
        await hold(client, topic, count, server)
        topic, _ = await publish(client, count)
        await asyncio.to_thread(take_sync, address, topic, count)
        topic, _ = await publish(client, count)
        theirs = await asyncio.to_thread(stock, address, await new_topic(client), topic, count)
    print(f'\npublish: the C client is {theirs / ours:.1f} times as fast')
    print(f'most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB')


async def again(client: acklog.Client, count: int) -> None:
    topic, _ = await publish(client, count)
    await take_one_by_one(client, topic, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--records', type=int, default=300_000)
    parser.add_argument('--address', help='of a server that runs; default: one of its own')
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    if options.address:
        asyncio.run(measure(options.address, options.records, None))
        return
    with tempfile.TemporaryDirectory(prefix='acklog-bench-') as folder, ServerProcess(Path(folder) / 'data') as server:
        asyncio.run(measure(server.address, options.records, server.pid))


if __name__ == '__main__':
    main()
