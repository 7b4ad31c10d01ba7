"""A member that asks for a grace keeps what it holds over a broken connection."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import World

GRACE = 10_000


@pytest.fixture(autouse=True)
async def closing() -> AsyncIterator[None]:
    yield
    await World.close_all()


async def holding(grace: int | None) -> tuple[World, bytes]:
    """A world in which m holds the first of two records."""
    world = await World.open()
    topic = await world.topic('a')
    await world.publish(topic, 2)
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    await world.beat('m', 0, 'a')
    assert await world.take('m', 0, (topic, 0), grace=grace) == [0]
    return world, topic


def cut(world: World) -> None:
    world.close('m-takes')
    world.close('m-beats')


@pytest.mark.parametrize('grace', [None, 0, -1])
async def test_without_one_it_is_lost_at_once(grace: int | None) -> None:
    world, topic = await holding(grace)
    cut(world)
    assert world.fate(topic, 0) == 'available after 1 failure'


async def test_lost_when_it_is_over() -> None:
    w, topic = await holding(GRACE)
    cut(w)
    w.pass_time(GRACE - 1)
    assert w.fate(topic, 0) == 'acquired m'
    w.pass_time(1)
    assert w.fate(topic, 0) == 'available after 1 failure'
    assert await w.take('m', 1) == 'error 122'
    assert await w.beat('m', 1) == 'error 25'


async def test_back_in_time_it_goes_on_where_it_was() -> None:
    world, topic = await holding(GRACE)
    cut(world)
    world.pass_time(GRACE - 1)
    assert await world.sign_off('m', 1, topic, 0) == [0, 0]
    world.pass_time(GRACE)
    assert await world.take('m', 2) == [1]
    assert await world.beat('m', 1) == '1'


async def test_each_break_has_a_grace_of_its_own() -> None:
    world, topic = await holding(GRACE)
    for _ in range(3):
        cut(world)
        world.pass_time(GRACE - 1)
        assert await world.beat('m', 1) != 'error 25'
        assert await world.take('m', 1, count=0) in ([], 'error 123')
    assert world.fate(topic, 0) == 'acquired m'


async def test_the_last_one_asked_for_counts() -> None:
    world, topic = await holding(GRACE)
    assert await world.take('m', 1, grace=500) == [1]
    cut(world)
    world.pass_time(500)
    assert world.fate(topic, 0) == 'available after 1 failure'


async def test_it_is_no_longer_than_the_session_timeout() -> None:
    world, topic = await holding(1 << 30)
    await world.catalog.alter_group_configs(
        'g', lambda _: {'share.session.timeout.ms': '6000', 'share.record.lock.duration.ms': '60000'}
    )
    cut(world)
    world.pass_time(6000)
    assert world.fate(topic, 0) == 'available after 1 failure'


async def test_who_says_goodbye_has_none() -> None:
    world, topic = await holding(GRACE)
    assert await world.sign_off('m', -1, topic) == [0]
    assert world.fate(topic, 0) == 'available'
    cut(world)
    assert await world.beat('m', 1) == 'error 25'


async def test_one_that_is_over_while_the_server_stops_is_no_failure() -> None:
    world, topic = await holding(GRACE)
    cut(world)
    world.groups.stop()
    world.pass_time(GRACE)
    assert world.fate(topic, 0) == 'acquired m'
