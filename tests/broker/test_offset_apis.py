"""ListOffsets and DeleteRecords on the log in memory and on the one on disk. Answers are those of Apache Kafka 4.4."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.admin_world import World

from acklog.log.memory import MemoryDirectory, Trouble
from acklog.wire.error_code import ErrorCode as Code

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
BASE = 1_600_000_000_000


@pytest.fixture(params=['memory', 'disk'])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Topic `orders`: offsets 0-9 a second apart in one batch, 10-12 out of order, in gzip; topic `empty`."""
    world = await World.open(MemoryDirectory(Trouble(delay=2)) if request.param == 'memory' else tmp_path / 'data')
    await world.made('orders')
    await world.made('empty')
    await world.append('orders', *(BASE + second * 1000 for second in range(10)))
    await world.append('orders', BASE + 103_000, BASE + 105_000, BASE + 104_000, compression='gzip')
    yield world
    await world.close()


async def ask(
    world: World, version: int, name: str, *partitions: dict[str, Any], **options: Any
) -> list[dict[str, Any]]:
    answer = await world.call(
        'list_offsets', version, replica_id=-1, topics=[{'name': name, 'partitions': partitions}], **options
    )
    return list(answer['topics'][0]['partitions'])


async def offset(world: World, timestamp: int, name: str = 'orders', version: int = 11) -> tuple[int, int, int]:
    """(error code, timestamp, offset)"""
    [found] = await ask(world, version, name, {'partition_index': 0, 'timestamp': timestamp})
    return found['error_code'], found['timestamp'], found['offset']


@pytest.mark.parametrize('version', range(1, 12))
async def test_both_ends_in_every_version(world: World, version: int) -> None:
    assert await offset(world, LATEST, version=version) == (0, -1, 13)
    assert await offset(world, EARLIEST, version=version) == (0, -1, 0)
    assert await offset(world, LATEST, 'empty', version=version) == (0, -1, 0)
    assert await offset(world, BASE + 4000, version=version) == (0, BASE + 4000, 4)


@pytest.mark.parametrize(
    ('after', 'timestamp', 'found'),
    [
        (0, BASE, 0),
        (BASE, BASE, 0),
        (BASE + 1, BASE + 1000, 1),
        (BASE + 9000, BASE + 9000, 9),
        (BASE + 9001, BASE + 103_000, 10),
        (BASE + 103_001, BASE + 105_000, 11),
        (BASE + 104_000, BASE + 105_000, 11),
        (BASE + 105_000, BASE + 105_000, 11),
        (BASE + 105_001, -1, -1),
        (1 << 62, -1, -1),
    ],
)
async def test_by_time_the_very_record_is_found(world: World, after: int, timestamp: int, found: int) -> None:
    assert await offset(world, after) == (0, timestamp, found)
    assert await offset(world, after, 'empty') == (0, -1, -1)


async def test_the_record_with_the_latest_time(world: World) -> None:
    assert await offset(world, MAX_TIMESTAMP) == (0, BASE + 105_000, 11)
    await world.append('orders', BASE + 50_000)
    assert await offset(world, MAX_TIMESTAMP) == (0, BASE + 105_000, 11)
    await world.append('orders', BASE + 105_000, BASE + 105_001)
    assert await offset(world, MAX_TIMESTAMP) == (0, BASE + 105_001, 15)
    await world.append('orders', (1 << 63) - 1)
    assert await offset(world, MAX_TIMESTAMP) == (0, (1 << 63) - 1, 16)
    assert await offset(world, MAX_TIMESTAMP, 'empty') == (0, -1, -1)


async def test_names_that_came_with_later_versions(world: World) -> None:
    for timestamp, since in ((MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING, 11)):
        assert (await offset(world, timestamp, version=since - 1))[0] == Code.UNSUPPORTED_VERSION
        assert (await offset(world, timestamp, version=since))[0] == 0
    assert await offset(world, EARLIEST_LOCAL) == (0, -1, 0)
    assert await offset(world, LATEST_TIERED) == await offset(world, EARLIEST_PENDING) == (0, -1, -1)
    assert (await offset(world, -7))[0] == Code.UNSUPPORTED_VERSION


async def test_leader_epochs(world: World) -> None:
    epoch = world.partition('orders').log.epoch

    async def code(known: int) -> int:
        asked = {'partition_index': 0, 'timestamp': LATEST, 'current_leader_epoch': known}
        [found] = await ask(world, 11, 'orders', asked)
        return int(found['error_code'])

    assert [await code(-1), await code(epoch), await code(epoch + 1)] == [0, 0, Code.UNKNOWN_LEADER_EPOCH]
    [found] = await ask(world, 11, 'orders', {'partition_index': 0, 'timestamp': BASE})
    assert found['leader_epoch'] == epoch


async def test_partitions_that_are_not_there_or_named_twice(world: World) -> None:
    latest = {'timestamp': LATEST}
    found = await ask(world, 11, 'orders', {'partition_index': 0, **latest}, {'partition_index': 7, **latest})
    assert [(one['partition_index'], one['error_code']) for one in found] == [
        (0, 0),
        (7, Code.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert (await offset(world, LATEST, 'nope'))[0] == Code.UNKNOWN_TOPIC_OR_PARTITION
    found = await ask(world, 11, 'orders', {'partition_index': 0, **latest}, {'partition_index': 0, **latest})
    assert [one['error_code'] for one in found] == [Code.INVALID_REQUEST]
    topic = {'name': 'orders', 'partitions': [{'partition_index': 0, **latest}]}
    answer = await world.call('list_offsets', 11, replica_id=-1, isolation_level=0, topics=[topic, topic])
    assert [one['partitions'][0]['error_code'] for one in answer['topics']] == [Code.INVALID_REQUEST] * 2
    found = await ask(world, 11, 'orders', {'partition_index': 0, **latest}, isolation_level=1)
    assert found[0]['offset'] == 13


# -- DeleteRecords -----------------------------------------------------------------------------------------------------


async def delete(world: World, before: int, name: str = 'orders', index: int = 0, version: int = 2) -> tuple[int, int]:
    """(error code, low watermark)"""
    topics = [{'name': name, 'partitions': [{'partition_index': index, 'offset': before}]}]
    answer = await world.call('delete_records', version, topics=topics, timeout=1000)
    [found] = answer['topics'][0]['partitions']
    return found['error_code'], found['low_watermark']


@pytest.mark.parametrize('version', range(3))
async def test_records_are_deleted(world: World, version: int) -> None:
    assert await delete(world, 5, version=version) == (0, 5)
    assert await delete(world, 3, version=version) == (0, 5)
    assert await offset(world, EARLIEST) == (0, -1, 5)
    assert await offset(world, BASE) == (0, BASE + 5000, 5)
    assert await delete(world, -1, version=version) == (0, 13)
    assert await offset(world, EARLIEST) == await offset(world, LATEST) == (0, -1, 13)
    assert await offset(world, BASE) == (0, -1, -1)
    await world.append('orders', BASE)
    assert await offset(world, BASE) == (0, BASE, 13)


async def test_who_asks_behind_a_deletion_sees_it(world: World) -> None:
    deleted, found = await asyncio.gather(delete(world, 5), offset(world, EARLIEST))
    assert (deleted, found) == ((0, 5), (0, -1, 5))


async def test_records_that_cannot_be_deleted(world: World) -> None:
    assert await delete(world, 14) == (Code.OFFSET_OUT_OF_RANGE, -1)
    assert await delete(world, -2) == (Code.OFFSET_OUT_OF_RANGE, -1)
    assert await delete(world, 0, index=7) == (Code.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(world, 0, 'nope') == (Code.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(world, -1, 'empty') == (0, 0)


async def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    world = await World.open(tmp_path)
    await world.made('orders')
    await world.append('orders', *range(BASE, BASE + 10))
    await delete(world, 7)
    await world.close()
    world = await World.open(tmp_path)
    assert await offset(world, EARLIEST) == (0, -1, 7)
    await world.close()
