"""Records published for later: not before their instant for any group, now or later; kept over restarts; moved and
cancelled."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import START, World, settled

from acklog.broker.api import Refused
from acklog.broker.config_changes import change_topic
from acklog.core.schedule import Schedule
from acklog.errors import Failed
from acklog.log.seam import Durability
from acklog.wire.record_batch import build

SECOND = 1000
HOUR = 3_600_000
ENABLE = 'acklog.deliver.at.enable'
HEADER = 'acklog-deliver-at'


@pytest.fixture(params=[0, 2])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    world = await World.open({ENABLE: 'true', 'log.roll.ms': '1'})
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    yield world
    await World.close_all()


def batch(world: World, *after: int | bytes | None, compression: str = 'none') -> bytearray:
    """One with a record for each: due so long after START (ms), or with this in its header, or without the header."""
    values = [after if after is None or isinstance(after, bytes) else str(START + after).encode() for after in after]
    records = [(None, b'v', [] if value is None else [('x', b'y'), (HEADER, value)]) for value in values]
    return build(records, timestamp=world.now, compression=compression)


async def publish(world: World, topic: bytes, *after: int | bytes | None, compression: str = 'none') -> None:
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    await partition.append(batch(world, *after, compression=compression), world.now, Durability.WRITTEN)


async def come(world: World, topic: bytes, member: str = 'a', epoch: int = 0, count: int = 100) -> list[int]:
    """The offsets that a new session of the group's member gets now, all accepted."""
    got: list[int] = []
    while offsets := await world.take(member, epoch, (topic, 0), count=count):
        assert isinstance(offsets, list), offsets
        assert (await world.sign_off(member, epoch + 1, topic, *offsets))[0] == 0
        got += offsets
        epoch = 0
    return got


async def test_a_record_comes_at_its_instant_and_holds_up_nothing(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, None, 10 * SECOND, None)
    await publish(world, topic, 5 * SECOND)
    await publish(world, topic, None)
    assert await come(world, topic) == [0, 2, 4]
    assert world.fate(topic, 1) == 'waiting'
    world.pass_time(5 * SECOND - 1)
    assert await come(world, topic) == []
    world.pass_time(1)
    assert await come(world, topic) == [3]
    world.pass_time(5 * SECOND)
    assert await come(world, topic) == [1]


async def test_who_waits_gets_it_at_once(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, SECOND, SECOND + 1)
    poll = asyncio.ensure_future(world.take('a', 0, (topic, 0), wait=10 * SECOND, count=10))
    await settled()
    world.pass_time(SECOND - 1)
    await settled()
    assert not poll.done()
    world.pass_time(1)
    assert await poll == [0]


@pytest.mark.parametrize('compression', ['none', 'gzip', 'zstd', 'lz4', 'snappy'])
async def test_it_is_found_in_compressed_batches(world: World, compression: str) -> None:
    topic = await world.topic('t')
    await publish(world, topic, SECOND, None, compression=compression)
    assert await come(world, topic) == [1]
    world.pass_time(SECOND)
    assert await come(world, topic) == [0]


async def test_instants_of_iso_8601(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, b'2023-11-14T22:13:21Z', b'2023-11-14T23:13:21.0005+01:00')  # START is 22:13:20
    assert await come(world, topic) == []
    world.pass_time(SECOND)
    assert await come(world, topic) == [0]
    world.pass_time(1)
    assert await come(world, topic) == [1]


@pytest.mark.parametrize('value', [b'', b'soon', b'-1', b'1.5', b'2023-11-14T22:13:21', b'9' * 19, b'9' * 20, b'\xff'])
async def test_a_header_that_names_no_instant_is_refused(world: World, value: bytes) -> None:
    topic = await world.topic('t')
    with pytest.raises(Refused, match=HEADER) as refused:
        await publish(world, topic, None, value)
    assert refused.value.code == 87  # INVALID_RECORD
    assert await come(world, topic) == []


async def test_a_batch_that_unpacks_to_too_much_is_refused(world: World) -> None:
    topic = await world.topic('t')
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    bomb = build([(None, bytes(20 << 20))], timestamp=world.now, compression='gzip')
    with pytest.raises(Refused, match='unpacks to more'):
        await partition.append(bomb, world.now, Durability.WRITTEN)


async def test_without_the_config_the_header_is_a_header_like_any_other(world: World) -> None:
    topic = await world.topic('t')
    await change_topic(world.broker, 't', lambda _: {ENABLE: 'false'}, only=False)
    await publish(world, topic, HOUR, b'soon')
    assert await come(world, topic) == [0, 1]
    await change_topic(world.broker, 't', lambda _: {ENABLE: 'true'}, only=False)
    await publish(world, topic, HOUR)
    await change_topic(world.broker, 't', lambda _: {ENABLE: 'false'}, only=False)
    await publish(world, topic, HOUR)
    await world.restart()
    assert await come(world, topic, 'b') == [3]
    world.pass_time(HOUR)
    assert await come(world, topic, 'b') == [2]


@pytest.mark.parametrize('clean', [True, False])
@pytest.mark.parametrize('pause', [0, 10 * SECOND])
async def test_it_survives_a_restart(world: World, clean: bool, pause: int) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, 2 * HOUR)
    world.pass_time(pause)
    await settled()
    await publish(world, topic, None, HOUR)
    await (world.stop_and_start() if clean else world.restart())
    await publish(world, topic, HOUR, None)
    assert await come(world, topic) == [1, 3, 6]
    await (world.stop_and_start() if clean else world.restart())
    world.pass_time(HOUR - pause - 1)
    assert await come(world, topic, 'b') == []
    world.pass_time(1)
    assert await come(world, topic, 'b') == [0, 4, 5]


async def test_a_group_made_later_sees_the_same_instant(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, 2 * HOUR)
    world.pass_time(HOUR)
    assert await come(world, topic) == [0, 1]


async def test_an_append_that_fails_leaves_nothing_behind(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, None)
    world.directory.fail_next(Failed, world.catalog.topics['t'].log_name(0))
    with pytest.raises(Failed):
        await publish(world, topic, HOUR)
    await publish(world, topic, None)
    assert await come(world, topic) == [0, 1]


async def test_retention_keeps_what_is_published_for_later(world: World) -> None:
    topic = await world.topic('t')
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    await change_topic(world.broker, 't', lambda own: {**own, 'retention.ms': str(HOUR)}, only=False)
    for after in (None, 5 * HOUR, None):
        await publish(world, topic, after)
        world.pass_time(1)
        await world.broker.retention.apply(partition)
    world.pass_time(2 * HOUR)
    await world.broker.retention.apply(partition)
    assert partition.log.start == 1
    world.pass_time(3 * HOUR - SECOND)
    assert await come(world, topic) == [2]
    world.pass_time(SECOND)
    assert await come(world, topic) == [1]


async def test_a_million_cost_less_than_forty_megabytes() -> None:
    schedule = Schedule()
    tracemalloc.start()
    for at in range(0, 100_000, 500):
        offsets = range(at, at + 500)
        schedule.add(offsets, [START + HOUR + offset * 7919 % 1_000_003 for offset in offsets], START)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(schedule) == 100_000
    assert size < 4_000_000
