"""Many callers of one log, with disks that fail and fill up at any time, threads and all: what was answered holds, and
is not stored again when it is sent again."""

from __future__ import annotations

import asyncio
import errno
import itertools
import random
from collections import Counter, deque
from typing import NamedTuple

import pytest
from tests.log.slow_disk import Gate, soon
from tests.log.worlds import NOW, SYNCED, WRITTEN, LocalWorld, batch, contents

from acklog.errors import Damaged, Failed, Full, LogError, OutOfRange
from acklog.log.producers import REMEMBERED
from acklog.log.seam import Appended, Durability, Log, LogConfig
from acklog.wire.record_batch import records

OPERATIONS = ['pwritev', 'fdatasync', 'fdatasync', 'open', 'truncate', 'rename', 'fsync_dir', 'unlink']
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200, retention_ms=-1)


class Sent(NamedTuple):
    """A batch of an idempotent producer, and where it went."""

    value: str
    at: int
    producer: tuple[int, int, int]
    how: Durability
    first: int


class Story:
    """What the callers have been told, and what they have seen."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.written: dict[int, str] = {}
        self.synced: dict[int, str] = {}
        self.seen: dict[int, str] = {}
        self.sent: list[deque[Sent]] = []  # the last ones of each producer
        self.producers = 0
        self.now = NOW
        self.count = 0
        self.answered = Counter[Durability]()
        self.over = False
        self.hurried = False  # nobody asks for what only a sync can give

    async def publish(self, log: Log) -> None:
        self.producers += 1
        producer = self.producers
        sent = deque[Sent](maxlen=REMEMBERED - 1)  # one more may have been stored and not answered
        self.sent.append(sent)
        for sequence in itertools.count():
            self.count += 1
            value = f'{self.count}'.ljust(self.chance.randrange(1, 300), '.')
            await self._publish(log, value, (producer, 0, sequence), sent)
            if self.over:
                return
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)

    async def _publish(self, log: Log, value: str, producer: tuple[int, int, int], sent: deque[Sent]) -> None:
        """Until it is answered."""
        how: Durability = WRITTEN if self.hurried else self.chance.choice([WRITTEN, SYNCED])
        while not self.over:
            self.now += 100
            at = self.now
            try:
                result = await log.append(batch(value, at=at, producer=producer), at, how)
            except (Full, Failed):
                await asyncio.sleep(0.001)
                continue
            assert isinstance(result, Appended)
            (self.synced if how is SYNCED else self.written)[result.first] = value
            self.answered[how] += 1
            sent.append(Sent(value, at, producer, how, result.first))
            return

    async def repeat(self, log: Log, *, all_of_them: bool) -> None:
        """What was answered, or of that what was to be on disk, is sent again."""
        for each in [each for sent in self.sent for each in sent if all_of_them or each.how is SYNCED]:
            while True:
                self.now += 1000
                try:
                    result = await log.append(batch(each.value, at=each.at, producer=each.producer), self.now, WRITTEN)
                    break
                except Failed:  # it is still being written anew
                    await asyncio.sleep(0.001)
            assert (result.first, result.duplicate) == (each.first, True)
        self.sent.clear()

    async def follow(self, log: Log) -> None:
        offset = log.start
        while not self.over:
            try:
                data = (await log.read(offset, self.chance.choice([1, 1000, 1 << 20]))).data
            except OutOfRange as error:
                offset = max(error.start, min(offset, error.end))
                continue
            except Damaged:
                await asyncio.sleep(0.001)  # a file could not be opened
                continue
            for record in records(data):
                if record.offset >= offset:
                    assert record.offset == offset
                    self.saw(record.offset, (record.value or b'').decode())
                    offset += 1
            await asyncio.sleep(0)

    def saw(self, offset: int, value: str) -> None:
        assert self.seen.setdefault(offset, value) == value

    async def shorten(self, log: Log) -> None:
        while not self.over:
            await asyncio.sleep(0.01)
            try:
                if self.chance.random() < 0.5:
                    await log.truncate_before(self.chance.randint(log.start, log.visible_end))
                else:
                    await log.retain(self.now, None)
            except (Full, Failed, OutOfRange):
                continue

    async def trouble(self, local: LocalWorld) -> None:
        while not self.over:
            await asyncio.sleep(self.chance.random() * 0.02)
            if self.over:
                return
            if self.chance.random() < 0.2:  # or it might go on for ever on a slow machine
                local.files.heal()
                enough = min(self.answered[WRITTEN], self.answered[SYNCED]) + 5
                await soon(lambda: self.over or min(self.answered[WRITTEN], self.answered[SYNCED]) >= enough)  # noqa: B023
                continue
            operation = self.chance.choice(OPERATIONS)
            number = self.chance.choice([errno.EIO, errno.ENOSPC])
            where = self.chance.choice(['*/logs/log*', '*.log', '*.index'])
            local.files.fail(operation, number, where, after=self.chance.randrange(3))
            if operation == 'fdatasync' and self.chance.random() < 0.5:  # that it failed can be neither said nor mended
                local.files.fail('open', number, '*/sync-failed', times=2)
                local.files.fail('rename', number, '*.log.new', times=self.chance.randrange(5))
            local.files.short_writes = random.Random(1) if self.chance.random() < 0.3 else None


@pytest.mark.parametrize('seed', range(6))
async def test_what_was_answered_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('acklog.log.appender.MARK_BYTES', 700)
    story = Story(seed)
    local = LocalWorld(open_files=8)
    for number in range(4):
        log = await local.open(config=CONFIG)
        story.over = story.hurried = False
        tasks = [asyncio.ensure_future(story.publish(log)) for _ in range(8)]
        tasks += [asyncio.ensure_future(story.follow(log)) for _ in range(2)]
        tasks += [asyncio.ensure_future(story.shorten(log)), asyncio.ensure_future(story.trouble(local))]
        enough = 12 * number
        await soon(lambda: min(story.answered[WRITTEN], story.answered[SYNCED]) > enough)  # noqa: B023 - this round's
        story.hurried = True
        await asyncio.sleep(0.005)
        gate = Gate(local)  # several segments that no sync has covered
        await asyncio.sleep(0.02)
        story.over = True
        await asyncio.sleep(0.005)
        local.files.kill()
        gate.open()
        killed = story.chance.random() < 0.5
        if killed:
            await local.kill()
            must = {**story.written, **story.synced}
        else:
            await local.power_loss(story.chance)
            must = story.synced
        for _ in range(story.chance.randrange(2)):  # ends before it has opened the log
            await local.kill()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, LogError), result
        log = await local.open(config=CONFIG)
        found = dict(enumerate(await contents(log), log.start))
        assert {offset: value for offset, value in must.items() if offset >= log.start}.items() <= found.items()
        for offset in range(log.start, log.end):
            assert story.seen.get(offset, found[offset]) == found[offset]
        for told in (story.written, story.synced, story.seen):
            for offset in [each for each in told if each >= log.end]:
                del told[offset]  # lost with the power, as it may be
        await story.repeat(log, all_of_them=killed)
    local.files.heal()
    await local.close()
