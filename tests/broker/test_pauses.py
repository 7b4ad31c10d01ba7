"""What is remembered of paused groups, whatever else happens to them meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import World, settled


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
