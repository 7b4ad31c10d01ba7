"""What is remembered of paused groups, whatever else happens to them meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.broker import JOURNAL
from acklog.errors import Full


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', 3)
    yield await World.open()
    await World.close_all()


@pytest.mark.parametrize('turns', range(0, 24, 2))
@pytest.mark.parametrize('first', ['pause', 'delete'])
async def test_a_group_that_is_deleted_while_it_is_paused_leaves_nothing(world: World, first: str, turns: int) -> None:
    group = await world.groups.ensure('g')
    calls = {'pause': world.broker.pauses.pause(group, 'lunch'), 'delete': world.groups.delete('g')}
    under_way = [asyncio.ensure_future(calls.pop(first))]
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.gather(*under_way, *calls.values())
    await settled()
    assert world.broker.pauses.of(group) is None
    assert world.catalog.notes('paused') == {}


async def test_a_group_whose_end_could_not_be_written_everywhere_is_paused_no_more(world: World) -> None:
    topic = await world.topic('t')
    assert await world.take('a', 0, (topic, 0)) == []
    group = world.catalog.groups['g']
    await world.broker.pauses.pause(group, 'lunch')
    world.directory.trouble.on_demand[JOURNAL] = [Full]
    with pytest.raises(Full):
        await world.groups.delete('g')
    assert world.catalog.notes('paused') == {}


async def test_who_is_not_paused_is_not_resumed(world: World) -> None:
    group = await world.groups.ensure('g')
    assert not await world.broker.pauses.resume(group)
    await world.broker.pauses.pause(group, 'lunch')
    assert await world.broker.pauses.resume(group)
    assert not await world.broker.pauses.resume(group)
