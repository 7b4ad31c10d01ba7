"""Retention and what groups are owed (rule 8): kept, up to limits; past them lost, counted and said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from tests.broker.groups_world import World

from acklog.broker.catalog.config_changes import change_topic
from acklog.broker.partition import Partition
from acklog.core.share_partition import Ack
from acklog.log.retention import overdue, start_due
from acklog.log.seam import LogConfig, Overdue

HOUR = 3_600_000
SETTINGS = {
    'log.retention.ms': str(HOUR),
    'log.roll.ms': '1',
    'acklog.owed.retention.ms': str(2 * HOUR),
    'acklog.dead.retention.ms': str(10 * HOUR),
    'group.share.record.lock.duration.ms': str(24 * HOUR),
}


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', 2)
    yield await World.open(SETTINGS)
    await World.close_all()


async def begun(world: World, records: int) -> tuple[bytes, Partition]:
    """A topic with a segment for each record; the group begins at the first and has taken none."""
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    assert await world.take('a', 0, (topic, 0)) == []
    for _ in range(records):
        await world.publish(topic, 1)
        world.pass_time(1)
        await world.broker.retention.apply(partition)
    return topic, partition


async def later(world: World, partition: Partition, ms: int) -> tuple[int, int]:
    """(first offset of the log, records that the group has lost), that much later."""
    world.pass_time(ms)
    await world.broker.retention.apply(partition)
    await world.broker.deliveries.journal.written()
    [delivery] = partition.deliveries.values()
    return partition.log.start, delivery.state.status.totals().lost


async def test_what_is_owed_is_kept_up_to_the_limit(world: World, caplog: pytest.LogCaptureFixture) -> None:
    topic, partition = await begun(world, 3)
    assert await later(world, partition, HOUR + 10) == (0, 0)
    assert (partition.overdue.ms, partition.alarm, caplog.messages) == (13, False, [])
    assert await later(world, partition, HOUR * 7 // 4) == (0, 0)
    assert partition.alarm
    assert await later(world, partition, HOUR) == (3, 3)
    assert [message.split(',')[0].split(' records')[0] for message in caplog.messages] == [
        't-0 keeps 207 bytes beyond its retention',
        'group g has lost 3',
    ]
    assert not partition.alarm
    await world.restart()
    state = world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)
    assert state is not None
    assert (state.state.status.start, state.state.status.totals().lost) == (3, 3)


async def test_what_is_settled_goes_with_retention(world: World) -> None:
    topic, partition = await begun(world, 3)
    assert await world.take('a', 1, count=2) == [0, 1]
    assert await world.sign_off('a', 2, topic, 0) == [0, 0]
    assert await later(world, partition, HOUR - 10) == (0, 0)
    assert await later(world, partition, 20) == (1, 0)
    assert await world.sign_off('a', 3, topic, 1) == [0, 0]
    assert await later(world, partition, 0) == (2, 0)


async def test_what_waits_is_kept_and_gets_its_time_when_due(world: World) -> None:
    topic, partition = await begun(world, 2)
    assert await world.take('a', 1, count=1) == [0]
    [delivery] = partition.deliveries.values()
    delivery.acknowledge('a', [(0, 0, bytes([Ack.RELEASE]), world.now + 100 * HOUR)])
    assert await later(world, partition, 99 * HOUR) == (0, 0)
    assert await later(world, partition, 2 * HOUR) == (0, 0)
    assert world.fate(topic, 0) == 'available after 1 failure'
    await world.restart()
    partition = next(iter(world.broker.partitions.values()))
    assert await later(world, partition, HOUR) == (0, 0)
    assert await later(world, partition, 2 * HOUR) == (2, 2)


async def test_after_a_restart_what_fell_due_meanwhile_has_its_time(world: World) -> None:
    _, partition = await begun(world, 2)
    assert await world.take('a', 1, count=1) == [0]
    [delivery] = partition.deliveries.values()
    delivery.acknowledge('a', [(0, 0, bytes([Ack.RELEASE]), world.now + HOUR)])
    await world.broker.deliveries.journal.written()
    world.now += 50 * HOUR  # it is down
    await world.restart()
    partition = next(iter(world.broker.partitions.values()))
    assert await later(world, partition, HOUR) == (0, 0)
    assert await later(world, partition, 2 * HOUR) == (2, 2)


async def test_dead_ones_have_a_retention_of_their_own(world: World) -> None:
    topic, partition = await begun(world, 3)
    assert await world.take('a', 1, count=3) == [0, 1, 2]
    [delivery] = partition.deliveries.values()
    delivery.acknowledge('a', [(0, 0, bytes([Ack.REJECT]), None), (1, 2, bytes([Ack.ACCEPT]), None)])
    assert await later(world, partition, 10 * HOUR) == (0, 0)
    assert world.fate(topic, 0) == 'dead'
    assert await later(world, partition, 1) == (3, 0)
    assert world.fate(topic, 0) == 'done'
    assert delivery.state.status.totals().expired == 1


async def test_delete_records_wins_over_all(world: World) -> None:
    _, partition = await begun(world, 3)
    assert await world.take('a', 1, count=1) == [0]
    assert await partition.truncate_before(2) == 2
    [delivery] = partition.deliveries.values()
    assert (delivery.state.status.start, delivery.state.status.totals().lost) == (2, 2)


async def test_the_limit_of_bytes_is_a_topics_own_and_wins_over_waiting(world: World) -> None:
    _, partition = await begun(world, 4)
    assert await world.take('a', 1, count=1) == [0]
    [delivery] = partition.deliveries.values()
    delivery.acknowledge('a', [(0, 0, bytes([Ack.RELEASE]), world.now + 100 * HOUR)])
    assert await later(world, partition, HOUR + 10) == (0, 0)
    one = partition.overdue.bytes // 4
    limits = {'acklog.owed.retention.bytes': str(one * 2), 'acklog.owed.retention.ms': '-1'}
    await change_topic(world.broker, 't', lambda _: limits, only=False)
    assert await later(world, partition, 0) == (2, 2)


# -- segments ----------------------------------------------------------------------------------------------------------

SEGMENTS = [SimpleNamespace(base=at * 10, size=100, max_timestamp=at, created=at, appended=at) for at in range(5)]


@pytest.mark.parametrize(
    ('limits', 'keep_from', 'moving_from', 'start'),
    [
        ((-1, -1), None, None, 40),  # the last one never goes
        ((-1, -1), 25, None, 20),
        ((-1, -1), 0, None, 0),
        ((-1, 96), 0, None, 40),
        ((-1, 98), 0, None, 20),  # the limit of time: 0 and 1 are late by 100 and 99
        ((-1, 98), 0, 10, 10),
        ((200, -1), 0, None, 20),  # the limit of bytes: of the four that are due two may stay
        ((200, -1), 0, 0, 20),
        ((200, -1), 15, None, 20),
        ((0, -1), 15, None, 40),
        ((1000, 98), 0, None, 20),
    ],
)
def test_where_the_log_begins(
    limits: tuple[int, int], keep_from: int | None, moving_from: int | None, start: int
) -> None:
    config = LogConfig(retention_ms=0, owed_retention_bytes=limits[0], owed_retention_ms=limits[1])
    assert start_due(SEGMENTS, 0, config, 100, keep_from, moving_from) == start


def test_what_is_overdue() -> None:
    config = LogConfig(retention_ms=0)
    assert overdue(SEGMENTS, 0, config, 100, None) == Overdue(0, 0)
    assert overdue(SEGMENTS, 0, config, 100, 25) == Overdue(200, 98)
    assert overdue(SEGMENTS, 0, LogConfig(retention_ms=-1, retention_bytes=300), 100, 5) == Overdue(200, 0)
