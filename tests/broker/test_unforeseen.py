"""An error that nobody foresaw (a bug, no memory) ends one attempt and not the work: it is logged, and tried again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.broker import JOURNAL
from acklog.broker.catalog import topics
from acklog.broker.catalog.catalog import NewTopic, Topic
from acklog.broker.catalog.config_changes import change_group
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.core.kinds import Ack
from acklog.errors import Failed
from acklog.log.memory import MemoryLog

HOUR = 3_600_000
REJECT = bytes([Ack.REJECT])
EARLIEST = {'share.auto.offset.reset': 'earliest'}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open({'log.retention.ms': str(HOUR), 'log.roll.ms': '1'})
    await World.close_all()


async def taken(world: World, records: int) -> bytes:
    """A topic with records, all of them held by member a."""
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    await world.publish(topic, records)
    assert await world.take('a', 0, (topic, 0), count=records) == list(range(records))
    return topic


def fail_once(monkeypatch: pytest.MonkeyPatch, what: str, name: str) -> None:
    """The next call of that method of the log called `name` finds no memory."""
    real, failed = getattr(MemoryLog, what), []

    async def method(log: MemoryLog, *args: Any, **options: Any) -> Any:
        if log.name == name and not failed:
            failed.append(name)
            raise MemoryError
        return await real(log, *args, **options)

    monkeypatch.setattr(MemoryLog, what, method)


async def test_a_dead_letter(world: World, caplog: pytest.LogCaptureFixture) -> None:
    topic = await taken(world, 1)
    enable = {'errors.deadletterqueue.group.enable': 'true'}
    [made] = await topics.create_topics(world.broker, [NewTopic('dlq.t', 1, enable)])
    assert isinstance(made, Topic)
    configs = {**EARLIEST, 'errors.deadletterqueue.topic.name': 'dlq.t'}
    await change_group(world.broker, 'g', lambda _: configs, only=False)
    world.directory.trouble.on_demand[made.log_name(0)] = [MemoryError]  # type: ignore[list-item]
    delivery = world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)
    assert delivery is not None
    delivery.acknowledge('a', [(0, 0, REJECT, None)])
    await settled()
    assert world.fate(topic, 0) == 'dying'
    assert 'this is a bug' in caplog.text
    world.pass_time(1000)
    await settled()
    assert world.fate(topic, 0) == 'dead'


async def test_reading_share_partitions_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await taken(world, 1)
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    fail_once(monkeypatch, 'read', JOURNAL)
    assert (await world.sign_off('a', 1, topic, 0))[1] != 0
    await settled()
    assert 'MemoryError' in caplog.text
    world.pass_time(LONGEST_MS)
    await settled()
    assert await world.sign_off('a', 2, topic, 0) == [0, 0]


async def test_a_round_of_retention(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await world.topic('t')
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    await world.publish(topic, 1)
    fail_once(monkeypatch, 'retain', partition.log.name)
    for _ in range(20):
        world.pass_time(HOUR // 4)
        await settled()
    assert 'MemoryError' in caplog.text
    assert partition.log.start == 1
