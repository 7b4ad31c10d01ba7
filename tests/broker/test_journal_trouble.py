"""Members at work while the journal fails at random, is late, is shortened all the time and begins anew: what was
answered as signed off does not come again, and all else comes.

ACKLOG_TROUBLE_SEEDS=N for more of it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.broker import JOURNAL
from acklog.broker.journal import format as journal_format
from acklog.broker.journal import shortening
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.errors import Failed, Full, LogError, OutcomeUnknown

SEEDS = range(int(os.environ.get('ACKLOG_TROUBLE_SEEDS', '6')))
RECORDS = 60
EARLIEST = {'share.auto.offset.reset': 'earliest', 'share.delivery.count.limit': '10'}


class Member:
    """One after the other under the same number; each has a session of its own."""

    def __init__(self, world: World, chance: random.Random, topic: bytes, number: int) -> None:
        self.world, self.chance, self.topic, self.number = world, chance, topic, number
        self.accepted: set[int] = set()
        self.unknown: set[int] = set()
        self.again: set[int] = set()
        self.lives = 0

    async def live(self, others: list[Member], steps: int) -> None:
        self.lives += 1
        name, held = f'm{self.number}-{self.lives}', set[int]()
        for epoch in range(steps):
            if held and self.chance.random() < 0.5:
                some = sorted(self.chance.sample(sorted(held), self.chance.randint(1, len(held))))
                codes = await self.world.sign_off(name, epoch, self.topic, *some)
                if codes == [0, 0]:
                    self.accepted |= set(some)
                else:
                    self.unknown |= set(some)
                held -= set(some)
            else:
                done = set().union(*(each.accepted for each in others))
                got = await self.world.take(name, epoch, (self.topic, 0), count=self.chance.randint(1, 9))
                if isinstance(got, str):
                    return
                self.again |= set(got) & done
                held |= set(got)
            if self.chance.random() < 0.2:
                await asyncio.sleep(0)


@pytest.fixture
async def worlds() -> AsyncIterator[None]:
    yield
    for world in World.opened:
        world.directory.trouble.failure_rate = 0
    await World.close_all()


@pytest.mark.parametrize('seed', SEEDS)
@pytest.mark.parametrize('failures', [(), (Full, Failed), (Full, Failed, OutcomeUnknown)], ids=['no', 'clear', 'any'])
async def test_what_was_signed_off_stays_so(
    worlds: None, monkeypatch: pytest.MonkeyPatch, seed: int, failures: tuple[type[LogError], ...]
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(shortening, 'SLACK_BYTES', chance.choice([300, 2000]))
    monkeypatch.setattr(shortening, 'TURN_BYTES', chance.choice([10, 1000]))
    monkeypatch.setattr(journal_format, 'CHUNK_BYTES', chance.choice([40, 1000]))
    world = await World.open()
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    await world.publish(topic, RECORDS)
    members = [Member(world, chance, topic, number) for number in range(3)]
    for _ in range(4):
        trouble = world.directory.trouble
        trouble.random = random.Random(chance.random())
        trouble.delay = chance.choice([0, 3])
        for _ in range(6):
            if failures:
                trouble.on_demand[JOURNAL] = [
                    chance.choice(failures) if chance.random() < 0.2 else None for _ in range(40)
                ]
            await asyncio.gather(*(each.live(members, chance.randint(1, 12)) for each in members))
            world.now += chance.choice([0, 1, 5])
            if chance.random() < 0.5:
                world.pass_time(LONGEST_MS)
        trouble.on_demand.clear()
        if chance.random() < 0.7:
            await world.restart()
            world.pass_time(60_000)  # all locks run out
        await settled()
        world.pass_time(LONGEST_MS)
        await settled()
    world.directory.trouble.delay = 0
    world.pass_time(120_000)
    await settled()
    done = set().union(*(each.accepted for each in members))
    unknown = set().union(*(each.unknown for each in members))
    assert not set().union(*(each.again for each in members))
    rest: list[int] = []
    for epoch in range(RECORDS):
        got = await world.take('last', epoch, (topic, 0), count=20)
        assert isinstance(got, list), got
        if not got:
            break
        rest += got
    assert not set(rest) & done
    assert set(range(RECORDS)) - done - set(rest) <= unknown
