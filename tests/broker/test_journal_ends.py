"""A share partition that has ended stays so, whatever the journal loses of its end and of how it begins anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import product

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.broker import JOURNAL
from acklog.broker.eager import turn
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.errors import Failed, LogError, OutcomeUnknown

EARLIEST = {'share.auto.offset.reset': 'earliest'}
OUTCOMES = list(product([None, Failed, OutcomeUnknown], repeat=3))  # of the next writes


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    await World.close_all()


async def signed_off(world: World) -> bytes:
    """A topic with two records that the group has signed off, and one that is held."""
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    await world.publish(topic, 3)
    assert await world.take('a', 0, (topic, 0), count=3) == [0, 1, 2]
    assert await world.sign_off('a', 1, topic, 0, 1) == [0, 0]
    return topic


async def deleted(world: World, topic: bytes) -> None:
    with contextlib.suppress(LogError):
        await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)


async def later(world: World) -> None:
    """What got lost has been said again and read again."""
    for _ in range(3):
        await settled()
        world.pass_time(LONGEST_MS)
    await settled()


@pytest.mark.parametrize('outcomes', OUTCOMES)
@pytest.mark.parametrize('stopped', [False, True], ids=['killed', 'stopped'])
async def test_it_begins_anew_without_what_was_before(
    world: World, outcomes: tuple[type[LogError] | None, ...], stopped: bool
) -> None:
    topic = await signed_off(world)
    world.directory.trouble.on_demand[JOURNAL] = list(outcomes)
    await deleted(world, topic)
    await world.take('b', 0, (topic, 0), count=2)
    if not stopped:
        await later(world)
    world.directory.trouble.on_demand.clear()
    await (world.stop_and_start() if stopped else world.restart())
    assert await world.take('b', 0, (topic, 0), count=3) == [0, 1, 2]


@pytest.mark.parametrize('outcomes', OUTCOMES)
@pytest.mark.parametrize('turns', range(3))
async def test_it_does_so_while_its_last_events_are_being_written(
    world: World, outcomes: tuple[type[LogError] | None, ...], turns: int
) -> None:
    topic = await signed_off(world)
    journal, group = world.broker.deliveries.journal, world.catalog.groups['g']
    world.directory.trouble.delay = 20
    world.directory.trouble.on_demand[JOURNAL] = list(outcomes)
    signing_off = asyncio.ensure_future(world.sign_off('a', 2, topic, 2))
    while journal._writing is None:
        await turn()
    deleting = asyncio.ensure_future(deleted(world, topic))
    for _ in range(1 + turns):
        await turn()
    beginning = asyncio.ensure_future(world.broker.deliveries.get(group, topic, 0))
    await asyncio.gather(signing_off, deleting, beginning)
    world.directory.trouble.delay = 0
    await later(world)
    world.directory.trouble.on_demand.clear()
    assert await world.take('b', 0, (topic, 0), count=3) == [0, 1, 2]
    await world.restart()
    assert await world.take('b', 0, (topic, 0), count=3) == [0, 1, 2]


@pytest.mark.parametrize('failure', [Failed, OutcomeUnknown])
async def test_a_deletion_that_is_repeated_is_not_answered_before_it_is_written(
    world: World, failure: type[LogError]
) -> None:
    topic, group = await signed_off(world), world.catalog.groups['g']
    world.directory.trouble.on_demand[JOURNAL] = [failure, failure]
    for _ in range(2):
        with pytest.raises(failure):
            await world.broker.deliveries.delete_partition(group, topic, 0)
        await settled()
    assert not await world.broker.deliveries.delete_partition(group, topic, 0)
    await world.restart()
    assert await world.take('b', 0, (topic, 0), count=3) == [0, 1, 2]
