"""Many clients at once that do anything at any time: publish, take, sign off, create, delete, configure, send what
means harm, pipeline, go in the middle of a request. Nothing of it is an error of the server, and at the end it is as
idle as at the beginning.

ACKLOG_STORM_SECONDS=N makes each of the storms so long (default 1.5), ACKLOG_STORMS=N that many (default 2).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.hostile import VERSIONS, Hostile
from tests.server.raw import (
    CREATE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_HEARTBEAT,
    Closed,
    Raw,
)
from tests.server.test_nonsense import is_well
from tests.server.traffic import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    acquired,
    batch,
    fetch,
    produce,
    share_fetch,
)
from tests.server.wall import Wall

from acklog.log.faulty_files import FaultyFiles
from acklog.server.clock import Clock
from acklog.server.server import Server

SECONDS = float(os.environ.get('ACKLOG_STORM_SECONDS', '1.5'))
STORMS = int(os.environ.get('ACKLOG_STORMS', '2'))
TOPICS = ['t', 'u', 'v']
GROUPS = ['g', 'h']
MEMBERS = ['a', 'b', 'c']
HOUR = 3_600_000
YEAR_1960, YEAR_9999 = -66 * 365 * 24 * HOUR, 7_960 * 365 * 24 * HOUR  # from now, about


class Client:
    """One that does one thing after another until the time is over."""

    def __init__(self, pick: random.Random, server: Server, until: float) -> None:
        self.pick, self.server, self.until = pick, server, until
        self.address = address_of(server)
        self.epochs: dict[tuple[str, str], int] = {}
        self.does: list[Callable[[Raw], Awaitable[None]]] = [
            self.publishes, self.publishes, self.takes, self.takes, self.takes, self.takes, self.reads, self.creates,
            self.deletes, self.joins, self.joins, self.means_harm, self.means_harm, self.pipelines, self.configures,
        ]  # fmt: skip

    async def run(self) -> None:
        while asyncio.get_running_loop().time() < self.until:
            raw = await Raw.connect(self.address)
            with contextlib.suppress(Closed, TimeoutError):
                for _ in range(self.pick.randrange(1, 20)):
                    await self.pick.choice(self.does)(raw)
                    await asyncio.sleep(0)
            if self.pick.random() < 0.3:
                raw.reset()
            raw.close()

    def ids(self) -> list[UUID]:
        known = [topic.id for topic in self.server.broker.catalog.topics.values()]
        return known or [UUID(int=1)]

    async def publishes(self, raw: Raw) -> None:
        name, acks = self.pick.choice(TOPICS), self.pick.choice([1, -1])
        fields = produce(name, batch(self.pick.choice([10, 5000]), self.pick.choice([1, 10])), acks=acks)
        await raw.call(PRODUCE, PRODUCE_VERSION, fields, 5)

    async def reads(self, raw: Raw) -> None:
        fields = fetch(self.pick.choice(TOPICS), self.pick.randrange(50), wait=self.pick.choice([0, 30]))
        await raw.call(FETCH, FETCH_VERSION, fields, 5)

    async def takes(self, raw: Raw) -> None:
        group, member, topic = self.pick.choice(GROUPS), self.pick.choice(MEMBERS), self.pick.choice(self.ids())
        epoch = self.epochs.get((group, member), 0)
        poll = share_fetch(group, member, epoch, topic, (0,), wait=self.pick.choice([0, 30]), records=3)
        answer = await raw.call(SHARE_FETCH, 1, poll, 5)
        if answer['error_code']:
            self.epochs[group, member] = 0
            return
        self.epochs[group, member] = epoch + 1
        batches = [
            {'first_offset': first, 'last_offset': last, 'acknowledge_types': [self.pick.choice([1, 2, 3])]}
            for _, first, last in acquired(answer)
        ]
        if batches and self.pick.random() < 0.8:
            partitions = [{'partition_index': 0, 'acknowledgement_batches': batches}]
            fields = {'group_id': group, 'member_id': member, 'share_session_epoch': epoch + 1}
            fields['topics'] = [{'topic_id': topic, 'partitions': partitions}]
            if self.pick.random() < 0.1:
                fields['share_session_epoch'] = -1
            answer = await raw.call(SHARE_ACKNOWLEDGE, 1, fields, 5)
            self.epochs[group, member] = 0 if answer['error_code'] else epoch + 2

    async def joins(self, raw: Raw) -> None:
        fields = {'group_id': self.pick.choice(GROUPS), 'member_id': self.pick.choice(MEMBERS)}
        fields['member_epoch'] = self.pick.choice([0, 0, -1])
        await raw.call(SHARE_HEARTBEAT, 1, fields | {'subscribed_topic_names': TOPICS}, 5)

    async def creates(self, raw: Raw) -> None:
        topic = {'name': self.pick.choice(TOPICS), 'num_partitions': 1, 'replication_factor': -1}
        await raw.call(CREATE_TOPICS, 7, {'topics': [topic], 'timeout': 1000}, 5)

    async def deletes(self, raw: Raw) -> None:
        if self.pick.random() < 0.5:
            await raw.call(42, 2, {'groups_names': [self.pick.choice(GROUPS)]}, 5)
        elif self.pick.random() < 0.5:
            await raw.call(20, 6, {'topics': [{'name': self.pick.choice(TOPICS)}], 'timeout': 1000}, 5)
        else:
            cut = {'partition_index': 0, 'offset': self.pick.choice([-1, 0, 5, 20])}
            topics = [{'name': self.pick.choice(TOPICS), 'partitions': [cut]}]
            await raw.call(21, 2, {'topics': topics, 'timeout': 1000}, 5)

    async def configures(self, raw: Raw) -> None:
        kind, name, config, value = self.pick.choice(
            [
                (2, self.pick.choice(TOPICS), 'retention.bytes', '100000'),
                (2, self.pick.choice(TOPICS), 'segment.bytes', '1048576'),
                (32, self.pick.choice(GROUPS), 'share.auto.offset.reset', 'earliest'),
                (32, self.pick.choice(GROUPS), 'share.record.lock.duration.ms', '15000'),
                (32, self.pick.choice(GROUPS), 'acklog.retry.backoff', self.pick.choice(['0ms', 'fixed:50ms'])),
                (4, '', 'queued.max.request.bytes', self.pick.choice(['1048576', '100000000'])),
                (4, '', 'acklog.state.sync', self.pick.choice(['all', 'interval'])),
            ]
        )
        changed = [{'name': config, 'config_operation': 0, 'value': value}]
        resource = {'resource_type': kind, 'resource_name': name, 'configs': changed}
        await raw.call(44, 1, {'resources': [resource], 'validate_only': False}, 5)

    async def means_harm(self, raw: Raw) -> None:
        key = self.pick.choice(sorted(VERSIONS))
        hostile = Hostile(self.pick.randrange(1 << 30), [*TOPICS, *GROUPS, *MEMBERS], self.ids())
        version, fields = hostile.request(key)
        if key == CREATE_TOPICS:
            return  # for it may leave very many partitions
        for name in ('max_wait', 'max_wait_ms', 'timeout', 'timeout_ms'):
            if name in fields:
                fields[name] = min(fields[name], 30)
        if key == PRODUCE:
            fields['acks'] = 1  # or there may be no answer
        await raw.send(raw.frame(key, version, fields))
        await raw.answer_frame(5)

    async def pipelines(self, raw: Raw) -> None:
        """Several at once; now and then it does not wait for the answers, or sends the last one in part."""
        frames = []
        for _ in range(self.pick.randrange(1, 30)):
            frames.append(
                self.pick.choice(
                    [
                        raw.frame(FETCH, FETCH_VERSION, fetch(self.pick.choice(TOPICS), wait=20)),
                        raw.frame(PRODUCE, PRODUCE_VERSION, produce(self.pick.choice(TOPICS), batch(100))),
                        raw.frame(METADATA, 12, {'topics': None}),
                    ]
                )
            )
        if self.pick.random() < 0.3:
            await raw.send(b''.join(frames)[: -self.pick.randrange(1, 40)])
            raise Closed
        await raw.send(b''.join(frames))
        for _ in frames:
            await raw.answer_frame(5)


@pytest.mark.parametrize('faults', [False, True], ids=['a good disk', 'a disk that fails'])
@pytest.mark.parametrize('seed', range(STORMS))
async def test_anything_at_any_time(seed: int, faults: bool, serve: Serve) -> None:
    pick = random.Random(seed)
    files = FaultyFiles()
    server = await serve({'log.retention.check.interval.ms': 50, 'acklog.max.partitions': 200}, files=files)
    until = asyncio.get_running_loop().time() + SECONDS
    clients = [Client(random.Random(pick.random()), server, until) for _ in range(12)]
    running = asyncio.gather(*(client.run() for client in clients))
    while not running.done():
        await asyncio.sleep(0.05)
        if faults:
            operation = pick.choice(['pwritev', 'fdatasync', 'open', 'mkdir', 'rename', 'fsync_dir', 'unlink'])
            files.fail(operation, pick.choice([5, 28]), after=pick.randrange(3), times=pick.choice([1, 2, 20]))
            if pick.random() < 0.5:
                files.heal()
    files.heal()
    await running
    await is_well(server)


@pytest.mark.parametrize('faults', [False, True], ids=['a good disk', 'a disk that fails'])
@pytest.mark.parametrize('seed', range(STORMS))
async def test_while_the_wall_clock_is_set_all_the_time(seed: int, faults: bool, serve: Serve) -> None:
    """By milliseconds, by hours, to years that nobody will see; then all goes on by the real one."""
    pick, wall, files = random.Random(seed), Wall(), FaultyFiles()
    settings = {'log.retention.check.interval.ms': 50, 'acklog.max.partitions': 200}
    server = await serve(settings, files=files, clock=Clock(wall))
    until = asyncio.get_running_loop().time() + SECONDS
    clients = [Client(random.Random(pick.random()), server, until) for _ in range(12)]
    running = asyncio.gather(*(client.run() for client in clients))
    while not running.done():
        await asyncio.sleep(0.05)
        wall.ahead_ns = pick.choice([0, 3, -3, HOUR, -HOUR, YEAR_1960, YEAR_9999]) * 1_000_000
        files.heal()
        if faults and pick.random() < 0.5:
            files.fail(pick.choice(['pwritev', 'fdatasync']), pick.choice([5, 28]), after=pick.randrange(3), times=2)
    files.heal()
    await running
    wall.ahead_ns = 0
    await asyncio.sleep(1.2)
    assert server._timer.clock.astray() == 0
    await is_well(server)
