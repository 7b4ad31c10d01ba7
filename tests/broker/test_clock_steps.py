"""The clock is set forward or back while everything is under way: what follows from a duration lasts as long as it
would have, an instant that somebody named is what it was (rule 11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.broker.clock_world import HOUR, STEPS, begun, lasts, release
from tests.broker.groups_world import World, settled

from acklog.broker.apis.fetch import API as FETCH
from acklog.wire import fetch


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    for each in World.opened:
        each.directory.trouble.failure_rate = 0
    await World.close_all()


@pytest.mark.parametrize('by', STEPS)
async def test_a_lock_lasts_as_long_as_it_would_have(world: World, by: int) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    lasts(world, topic, by, 10_000, 20_000, 'acquired a', 'waiting after 1 failure')


@pytest.mark.parametrize('by', STEPS)
@pytest.mark.parametrize('after', [None, 20_000], ids=['the backoff', 'its own'])
async def test_a_delay_lasts_as_long_as_it_would_have(world: World, by: int, after: int | None) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, None, after))
    lasts(world, topic, by, 10_000, 10_000, 'waiting after 1 failure', 'available after 1 failure')


@pytest.mark.parametrize('by', STEPS)
async def test_a_record_comes_at_the_instant_that_was_named(world: World, by: int) -> None:
    """To a member that waits, too."""
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    instant = world.now + 2 * HOUR
    release(world, topic, (0, instant, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=300_000))
    await settled()
    world.set_clock(by)
    await settled()
    if instant - world.now > 300_000:
        world.pass_time(300_000)
        assert await poll == []
        world.pass_time(instant - world.now - 1000)
        poll = asyncio.ensure_future(world.take('a', 2, wait=300_000))
        await settled()
        world.pass_time(999)
        await settled()
        assert not poll.done()
        world.pass_time(1)
    assert await poll == [0]
    assert world.now == instant


WHEN = pytest.mark.parametrize('woken', [None, 1_000, 2_500], ids=['not woken', 'woken before', 'woken after'])


@pytest.mark.parametrize('by', STEPS)
@WHEN
async def test_a_fetch_lasts_as_long_as_it_would_have(world: World, by: int, woken: int | None) -> None:
    topic = await begun(world, 0)
    request = fetch.Request(5_000, 1 << 19, 1 << 20, topics=[fetch.Topic('t', topic, [fetch.Partition(0, 0, 1 << 20)])])

    async def wake() -> None:
        await world.publish(topic, 1)  # not enough for it

    poll = asyncio.ensure_future(FETCH.handle(world.broker, world.caller('c'), 16, request))
    assert await lasted(world, poll, by, woken, wake) == 5_000
    assert (await poll).error_code == 0


@pytest.mark.parametrize('by', STEPS)
@WHEN
async def test_a_poll_lasts_as_long_as_it_would_have(world: World, by: int, woken: int | None) -> None:
    topic = await begun(world, 0)

    async def wake() -> None:
        await world.broker.deliveries.topic_has_grown(world.catalog.topics['t'], 1)  # to look again, in vain

    poll = asyncio.ensure_future(world.take('a', 0, (topic, 0), wait=5_000))
    assert await lasted(world, poll, by, woken, wake) == 5_000
    assert await poll == []


async def lasted(
    world: World, poll: asyncio.Future[Any], by: int, woken: int | None, wake: Callable[[], Awaitable[None]]
) -> int:
    """After how many ms a poll was over; the clock was set after two seconds, and it was woken in between."""
    await settled()
    for ms in range(0, 20_000, 500):
        if poll.done():
            return ms
        if ms == woken:
            await wake()
        if ms == 2_000:
            world.set_clock(by)
        await settled()
        world.pass_time(500)
        await settled()
    return 20_000


@pytest.mark.parametrize('by', STEPS)
async def test_a_silent_member_is_lost_when_it_would_have_been(world: World, by: int) -> None:
    topic = await begun(world, 1, **{'share.record.lock.duration.ms': '60000'})
    await world.beat('a', 0, 't')
    await world.take('a', 0, (topic, 0))
    lasts(world, topic, by, 15_000, 30_000, 'acquired a', 'waiting after 1 failure')


@pytest.mark.parametrize('by', STEPS)
async def test_a_session_from_before_a_restart_may_be_adopted_as_long(world: World, by: int) -> None:
    topic = await begun(world, 1, **{'share.record.lock.duration.ms': '60000'})
    await world.take('a', 0, (topic, 0))
    await world.restart()
    lasts(world, topic, by, 15_000, 30_000, 'acquired a', 'waiting after 1 failure')


@pytest.mark.parametrize('by', STEPS)
async def test_a_grace_lasts_as_long_as_it_would_have(world: World, by: int) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0), grace=10_000)
    world.close('a-takes')
    lasts(world, topic, by, 4_000, 6_000, 'acquired a', 'waiting after 1 failure')


async def test_what_was_due_before_the_clock_was_set_back_is_done_by_the_old_time(world: World) -> None:
    """No timer has been called yet."""
    topic = await begun(world, 2)
    await world.take('a', 0, (topic, 0), count=2)
    release(world, topic, (0, world.now + 50, None))
    world.now += 30_000
    world.set_clock(-HOUR)
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['available after 1 failure', 'waiting after 1 failure']
    await settled()
    await world.restart()
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['available after 1 failure', 'waiting after 1 failure']
