"""The clock is set while somebody waits: what is due by the new time comes at once, what is soon is got ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.broker.clock_world import HOUR, STEPS, begun, release
from tests.broker.groups_world import World, delivery_of, settled

from acklog.broker.eager import turn
from acklog.core import operators
from acklog.log.seam import Durability
from acklog.wire.record_batch import build


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    for each in World.opened:
        each.directory.trouble.failure_rate = 0
    await World.close_all()


async def three_batches(world: World) -> bytes:
    """Of ten records each, all of them with a."""
    topic = await begun(world, 0)
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    for _ in range(3):
        await partition.append(build([(None, bytes(100), [])] * 10, timestamp=world.now), world.now, Durability.WRITTEN)
    await world.take('a', 0, (topic, 0), count=30)
    return topic


def got_ready(world: World, topic: bytes) -> list[bool]:
    """Of which of the three the records can be sent one by one without looking into it first."""
    delivery = delivery_of(world, topic)
    return [delivery.excerpts.last_of(delivery.key, offset) is not None for offset in (0, 10, 20)]


async def test_what_is_due_by_the_new_time_comes_at_once(world: World) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, world.now + 5_000, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=60_000))
    await settled()
    world.set_clock(5_000)
    world.pass_time(0)
    assert await poll == [0]


async def test_only_what_falls_due_soon_by_the_new_time_is_got_ready(world: World) -> None:
    topic = await three_batches(world)
    release(world, topic, (0, None, HOUR), (10, world.now + HOUR, None), (20, world.now + 2 * HOUR, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=300_000))
    await settled()
    assert got_ready(world, topic) == [False, False, False]
    world.set_clock(HOUR - 200)
    await settled()
    assert got_ready(world, topic) == [False, True, False]
    world.pass_time(200)
    assert await poll == [10]


async def test_what_is_being_got_ready_while_the_clock_is_set_back(world: World) -> None:
    """It does not count as ready until that time comes again."""
    topic = await three_batches(world)
    release(world, topic, (0, world.now + 100, None), (10, None, 5_000))
    world.directory.trouble.delay = 5
    poll = asyncio.ensure_future(world.take('a', 1, wait=300_000))
    while not world.broker.deliveries.waiting:
        await turn()
    world.set_clock(-HOUR)
    await settled()
    assert got_ready(world, topic) == [True, False, False]
    world.pass_time(4_800)
    await settled()
    assert got_ready(world, topic) == [True, True, False]
    world.pass_time(200)
    assert await poll == [10]


@pytest.mark.parametrize('by', STEPS)
@pytest.mark.parametrize('named', [True, False])
async def test_what_comes_due_while_the_clock_is_being_set_is_offered(world: World, by: int, named: bool) -> None:
    """Doing what is due everywhere takes time, in which more falls due."""
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, world.now + 5 if named else None, 5))
    poll = asyncio.ensure_future(world.take('a', 1, wait=60_000))
    await settled()
    world.broker.clock_steps()
    world.now += 10
    world.set_clock(by, again=False)
    await settled()
    assert poll.done() and await poll == [0]


@pytest.mark.parametrize('by', [HOUR, -HOUR])
async def test_what_comes_soon_by_the_new_time_is_got_ready(world: World, by: int) -> None:
    """For whom waits, though by the old time all was ready."""
    topic = await begun(world, 0)
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    large = build([(None, b'x' * 100, [])] * 20, timestamp=world.now)
    for _ in range(2):
        await partition.append(large, world.now, Durability.WRITTEN)
    await world.take('a', 0, (topic, 0), count=40)
    delivery = delivery_of(world, topic)
    release(world, topic, (0, None, 100), (20, world.now + by + 200, None) if by > 0 else (20, None, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=60_000))
    await settled()
    assert [delivery.excerpts.last_of(delivery.key, offset) for offset in (0, 20)] == [19, None]
    world.set_clock(by)
    world.pass_time(100)
    assert await poll == [0]
    if by < 0:
        world.pass_time(500)
        delivery.change(lambda state: operators.move(state, world.now, [20], world.now + 100))
    poll = asyncio.ensure_future(world.take('a', 2, wait=60_000))
    await settled()
    assert delivery.excerpts.last_of(delivery.key, 20) == 39
    world.pass_time(100)
    assert await poll == [20]
