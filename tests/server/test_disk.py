"""A disk that is full or fails while the server runs: what cannot be stored is refused with an error that clients
understand, nothing that was answered is lost, everything else goes on, and all of it does when the disk is well again.
ACKLOG_STORMS=N makes it N storms of faults at random (default 6).

Over files in memory; `tests/system/test_disk_full.py` tries a real full disk.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import zlib
from uuid import UUID

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.hostile import VERSIONS, Hostile
from tests.server.raw import CREATE_TOPICS, FETCH, METADATA, PRODUCE, SHARE_FETCH, Closed, Raw
from tests.server.test_hostile_requests import NAMES, world
from tests.server.traffic import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    accept,
    acquired,
    batch,
    create,
    fetch,
    join,
    produce,
    publish,
    share_fetch,
    until_created,
)

from acklog.log.faulty_files import FaultyFiles
from acklog.server.server import Server
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import spans

FULL = int(ErrorCode.KAFKA_STORAGE_ERROR)
NO_RETENTION = {'log.retention.ms': -1}  # the records of these tests are from long ago
WRITES = ('pwritev', 'fdatasync', 'open', 'mkdir', 'rename', 'fsync_dir', 'truncate', 'allocate')


async def until_published(raw: Raw, name: str, seconds: float = 5) -> None:
    """Publishing goes on in that time."""
    async with asyncio.timeout(seconds):
        while True:
            if await publish(raw, name, batch(10), acks=-1) == 0:
                return
            await asyncio.sleep(0.02)


async def take_from(server: Server, files: FaultyFiles) -> tuple[Raw, UUID]:
    """A connection with topic t, five records in it, and a member of group g that begins at the first."""
    raw = await Raw.connect(address_of(server))
    await server.broker.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    topic = await create(raw, 't')
    for _ in range(5):
        assert await publish(raw, 't', batch(100), acks=-1) == 0
    await join(raw, 'g', 'm', 't')
    return raw, topic


async def poll(raw: Raw, topic: UUID, epoch: int, records: int = 1) -> list[tuple[int, int, int]]:
    await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', 'm', epoch, topic, records=records)))
    return acquired(await raw.answer(SHARE_FETCH, 1))


@pytest.mark.parametrize('error', [errno.EIO, errno.ENOSPC, errno.EDQUOT])
async def test_a_failed_sync_refuses_what_waited_for_it(error: int, serve: Serve) -> None:
    files = FaultyFiles()
    server = await serve(NO_RETENTION, files=files)
    raw, topic = await take_from(server, files)
    other = await create(raw, 'other')
    files.fail('fdatasync', error, f'*/{server.broker.catalog.topics["t"].log_name(0)}/*', times=3)
    assert await publish(raw, 't', batch(100), acks=-1) == FULL
    assert await publish(raw, 'other', batch(100), acks=-1) == 0
    assert await poll(raw, topic, 0) == [(0, 0, 0)]
    assert await accept(raw, 'g', 'm', 1, topic, [(0, 0, 0)]) == 0
    await until_published(raw, 't')
    assert other


@pytest.mark.parametrize('error', [errno.EIO, errno.ENOSPC])
async def test_a_journal_that_cannot_be_written_fences_and_comes_back(error: int, serve: Serve) -> None:
    files = FaultyFiles()
    server = await serve(NO_RETENTION, files=files)
    raw, topic = await take_from(server, files)
    assert await poll(raw, topic, 0, 3) == [(0, 0, 2)]
    assert await accept(raw, 'g', 'm', 1, topic, [(0, 0, 0)]) == 0
    files.fail('pwritev', error, '*/__share_state/*.log', times=None)
    assert await accept(raw, 'g', 'm', 2, topic, [(0, 1, 1)]) == FULL
    assert await publish(raw, 't', batch(100), acks=-1) == 0
    files.heal()
    async with asyncio.timeout(5):
        for epoch in range(3, 1000):
            if (code := await accept(raw, 'g', 'm', epoch, topic, [(0, 1, 1)])) == 0:
                break
            assert code == FULL
            await asyncio.sleep(0.02)
    await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', 'm', 0, topic, records=500)))  # what it held comes back
    assert acquired(await raw.answer(SHARE_FETCH, 1)) == [(0, 2, 2), (0, 3, 5)]


async def test_a_journal_that_cannot_be_written_for_long_costs_little(serve: Serve) -> None:
    """Members of many share partitions try again and again, and each time the disk refuses."""
    files = FaultyFiles()
    server = await serve(NO_RETENTION, files=files)
    raw = await Raw.connect(address_of(server))
    await server.broker.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    topic = await create(raw, 't', 40)
    for index in range(40):
        assert await publish(raw, 't', batch(500, 50), index=index) == 0
    await join(raw, 'g', 'm', 't')
    await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', 'm', 0, topic, range(40), records=2000)))
    assert len(acquired(await raw.answer(SHARE_FETCH, 1))) == 40
    for offset in range(20):  # some history: 800 events
        for index in range(40):
            assert await accept(raw, 'g', 'm', offset * 40 + index + 1, topic, [(index, offset, offset)]) == 0
    other = await Raw.connect(address_of(server))
    files.fail('pwritev', errno.ENOSPC, '*/__share_state/*.log', times=None)
    before, loop, everywhere = files.calls.copy(), asyncio.get_running_loop(), [(n, 20, 20) for n in range(40)]
    until, epoch = loop.time() + 1.5, 801
    while loop.time() < until:
        assert await accept(raw, 'g', 'm', epoch, topic, everywhere) == FULL
        await other.call(METADATA, 12, {'topics': []})
        epoch += 1
    for operation in ('pread', 'pwritev'):  # the history is not read, and the disk not asked, with each of them
        assert files.calls[operation] - before[operation] < 100
    files.heal()
    await asyncio.sleep(2)
    assert await accept(raw, 'g', 'm', epoch, topic, everywhere) == 0


async def test_a_catalog_that_cannot_be_written(serve: Serve) -> None:
    files = FaultyFiles()
    server = await serve(NO_RETENTION, files=files)
    raw, _ = await take_from(server, files)
    for error in (errno.ENOSPC, errno.EIO):
        files.fail('pwritev', error, '*/__catalog/*.log', times=None)
        new = {'name': 'new', 'num_partitions': 1, 'replication_factor': -1}
        answer = await raw.call(CREATE_TOPICS, 7, {'topics': [new], 'timeout': 1000})
        assert answer['topics'][0]['error_code'] == FULL
        auto = {'topics': [{'name': 'auto'}], 'allow_auto_topic_creation': True}
        assert (await raw.call(METADATA, 12, auto))['topics'][0]['error_code'] != 0
        assert await publish(raw, 't', batch(100), acks=-1) == 0
        files.heal()
    await until_created(raw, 'new')
    assert await publish(raw, 'new', batch(100)) == 0


@pytest.mark.parametrize('error', [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize('key', sorted(VERSIONS), ids=lambda key: NAMES[key])
async def test_every_api_on_a_disk_that_takes_nothing(key: int, error: int, serve: Serve) -> None:
    """Each request is answered; no error is one that says nothing (UNKNOWN_SERVER_ERROR)."""
    files = FaultyFiles()
    server = await serve(NO_RETENTION, files=files)
    address = address_of(server)
    known = await world(address)
    hostile = Hostile(zlib.crc32(NAMES[key].encode()), ['t', 'u', 'g', 'm'], known._ids)
    for operation in ('pwritev', 'fdatasync', 'mkdir', 'rename', 'fsync_dir'):
        files.fail(operation, error, times=None)
    raw = await Raw.connect(address)
    for _ in range(12):
        version, fields = hostile.request(key)
        for name in ('max_wait', 'max_wait_ms', 'timeout', 'timeout_ms'):
            if name in fields:
                fields[name] = min(fields[name], 20)
        if key == PRODUCE:
            fields['acks'] = -1
        try:
            answer = await raw.call(key, version, fields, 5)
        except Closed:
            raw = await Raw.connect(address)
        else:
            assert -1 not in codes(answer), (version, fields, answer)
    files.heal()
    raw = await Raw.connect(address)
    await until_created(raw, 'new')
    await until_published(raw, 'new')


def codes(answer: object) -> set[int]:
    if isinstance(answer, dict):
        found = {int(value) for name, value in answer.items() if name.endswith('error_code')}
        return found.union(*(codes(value) for value in answer.values()))
    if isinstance(answer, list):
        return set[int]().union(*(codes(each) for each in answer))
    return set()


class Storm:
    """Publishers and subscribers who remember what they were answered, while the disk fails at random."""

    def __init__(self, seed: int, address: str, topic: UUID, files: FaultyFiles) -> None:
        self.pick = random.Random(seed)
        self.address, self.topic, self.files = address, topic, files
        self.stored: set[int] = set(range(5))
        self.done: set[int] = set()
        self.over = False

    async def publishing(self) -> None:
        raw = await Raw.connect(self.address)
        while not self.over:
            await raw.send(raw.frame(PRODUCE, PRODUCE_VERSION, produce('t', batch(20_000), acks=-1)))
            answer = await raw.answer(PRODUCE, PRODUCE_VERSION)
            answered = answer['responses'][0]['partition_responses'][0]
            if answered['error_code'] == 0:
                assert answered['base_offset'] not in self.stored
                self.stored.add(answered['base_offset'])
            else:
                assert answered['error_code'] == FULL
                await asyncio.sleep(0.005)

    async def taking(self, member: str) -> None:
        raw, epoch = await Raw.connect(self.address), 0
        while not self.over:
            await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', member, epoch, self.topic, wait=20, records=3)))
            answer = await raw.answer(SHARE_FETCH, 1)
            if answer['error_code']:
                epoch = 0
                continue
            taken = acquired(answer)
            offsets = {offset for _, first, last in taken for offset in range(first, last + 1)}
            assert not offsets & self.done
            if taken and await accept(raw, 'g', member, epoch + 1, self.topic, taken) == 0:
                self.done.update(offsets)
            epoch += 2 if taken else 1

    async def breaking(self) -> None:
        pick, files = self.pick, self.files
        for _ in range(25):
            await asyncio.sleep(pick.random() * 0.03)
            files.fail(
                pick.choice(WRITES),
                pick.choice([errno.EIO, errno.ENOSPC]),
                pick.choice(['*', '*/__share_state/*', '*.log', '*.index', '*/__catalog/*']),
                after=pick.randrange(3),
                times=pick.choice([1, 1, 2, 5]),
            )
            if pick.random() < 0.3:
                files.heal()
        files.heal()
        await asyncio.sleep(0.3)
        self.over = True


@pytest.mark.parametrize('seed', range(int(os.environ.get('ACKLOG_STORMS', '6'))))
async def test_faults_at_random_lose_nothing_that_was_answered(seed: int, serve: Serve) -> None:
    files = FaultyFiles()
    server = await serve(NO_RETENTION | {'log.segment.bytes': 1 << 20}, files=files)
    raw, topic = await take_from(server, files)
    storm = Storm(seed, address_of(server), topic, files)
    await asyncio.gather(
        *(storm.publishing() for _ in range(3)), storm.taking('a'), storm.taking('b'), storm.breaking()
    )
    await until_published(raw, 't')
    await until_created(raw, 'new')
    found: set[int] = set()
    while span := await next_spans(raw, max(found, default=-1) + 1):
        found.update(span)
    assert storm.stored <= found
    assert len(storm.done) > 5


async def next_spans(raw: Raw, offset: int) -> set[int]:
    answer = await raw.call(FETCH, FETCH_VERSION, fetch('t', offset))
    partition = answer['responses'][0]['partitions'][0]
    assert partition['error_code'] == 0
    return {o for span in spans(partition['records'] or b'') for o in range(span.first, span.last + 1)}
