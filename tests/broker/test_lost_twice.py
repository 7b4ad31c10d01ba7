"""A process goes on from what the one before it left, which need not have been on disk: what is built on that is not
lost with it when the power goes then."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
from tests.broker.groups_world import World
from tests.broker.test_power_loss import EVERYTHING, MESSAGES, SYNC_ALL, SYNC_LATER, Machine, machine
from tests.log.slow_disk import soon

from acklog.broker.catalog.config_changes import change_topic
from acklog.broker.operations import Selection
from acklog.errors import Failed, LogError
from acklog.log.seam import Durability
from acklog.wire.record_batch import build

HOUR = 3_600_000
ENABLE = 'acklog.deliver.at.enable'


@pytest.fixture(autouse=True)
async def close_all() -> AsyncIterator[None]:
    yield
    await World.close_all()


async def killed_before_a_sync(world: Machine, log: str, doing: Coroutine[Any, Any, Any]) -> None:
    """kill -9 and another start, when what is to be done is written to that log and not on disk yet."""
    asked, gone = threading.Event(), threading.Event()

    def hold(path: str) -> None:
        if f'/{log}/' in path:
            asked.set()
            gone.wait(10)

    world.files.before_sync = hold
    task = asyncio.ensure_future(doing)
    await soon(asked.is_set)
    world.files.kill()
    gone.set()
    task.cancel()
    await world.restart()


async def test_a_topic_that_is_found_is_on_disk_before_records_are() -> None:
    world, _ = await machine(SYNC_LATER)
    await killed_before_a_sync(world, '__catalog', world.topic('new'))
    topic = world.catalog.topics['new'].id_bytes
    await world.publish_one(topic, b'a', Durability.SYNCED)
    await world.power_loss(None)
    assert 'new' in world.catalog.topics
    assert await world.stored(topic) == {0: b'a'}


async def test_a_group_that_is_found_is_on_disk_before_it_signs_off() -> None:
    world, topic = await machine(SYNC_ALL)
    await world.publish_one(topic, b'a', Durability.SYNCED)
    await world.publish_one(topic, b'b', Durability.SYNCED)
    await killed_before_a_sync(world, '__catalog', world.groups.ensure('g'))
    assert await world.take_all(topic) == [0, 1]
    assert await world.sign_off('m', 2, topic, 0) == [0, 0]
    await world.power_loss(None)
    assert await world.take_all(topic) == [1]


@pytest.mark.parametrize('settings', [SYNC_ALL, SYNC_LATER])
async def test_that_records_got_lost_is_on_disk_before_there_are_others_in_their_place(
    settings: dict[str, str],
) -> None:
    world, topic = await machine(settings)
    await world.publish_one(topic, b'kept', Durability.SYNCED)
    await world.publish_one(topic, b'gone', Durability.WRITTEN)
    assert await world.take_all(topic) == [0, 1]
    assert await world.sign_off('m', 2, topic, 0, 1) == [0, 0]
    if settings is SYNC_LATER:
        await world.synced()
    await world.power_loss(None, MESSAGES)
    assert await world.publish_one(topic, b'new', Durability.SYNCED) == 1
    await world.power_loss(None)
    assert await world.stored(topic) == {0: b'kept', 1: b'new'}
    assert await world.take_all(topic) == [1]


async def test_that_records_may_be_for_later_is_on_disk_before_they_are() -> None:
    world, topic = await machine(SYNC_LATER)
    await change_topic(world.broker, 'orders', lambda _: {ENABLE: 'true'}, only=False)
    await killed_before_a_sync(world, '__scheduled', publish_for_later(world, topic))
    await publish_for_later(world, topic)
    await world.power_loss(None, EVERYTHING)
    assert await world.take_all(topic) == []
    world.pass_time(HOUR)
    assert await world.take_all(topic) == [0]


async def publish_for_later(world: Machine, topic: bytes) -> None:
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    header = 'acklog-deliver-at', str(world.now + HOUR).encode()
    await partition.append(build([(None, b'v', [header])], timestamp=world.now), world.now, Durability.SYNCED)


@pytest.mark.parametrize('log', ['__catalog', '__scheduled'])
async def test_what_was_being_written_anew_when_the_process_died_does_not_keep_the_next_one_from_starting(
    log: str,
) -> None:
    world, topic = await machine(SYNC_LATER)
    await change_topic(world.broker, 'orders', lambda _: {ENABLE: 'true'}, only=False)
    await publish_for_later(world, topic)
    world.files.fail('fdatasync', path=f'*/{log}/*')
    world.files.fail('pwritev', path=f'*/{log}/*.new', times=None)
    with pytest.raises(Failed):
        if log == '__catalog':
            await world.catalog.create_topic('new', 1)
        else:
            await world.broker.operations.scheduled_cancel(world.caller('o'), Selection('orders'))
    await world.restart()
    assert 'orders' in world.catalog.topics


@pytest.mark.parametrize('settings', [SYNC_ALL, SYNC_LATER])
async def test_nor_does_the_journal(settings: dict[str, str]) -> None:
    """Though a start may have something to tell it."""
    world, topic = await machine(settings)
    await world.publish_one(topic, b'kept', Durability.SYNCED)
    assert await world.take_all(topic) == [0]
    world.files.fail('fdatasync', path='*__share_state*')
    world.files.fail('pwritev', path='*/__share_state/*.new', times=None)
    await world.sign_off('m', 2, topic, 0)
    with contextlib.suppress(LogError):
        await world.broker.deliveries.journal.log.flush()
    await world.restart()
    assert 'orders' in world.catalog.topics
