"""Members that wait for records on several partitions: who is woken by what, and what they are given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.apis.fetch import API as FETCH
from acklog.wire import fetch

PARTITIONS = 6


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    await World.close_all()


async def begun(world: World) -> tuple[bytes, list[tuple[bytes, int]]]:
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    topic = await world.topic('t', PARTITIONS)
    return topic, [(topic, index) for index in range(PARTITIONS)]


async def test_each_partition_wakes_a_member_that_waits_on_all(world: World) -> None:
    topic, everywhere = await begun(world)
    assert await world.take('a', 0, *everywhere) == []
    for epoch, index in enumerate((3, 0, 5, 3, 1, 1, 2), start=1):
        waiting = asyncio.ensure_future(world.take('a', epoch, wait=1000))
        await settled()
        assert not waiting.done()
        await world.publish(topic, 1, index)
        assert len(await waiting) == 1
        assert world.fate(topic, 0, index) == 'acquired a'


async def test_what_came_to_other_partitions_meanwhile_comes_with_the_next_poll(world: World) -> None:
    topic, everywhere = await begun(world)
    waiting = asyncio.ensure_future(world.take('a', 0, *everywhere, wait=1000, count=10))
    await settled()
    for index in range(PARTITIONS):
        await world.publish(topic, 1, index)
    got, epoch = await waiting, 1
    while len(got) < PARTITIONS:
        more = await world.take('a', epoch, count=10)  # does not wait: what is there is found
        assert more
        got, epoch = got + more, epoch + 1
    assert [world.fate(topic, 0, index) for index in range(PARTITIONS)] == ['acquired a'] * PARTITIONS


async def test_each_of_several_records_goes_to_another_of_those_that_wait(world: World) -> None:
    topic, everywhere = await begun(world)
    members = 'abc'
    waiting = [asyncio.ensure_future(world.take(name, 0, *everywhere, wait=1000)) for name in members]
    await settled()
    for index in (4, 2, 0):
        await world.publish(topic, 1, index)
    assert await asyncio.gather(*waiting) == [[0], [0], [0]]
    assert {world.fate(topic, 0, index) for index in (4, 2, 0)} == {'acquired a', 'acquired b', 'acquired c'}


async def test_several_in_one_partition_are_passed_on(world: World) -> None:
    topic, everywhere = await begun(world)
    waiting = [asyncio.ensure_future(world.take(name, 0, *everywhere, wait=1000)) for name in 'abc']
    await settled()
    await world.publish(topic, 3, 1)
    assert sorted(offset for got in await asyncio.gather(*waiting) for offset in got) == [0, 1, 2]


def fetching(world: World, topic: bytes) -> Coroutine[Any, Any, object]:
    partitions = [fetch.Partition(index, 0, 1 << 20) for index in range(PARTITIONS)]
    return FETCH.handle(
        world.broker,
        world.caller('a'),
        16,
        fetch.Request(1000, 1, 1 << 20, topics=[fetch.Topic('t', topic, partitions)]),
    )


def polling(world: World, topic: bytes) -> Coroutine[Any, Any, object]:
    return world.take('a', 1, wait=1000, via='a')


def acquiring(world: World, topic: bytes) -> Coroutine[Any, Any, object]:
    return world.broker.operations.acquire(world.caller('a'), 'g', 'c', ['t'], wait_ms=1000)


@pytest.mark.parametrize('waits', [fetching, polling, acquiring])
async def test_who_waits_and_is_cancelled_leaves_nothing_behind(
    world: World, waits: Callable[[World, bytes], Coroutine[Any, Any, object]]
) -> None:
    topic, everywhere = await begun(world)
    assert await world.take('a', 0, *everywhere, via='a') == []
    assert await world.take('b', 0, *everywhere) == []
    watched = len(world.caller('a').on_close)  # by its session
    waiting = asyncio.ensure_future(waits(world, topic))
    await settled()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    partitions = world.broker.partitions.values()
    deliveries = world.broker.deliveries.of_group(world.catalog.groups['g'].id)
    assert [len(place.waiters) for place in [*partitions, *deliveries]] == [0] * 2 * PARTITIONS
    assert world.broker.deliveries.waiting == {}
    assert len(world.caller('a').on_close) == watched
    await world.publish(topic, 1, 2)
    assert await world.take('b', 1) == [0]
