"""How late records come that were published for later: `python bench/lateness.py`.

Two runs, each on a fresh server: records due at random instants over four seconds, and all due at the same instant.
Dues lie behind the publishing, so all of them wait at first. One member takes and accepts them, as fast as it can, by
the Kafka protocol without decoding records (a client's own time is not what is measured); another process publishes
one record a millisecond to another topic all the while, and notes how long each took: while all wait, and while they
come. Lateness is the time of arrival at the member minus the instant.

    --records N      (200000)
    --batch N        records in a published batch (100)
    --only NAME      spread or storm
    --stock          takes with the stock client instead: its decoding counts then
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import shutil
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path

from servers import Acklog, resident_mb

from acklog.client.calls import METADATA, PRODUCE, SHARE_FETCH, SHARE_GROUP_HEARTBEAT, Cold, Hot
from acklog.client.connection import Connection, open_connection
from acklog.testing import usage
from acklog.testing.stock_client import QUIET, configure_group, create_topic
from acklog.wire import produce, share_fetch
from acklog.wire.record_batch import build

TOPIC, OTHER, GROUP = 'later', 'other', 'g'
HEADER = 'acklog-deliver-at'
VALUE = b'x' * 100
SETTLE_S = 3.0  # between the last publish and the first instant


def now_us() -> int:
    return time.time_ns() // 1000


async def connect(address: str) -> Connection:
    host, _, port = address.rpartition(':')
    return await open_connection(host, int(port), client_id='bench', within=10)


async def topic_id(connection: Connection, name: str) -> bytes:
    answer = await connection.call(Cold(METADATA, {'topics': [{'name': name}]}), 10)
    found: bytes = answer.topics[0].topic_id.bytes
    return found


# -- publishing --------------------------------------------------------------------------------------------------------


async def send(connection: Connection, topic: str, identity: bytes, batch: bytes | bytearray, acks: int = 1) -> int:
    records = [produce.Topic(topic, identity, [produce.Partition(0, batch)])]
    request = produce.Request(acks, 10_000, None, records)
    answer = await connection.call(Hot(PRODUCE, produce.encode_request, produce.decode_response, request), 30)
    [partition] = answer.topics[0].partitions
    assert partition.error_code == 0, partition
    offset: int = partition.base_offset
    return offset


async def publish(address: str, dues: array[int], batch: int) -> array[int]:
    """The instants by offset."""
    connection = await connect(address)
    identity = await topic_id(connection, TOPIC)
    sent: list[asyncio.Task[int]] = []
    for at in range(0, len(dues), batch):
        records = [(None, VALUE, [(HEADER, b'%d' % due)]) for due in dues[at : at + batch]]
        sent.append(asyncio.create_task(send(connection, TOPIC, identity, build(records, timestamp=now_us() // 1000))))
        if len(sent) > 8:
            await sent[-8]
    by_offset = dues[:]
    for number, first in enumerate(await asyncio.gather(*sent)):
        by_offset[first : first + batch] = dues[number * batch : (number + 1) * batch]
    await connection.close()
    return by_offset


def build_ms(batch: int) -> float:
    """How long building a record takes here, now."""
    begun = time.monotonic()
    for _ in range(max(1, 5000 // batch)):
        build([(None, VALUE, [(HEADER, b'%d' % now_us())]) for _ in range(batch)], timestamp=0)
    return (time.monotonic() - begun) * 1000 / max(1, 5000 // batch) / batch + 0.03


async def probe(address: str, file: str) -> None:
    """One record a millisecond until stdin ends; (when, how long) in us."""
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(None, sys.stdin.read)
    connection = await connect(address)
    identity = await topic_id(connection, OTHER)
    took = array('q')
    due = time.monotonic()
    while not ended.done():
        due = max(due + 0.001, time.monotonic() - 0.001)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        begun = now_us()
        await send(connection, OTHER, identity, build([(None, VALUE)], timestamp=begun // 1000))
        took.extend((begun, now_us() - begun))
    write(file, took)


# -- taking ------------------------------------------------------------------------------------------------------------


async def take(address: str, count: int, file: str) -> None:
    """(offset, when) in us of every record of the topic."""
    connection = await connect(address)
    identity = await topic_id(connection, TOPIC)
    beat = {'group_id': GROUP, 'member_id': 'm', 'member_epoch': 0, 'subscribed_topic_names': [TOPIC]}
    await connection.call(Cold(SHARE_GROUP_HEARTBEAT, beat), 10)
    print('ready', flush=True)
    came = array('q')
    acks: list[tuple[int, int, bytes, None]] = []
    epoch = 0
    while len(came) < 2 * count:
        topics = [share_fetch.Topic(identity, [share_fetch.Partition(0, acks)])] if acks or epoch == 0 else []
        request = share_fetch.Request(GROUP, 'm', epoch, 1000, 1, 4 << 20, 500, 500, 0, False, topics, [])
        answer = await connection.call(
            Hot(SHARE_FETCH, share_fetch.encode_request, share_fetch.decode_response, request), 30
        )
        when = now_us()
        assert answer.error_code == 0, answer
        epoch += 1
        acks = []
        for topic in answer.topics:
            for partition in topic.partitions:
                assert partition.error_code == 0 and partition.ack_error_code == 0, partition
                for first, last, _ in partition.acquired:
                    acks.append((first, last, b'\x01', None))
                    for offset in range(first, last + 1):
                        came.extend((offset, when))
    write(file, came)


def take_stock(address: str, count: int, file: str) -> None:
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer({'bootstrap.servers': address, 'group.id': GROUP, **QUIET})
    consumer.subscribe([TOPIC])
    print('ready', flush=True)
    came = array('q')
    while len(came) < 2 * count:
        messages = consumer.poll(1.0)
        when = now_us()
        for message in messages:
            came.extend((message.offset(), when))
    write(file, came)
    consumer.close()


# -- the whole ---------------------------------------------------------------------------------------------------------


def percentile(values: list[int], percent: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))] / 1000


def run(name: str, options: argparse.Namespace, folder: Path) -> None:
    server = Acklog(folder)
    server.start()
    children = []
    try:
        for topic in (TOPIC, OTHER):
            create_topic(server.address, topic, 1, {'acklog.deliver.at.enable': 'true'} if topic == TOPIC else {})
        configure_group(server.address, GROUP, {'share.auto.offset.reset': 'earliest'})
        count = options.records
        files = {role: str(folder / f'{name}-{role}') for role in ('take', 'probe')}
        children = [
            start(role, server.address, files[role], *(['--stock'] if options.stock else []), '--records', str(count))
            for role in files
        ]
        assert children[0].stdout is not None
        children[0].stdout.readline()
        begun = time.monotonic()
        base = now_us() // 1000 + int(count * build_ms(options.batch) * 1.2 + SETTLE_S * 1000)
        spread = {'spread': 4000, 'storm': 0}[name]
        dues = array('q', (base + random.randint(0, spread) for _ in range(count)))
        dues = asyncio.run(publish(server.address, dues, options.batch))
        published = time.monotonic() - begun
        early = base - now_us() // 1000
        memory, cpu, at = resident_mb(server), usage.cpu_seconds(server.pid), time.monotonic()
        children[0].wait(180)
        cpu, at = usage.cpu_seconds(server.pid) - cpu, time.monotonic() - at
        time.sleep(0.5)
        assert children[1].stdin is not None
        children[1].stdin.close()
        children[1].wait(10)
        report(name, files, dues, base, early)
        print(
            f'  published at {count / published:,.0f}/s; {memory:.0f} MB while all wait; server {cpu:.1f} s of {at:.1f}'
        )
    finally:
        for child in children:
            child.kill()
            child.wait()
        server.remove()


def start(role: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, '--role', role, '--address', *arguments[:1], '--file', *arguments[1:]]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def write(file: str, values: array[int]) -> None:
    Path(file).write_bytes(values.tobytes())


def read(file: str) -> list[tuple[int, int]]:
    values = array('q')
    values.frombytes(Path(file).read_bytes())
    return list(zip(values[::2], values[1::2], strict=True))


def report(name: str, files: dict[str, str], dues: array[int], base: int, early: int) -> None:
    came = read(files['take'])
    late = [when - dues[offset] * 1000 for offset, when in came]
    last = max(when for _, when in came)
    ordered = all(one[0] < two[0] for one, two in itertools.pairwise(came))
    print(f'{name}: {len(came):,} records, {len({offset for offset, _ in came}):,} different, {early} ms to spare')
    print(
        f'  late by p50 {percentile(late, 50):.1f}, p99 {percentile(late, 99):.1f}, max {max(late) / 1000:.1f} ms; '
        f'earliest {min(late) / 1000:.2f}; all there {last / 1e6 - base / 1e3:.2f} s after the first instant'
        + ('; in order' if ordered else '')
    )
    warm = [when - dues[offset] * 1000 for offset, when in came if dues[offset] >= base + 500]
    if warm:
        print(f'  due after the first half second: p50 {percentile(warm, 50):.1f}, p99 {percentile(warm, 99):.1f} ms')
    took = read(files['probe'])
    parts = {
        'while published': [d for at, d in took if at < (base - early) * 1000],
        'while all wait': [d for at, d in took if (base - early) * 1000 <= at < base * 1000 - 100_000],
        'while they come': [d for at, d in took if base * 1000 <= at <= last],
    }
    for words, values in parts.items():
        if values:
            print(
                f'  publishing elsewhere {words}: p50 {percentile(values, 50):.2f}, p99 {percentile(values, 99):.2f}, '
                f'max {max(values) / 1000:.1f} ms of {len(values)}'
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--records', type=int, default=200_000)
    parser.add_argument('--batch', type=int, default=100)
    parser.add_argument('--only', choices=['spread', 'storm'])
    parser.add_argument('--stock', action='store_true')
    for hidden in ('--role', '--address', '--file'):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == 'probe':
        asyncio.run(probe(options.address, options.file))
    elif options.role == 'take':
        if options.stock:
            take_stock(options.address, options.records, options.file)
        else:
            asyncio.run(take(options.address, options.records, options.file))
    else:
        folder = Path(tempfile.mkdtemp(prefix='acklog-lateness-'))
        try:
            for name in [options.only] if options.only else ['spread', 'storm']:
                run(name, options, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
