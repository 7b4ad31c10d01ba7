"""What a request records in several turns of the loop is confirmed only when the journal has all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.apis.share_acknowledge import API as SHARE_ACKNOWLEDGE
from acklog.broker.broker import JOURNAL
from acklog.broker.eager import AT_A_TIME
from acklog.broker.operations import Selection, Target
from acklog.errors import Full, LogError
from acklog.log.seam import Durability
from acklog.wire import share_acknowledge
from acklog.wire.acknowledgements import ACCEPT as ACCEPTED
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import build

HOUR = 3_600_000
ACCEPT = bytes([ACCEPTED])
WRITES = pytest.mark.parametrize('writes', range(6))  # of the journal that succeed before one fails


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open({'acklog.deliver.at.enable': 'true'})
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    yield world
    await World.close_all()


def fail(world: World, writes: int) -> None:
    world.directory.trouble.on_demand[JOURNAL] = [None] * writes + [Full]


async def restart(world: World) -> None:
    world.directory.trouble.on_demand.clear()
    await settled()
    await world.restart()


@WRITES
async def test_a_seek(world: World, writes: int) -> None:
    """Of partitions that the group has begun with, and of more that it has not."""
    topic = await world.topic('t', 4 * AT_A_TIME)
    await world.groups.ensure('g')
    for index in range(4 * AT_A_TIME):
        await world.publish(topic, 1, index)
    group = world.catalog.groups['g']
    for index in range(AT_A_TIME):
        await world.broker.deliveries.get(group, topic, index)
    await world.broker.deliveries.journal.written()
    fail(world, writes)
    try:
        await world.broker.operations.seek(world.caller('c'), 'g', Target('latest'), 't')
    except LogError:
        return
    await restart(world)
    deliveries = list(world.broker.deliveries.of_group(world.catalog.groups['g'].id))
    assert [each.state.end for each in deliveries] == [1] * 4 * AT_A_TIME


@WRITES
async def test_signing_off(world: World, writes: int) -> None:
    """Each partition is answered for itself."""
    places = await held(world, 4 * AT_A_TIME)
    fail(world, writes)
    answer = await sign_off(world, [(place, (0, 0, ACCEPT, None)) for place in places])
    codes = {place.index: place.error_code for answered in answer.topics for place in answered.partitions}
    await restart(world)
    fates = [world.fate(topic, 0, index) for topic, index in places]
    assert fates == ['acquired a' if codes[index] else 'done' for _, index in places]
    assert (0 in codes.values()) >= (writes > 0)


async def test_a_partition_of_many_that_is_named_twice_is_signed_off_as_a_whole(world: World) -> None:
    first, *others = await held(world, 4 * AT_A_TIME)
    named = [(place, (0, 0, ACCEPT, None)) for place in [first, *others, first]]
    answer = await sign_off(world, named)  # offset 0 of it twice
    assert [place.error_code for answered in answer.topics for place in answered.partitions] == [
        ErrorCode.INVALID_REQUEST,
        *[ErrorCode.NONE] * len(others),
    ]


async def held(world: World, count: int) -> list[tuple[bytes, int]]:
    """Partitions with a record each, which member a holds."""
    topic = await world.topic('t', count)
    places = [(topic, index) for index in range(count)]
    for index in range(count):
        await world.publish(topic, 1, index)
    assert len(await world.take('a', 0, *places, count=count)) == count
    return places


async def sign_off(world: World, acks: Sequence[tuple[tuple[bytes, int], Any]]) -> Any:
    topics = [
        share_acknowledge.Topic(topic, [share_acknowledge.Partition(index, [ack])]) for (topic, index), ack in acks
    ]
    request = share_acknowledge.Request('g', 'a', 1, False, topics)
    return await SHARE_ACKNOWLEDGE.handle(world.broker, world.caller('a-takes'), 2, request)


@WRITES
async def test_cancelling_what_is_published_for_later(world: World, writes: int) -> None:
    topic = await world.topic('t', 4)
    header = ('acklog-deliver-at', str(world.now + HOUR).encode())
    for index in range(4):
        partition = world.broker.partition(topic, index)
        assert partition is not None
        await partition.append(build([(None, b'v', [header])], timestamp=world.now), world.now, Durability.WRITTEN)
    assert await world.take('a', 0, *((topic, index) for index in range(4))) == []
    assert [world.fate(topic, 0, index) for index in range(4)] == ['waiting'] * 4
    fail(world, writes)
    try:
        await world.broker.operations.scheduled_cancel(world.caller('c'), Selection('t'))
    except LogError:
        return
    await restart(world)
    assert [world.fate(topic, 0, index) for index in range(4)] == ['done'] * 4


@WRITES
async def test_a_member_over_http_leaves(world: World, writes: int) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 1)
    operations, caller = world.broker.operations, world.caller('c')
    assert len(await operations.acquire(caller, 'g', 'm', ['t'])) == 1
    fail(world, writes)
    try:
        await operations.leave(caller, 'g', 'm')
    except LogError:
        return
    await restart(world)
    assert world.fate(topic, 0) == 'available'
