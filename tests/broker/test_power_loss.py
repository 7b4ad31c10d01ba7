"""A whole broker through power losses, against the table of the design's chapter Durability.

The machine below it loses what was not synced: all of it or at random, of everything or of the messages or the journal
alone. What had been answered before is compared with what is there afterwards.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Iterable
from types import SimpleNamespace

import pytest
from tests.broker.groups_world import World
from tests.log.slow_disk import soon

from acklog.broker.broker import Broker
from acklog.broker.configs import Settings
from acklog.broker.journal import event_codec, shortening
from acklog.broker.journal.shortening import SLACK_BYTES
from acklog.core.events import Event
from acklog.log.directory import DataDirectory
from acklog.log.faulty_files import FaultyFiles
from acklog.log.seam import Durability
from acklog.wire.record_batch import build, records

EARLIEST = {'share.auto.offset.reset': 'earliest', 'share.delivery.count.limit': '10'}
SYNC_ALL, SYNC_LATER = {'acklog.state.sync': 'all'}, {'acklog.state.sync.interval.ms': '50'}
SEEDS = range(int(os.environ.get('ACKLOG_POWER_LOSS_SEEDS', '8')))  # more of them for a longer look
EVERYTHING, JOURNAL, MESSAGES = '*', '*/__share_state/*', '*-0/*'  # paths of files that lose what was not synced


class Machine(World):
    """A broker over local logs, on a machine that can lose its power."""

    files = None

    async def restart(self) -> None:
        """kill -9, and a new process."""
        await self._begin_again(None, EVERYTHING)

    async def power_loss(self, chance: random.Random | None, paths: str = EVERYTHING) -> None:
        """`chance`: what was not synced is lost at random; None: all of it. `paths`: in these files only."""
        await self._begin_again(chance, paths, lost=True)

    async def synced(self) -> None:
        """Let the interval pass after which the journal is synced, and wait until it is."""
        self.pass_time(60)
        await soon(lambda: not self.broker.deliveries.journal.log.store.dirty)

    def publish_one(self, topic: bytes, value: bytes, durability: Durability) -> asyncio.Task[int]:
        async def publish() -> int:
            batch = build([(None, value, [])], timestamp=self.now)
            return (await self.broker.partition(topic, 0).append(batch, self.now, durability)).first

        return asyncio.create_task(publish())

    async def stored(self, topic: bytes) -> dict[int, bytes]:
        """All that is in the log: offset -> value."""
        log = self.broker.partition(topic, 0).log
        found: dict[int, bytes] = {}
        position = log.start
        while position < log.end:
            read = await log.read(position, 1 << 20)
            found.update((record.offset, bytes(record.value)) for record in records(read.data))
            position = max(found) + 1
        return found

    async def take_all(self, topic: bytes) -> list[int]:
        """Everything that a new session of the same member gets; what it held before comes with it."""
        got = await self.take('m', 0, (topic, 0), count=1000)
        for epoch in range(1, 1000):
            if not (more := await self.take('m', epoch, count=1000)):
                break
            got += more
        return got

    async def wait_for_locks(self, topic: bytes) -> list[int]:
        """What comes after all locks have run out."""
        self.pass_time(60_000)
        return await self.take_all(topic)

    async def _begin_again(self, chance: random.Random | None, paths: str, lost: bool = False) -> None:
        self.callers, self.calls = {}, []
        if self.files is None:
            self.files = FaultyFiles()
        else:
            memory = self.files.memory
            self.files.kill()
            self.directory.abandon()
            if lost:
                memory.power_loss(chance, paths)
            self.files = FaultyFiles(memory)
        self.directory = DataDirectory('/data', self.files, reserve_bytes=0)
        timer = SimpleNamespace(at=self._at)
        self.broker = await Broker.open(self.directory, Settings(self._settings), lambda: self.now, timer)
        self.groups, self.catalog = self.broker.groups, self.broker.catalog


async def machine(settings: dict[str, str]) -> tuple[Machine, bytes]:
    world = await Machine.open(settings)
    topic = await world.topic('orders')
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    return world, topic


@pytest.fixture(autouse=True)
async def close_all():
    yield
    await World.close_all()


async def test_an_accept_survives_a_kill_and_with_sync_all_a_power_loss() -> None:
    for settings, lose_power in ((SYNC_LATER, False), (SYNC_ALL, True)):
        world, topic = await machine(settings)
        for value in (b'a', b'b', b'c'):
            await world.publish_one(topic, value, Durability.SYNCED)
        assert await world.take_all(topic) == [0, 1, 2]
        assert await world.sign_off('m', 2, topic, 0, 2) == [0, 0]
        if lose_power:
            await world.power_loss(None)
        else:
            await world.restart()
        assert await world.take_all(topic) == [1]


async def test_an_accept_survives_a_power_loss_once_the_interval_has_passed() -> None:
    world, topic = await machine(SYNC_LATER)
    for value in (b'a', b'b', b'c'):
        await world.publish_one(topic, value, Durability.SYNCED)
    assert await world.take_all(topic) == [0, 1, 2]
    assert await world.sign_off('m', 2, topic, 1) == [0, 0]
    await world.synced()
    assert await world.sign_off('m', 3, topic, 2) == [0, 0]
    await world.power_loss(None)
    assert await world.take_all(topic) == [0, 2]


async def test_offsets_that_were_done_and_are_gone_are_new_records_of_the_group() -> None:
    world, topic = await machine(SYNC_ALL)
    await world.publish_one(topic, b'kept', Durability.SYNCED)
    await world.publish_one(topic, b'gone', Durability.WRITTEN)
    assert await world.take_all(topic) == [0, 1]
    assert await world.sign_off('m', 2, topic, 0, 1) == [0, 0]
    await world.power_loss(None, MESSAGES)
    assert await world.stored(topic) == {0: b'kept'}
    assert await world.publish_one(topic, b'new', Durability.SYNCED) == 1
    assert await world.take_all(topic) == [1]
    await world.power_loss(None)
    assert await world.take_all(topic) == [1]


async def test_a_publish_that_waits_for_the_disk_is_not_answered_before() -> None:
    world, topic = await machine(SYNC_LATER)
    waiting: list[bool] = []
    publish: asyncio.Task[int]
    world.files.before_sync = lambda path: waiting.append(publish.done())
    publish = world.publish_one(topic, b'a', Durability.SYNCED)
    assert await publish == 0
    assert waiting == [False]
    await world.power_loss(None)
    assert await world.stored(topic) == {0: b'a'}


async def test_the_journal_is_not_shortened_before_what_replaces_its_beginning_is_on_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shortening, 'SLACK_BYTES', 2000)
    world, topic = await machine(SYNC_LATER)
    for _ in range(200):
        await world.publish_one(topic, b'x', Durability.WRITTEN)
    await world.publish_one(topic, b'x', Durability.SYNCED)
    assert await world.take('m', 0, (topic, 0), count=100, wait=0) == list(range(100))
    assert await world.sign_off('m', 1, topic, 0, 1) == [0, 0]
    await world.synced()
    go_on = held_up(monkeypatch)
    journal = world.broker.deliveries.journal
    log, before, number = journal.log, journal.log.start, 2
    while not journal.shortening._under_way:
        assert await world.sign_off('m', number, topic, number) == [0, 0]
        number += 1
    await journal.written()
    await world.synced()  # that there will be a snapshot is on disk, and nothing of it
    go_on.set()
    await soon(lambda: log.start > before)
    await world.power_loss(None)
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['done', 'done']


def held_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Snapshots, which are encoded in a thread, are so when this is set."""
    go_on, encode = threading.Event(), event_codec.encode

    def encode_later(events: Iterable[Event]) -> bytes:
        assert threading.current_thread() is threading.main_thread() or go_on.wait(10)
        return encode(events)

    monkeypatch.setattr(event_codec, 'encode', encode_later)
    return go_on


class History:
    """What was answered, and so must hold."""

    def __init__(self) -> None:
        self.published: dict[bytes, bool] = {}  # value -> whether its publisher heard that it is on disk
        self.accepted: set[bytes] = set()
        self.for_good: set[bytes] = set()  # accepts that no power loss may undo
        self.values: dict[int, bytes] = {}  # by offset, as far as known

    def check(self, stored: dict[int, bytes], taken: list[int], kept: bool) -> None:
        """`taken`: what the group got after the loss; `kept`: whether nothing but the loss of the process happened."""
        assert set(stored.values()) <= set(self.published)
        lost = set(self.published) - set(stored.values())
        assert not [value for value in lost if kept or self.published[value]], 'an answered publish is gone'
        got = [stored[offset] for offset in taken]
        assert len(set(got)) == len(got)
        again = set(got) & (self.accepted if kept else self.for_good)
        assert not again, 'an accepted record came again'
        assert set(stored.values()) - set(got) <= self.accepted, 'a record is owed and does not come'
        for value in lost:
            del self.published[value]
        self.accepted = set(stored.values()) - set(got)
        if not kept:  # what is there after a power loss is on disk
            self.for_good = set(self.accepted)
        self.values = stored


class Clients:
    """Publishers and one subscriber, at random, until the power goes."""

    def __init__(self, world: Machine, topic: bytes, history: History, chance: random.Random, sync_all: bool) -> None:
        self.world, self.topic, self.history, self.chance, self.sync_all = world, topic, history, chance, sync_all
        self.epoch = 0
        self.held: list[int] = []

    async def step(self) -> None:
        await self.chance.choice([self.publish, self.publish, self.take, self.accept, self.accept, self.wait])()

    async def publish(self) -> None:
        durability = self.chance.choice(list(Durability))
        values = [b'%d' % self.chance.getrandbits(60) for _ in range(self.chance.randint(1, 5))]
        offsets = await asyncio.gather(*[self.world.publish_one(self.topic, value, durability) for value in values])
        for value, offset in zip(values, offsets, strict=True):
            self.history.published[value] = durability is Durability.SYNCED
            self.history.values[offset] = value

    async def take(self) -> None:
        self.held += await self.world.take('m', self.epoch, (self.topic, 0), count=self.chance.randint(1, 8))
        self.epoch += 1

    async def accept(self) -> None:
        if not self.held:
            return
        some = sorted(self.chance.sample(self.held, self.chance.randint(1, len(self.held))))
        assert set(await self.world.sign_off('m', self.epoch, self.topic, *some)) == {0}
        self.epoch += 1
        self.held = [offset for offset in self.held if offset not in some]
        self.history.accepted |= {self.history.values[offset] for offset in some}
        if self.sync_all:
            self.history.for_good = set(self.history.accepted)

    async def wait(self) -> None:
        if not self.sync_all and self.history.accepted != self.history.for_good:
            await self.world.synced()
            self.history.for_good = set(self.history.accepted)


@pytest.mark.parametrize('slack', [SLACK_BYTES, 500], ids=['', 'the journal is always being shortened'])
@pytest.mark.parametrize('settings', [SYNC_ALL, SYNC_LATER], ids=['sync=all', 'sync later'])
@pytest.mark.parametrize('seed', SEEDS)
async def test_what_was_answered_holds_whatever_is_lost(
    seed: int, settings: dict[str, str], slack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortening, 'SLACK_BYTES', slack)
    chance = random.Random(seed)
    world, topic = await machine(settings)
    history = History()
    for _ in range(4):
        clients = Clients(world, topic, history, chance, settings is SYNC_ALL)
        for _ in range(chance.randint(1, 25)):
            await clients.step()
        kept = chance.random() < 0.2
        if kept:
            await world.restart()
        else:
            some = chance if chance.random() < 0.7 else None
            await world.power_loss(some, chance.choice([EVERYTHING, EVERYTHING, JOURNAL, MESSAGES]))
        stored = await world.stored(topic)
        for _ in range(2):  # new records get offsets that counted as done once, if any did
            value = b'%d' % chance.getrandbits(60)
            stored[await world.publish_one(topic, value, Durability.SYNCED)] = value
            history.published[value] = True
        taken = await world.take_all(topic)
        if not kept:  # the memory of the member's session may be lost: what it held comes when its locks run out
            taken = await world.wait_for_locks(topic)
        history.check(stored, sorted(taken), kept)
