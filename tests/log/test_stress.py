"""Many callers of one log, with disks that fail and fill up at any time, threads and all: what was answered holds."""

from __future__ import annotations

import asyncio
import errno
import random
from collections import Counter

import pytest
from tests.log.slow_disk import soon
from tests.log.worlds import NOW, SYNCED, WRITTEN, LocalWorld, batch, contents

from acklog.errors import Damaged, Failed, Full, LogError, OutOfRange
from acklog.log.seam import Appended, Durability, Log, LogConfig
from acklog.wire.record_batch import records

OPERATIONS = ['pwritev', 'fdatasync', 'fdatasync', 'open', 'truncate', 'rename', 'fsync_dir', 'unlink']
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200, retention_ms=-1)


class Story:
    """What the callers have been told, and what they have seen."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.written: dict[int, str] = {}
        self.synced: dict[int, str] = {}
        self.seen: dict[int, str] = {}
        self.now = NOW
        self.count = 0
        self.answered = Counter[Durability]()
        self.over = False

    async def publish(self, log: Log) -> None:
        while not self.over:
            self.now += 100
            self.count += 1
            value = f'{self.count}'.ljust(self.chance.randrange(1, 300), '.')
            how: Durability = self.chance.choice([WRITTEN, SYNCED])
            try:
                result = await log.append(batch(value, at=self.now), self.now, how)
            except (Full, Failed):
                await asyncio.sleep(0.001)
                continue
            assert isinstance(result, Appended)
            (self.synced if how is SYNCED else self.written)[result.first] = value
            self.answered[how] += 1
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)

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
            operation = self.chance.choice(OPERATIONS)
            number = self.chance.choice([errno.EIO, errno.ENOSPC])
            local.files.fail(operation, number, '*/logs/log*', after=self.chance.randrange(3))
            if operation == 'fdatasync' and self.chance.random() < 0.5:  # that it failed can be neither said nor mended
                local.files.fail('open', number, '*/sync-failed', times=2)
                local.files.fail('rename', number, '*.log.new', times=self.chance.randrange(5))
            local.files.short_writes = random.Random(1) if self.chance.random() < 0.3 else None


@pytest.mark.parametrize('seed', range(6))
async def test_what_was_answered_holds(seed: int) -> None:
    story = Story(seed)
    local = LocalWorld(open_files=8)
    for number in range(4):
        log = await local.open(config=CONFIG)
        story.over = False
        tasks = [asyncio.ensure_future(story.publish(log)) for _ in range(8)]
        tasks += [asyncio.ensure_future(story.follow(log)) for _ in range(2)]
        tasks += [asyncio.ensure_future(story.shorten(log)), asyncio.ensure_future(story.trouble(local))]
        enough = 25 * number
        await soon(lambda: min(story.answered[WRITTEN], story.answered[SYNCED]) > enough)  # noqa: B023 - this round's
        story.over = True
        await asyncio.sleep(0.01)
        local.files.kill()
        if story.chance.random() < 0.5:
            await local.kill()
            must = {**story.written, **story.synced}
        else:
            await local.power_loss(story.chance)
            must = story.synced
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
    local.files.heal()
    await local.close()
