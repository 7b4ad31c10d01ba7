"""Fetch by consumers that keep their own offsets: what is refused. Codes are those of Apache Kafka 4.4."""

from __future__ import annotations

import pytest
from tests.broker.admin_world import World

from acklog.broker.apis.fetch import API
from acklog.log.memory import MemoryDirectory
from acklog.wire import fetch
from acklog.wire.error_code import ErrorCode as Code


@pytest.fixture
async def world() -> World:
    """Topic `orders` with one record, at leader epoch 3."""
    world = await World.open(MemoryDirectory(epoch=3))
    await world.made('orders')
    await world.append('orders', 0)
    return world


async def code(world: World, offset: int = 0, *, epoch: int = -1, replica: int = -1, session: int = -1) -> int:
    """Of the partition. `session`: the epoch of a fetch session."""
    topics = [fetch.Topic('orders', None, [fetch.Partition(0, offset, 1 << 20, leader_epoch=epoch)])]
    request = fetch.Request(0, 1, 1 << 20, session_epoch=session, topics=topics, replica_id=replica)
    answer = await API.handle(world.broker, world.caller, 12, request)
    [partition] = answer.topics[0].partitions
    assert bool(partition.records) == (partition.error_code == 0)
    return int(partition.error_code)


@pytest.mark.parametrize('session', [-1, 0], ids=['outside any session', 'in a session'])
async def test_leader_epochs(world: World, session: int) -> None:
    assert [await code(world, epoch=epoch, session=session) for epoch in (-1, 2, 3, 4)] == [
        0,
        Code.FENCED_LEADER_EPOCH,
        0,
        Code.UNKNOWN_LEADER_EPOCH,
    ]


async def test_offsets(world: World) -> None:
    assert [await code(world, offset) for offset in (-1, 2)] == [Code.OFFSET_OUT_OF_RANGE] * 2


async def test_there_are_no_replicas(world: World) -> None:
    assert await code(world, replica=1) == Code.NOT_LEADER_OR_FOLLOWER
