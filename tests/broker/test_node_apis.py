"""FindCoordinator, InitProducerId, DescribeCluster: what the node says of itself and gives out."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.admin_world import World

from acklog.broker.catalog.log import NAME
from acklog.errors import Failed
from acklog.log.memory import MemoryDirectory
from acklog.wire.error_code import ErrorCode as Code

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open()
    world.broker.node.host, world.broker.node.port = 'broker.example', 1234
    yield world
    await world.close()


async def coordinators(world: World, version: int, kind: int, *keys: str) -> list[tuple[int, int, str, int]]:
    asked: dict[str, Any] = {'key_type': kind}
    asked |= {'coordinator_keys': keys} if version >= 4 else {'key': keys[0]}
    answer = await world.call('find_coordinator', version, **asked)
    found = answer['coordinators'] if version >= 4 else [answer]
    return [(one['error_code'], one['node_id'], one['host'], one['port']) for one in found]


HERE = (0, 0, 'broker.example', 1234)


@pytest.mark.parametrize('version', range(7))
async def test_every_group_is_coordinated_here(world: World, version: int) -> None:
    assert await coordinators(world, version, GROUP, 'readers') == [HERE]


async def test_several_groups_at_once(world: World) -> None:
    answer = await world.call('find_coordinator', 6, key_type=GROUP, coordinator_keys=['a', 'b'])
    assert [one['key'] for one in answer['coordinators']] == ['a', 'b']
    assert await coordinators(world, 4, GROUP) == []


async def test_other_kinds_of_keys(world: World) -> None:
    nowhere = (-1, '', -1)
    for version in (1, 4, 6):
        refused = (Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, *nowhere)
        assert await coordinators(world, version, TRANSACTION, 't') == [refused]
        assert await coordinators(world, version, 9, 't') == [(Code.INVALID_REQUEST, *nowhere)]
    assert await coordinators(world, 6, SHARE, f'readers:{uuid.uuid4()}:0', 'x') == [
        HERE,
        (Code.INVALID_REQUEST, *nowhere),
    ]


async def new_producer(world: World, version: int = 5, **fields: Any) -> tuple[int, int, int]:
    asked = {'transactional_id': None, 'transaction_timeout': 1000, **fields}
    answer = await world.call('init_producer_id', version, **asked)
    return answer['error_code'], answer['producer_id'], answer['producer_epoch']


async def test_producer_ids(world: World) -> None:
    given = [await new_producer(world, version) for version in range(6)]
    assert {(code, epoch) for code, _, epoch in given} == {(0, 0)}
    assert len({producer for _, producer, _ in given}) == 6
    again = await new_producer(world, producer_id=given[0][1], producer_epoch=7)  # KIP-360: a new id is right as well
    assert again[0] == 0


async def test_producer_ids_that_are_refused(world: World) -> None:
    refused = (-1, -1)
    assert await new_producer(world, transactional_id='t') == (Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, *refused)
    assert await new_producer(world, transactional_id='') == (Code.INVALID_REQUEST, *refused)
    assert await new_producer(world, producer_id=-1, producer_epoch=3) == (Code.INVALID_REQUEST, *refused)


async def test_no_producer_id_without_the_disk() -> None:
    directory = MemoryDirectory()
    world = await World.open(directory)
    directory.fail_next(Failed, NAME)
    assert await new_producer(world) == (Code.KAFKA_STORAGE_ERROR, -1, -1)
    assert (await new_producer(world))[0] == 0


@pytest.mark.parametrize('version', range(3))
async def test_the_cluster(world: World, version: int) -> None:
    answer = await world.call('describe_cluster', version, include_cluster_authorized_operations=True)
    assert (answer['error_code'], answer['controller_id']) == (0, 0)
    assert answer['cluster_id'] == world.broker.catalog.cluster_id
    assert len(answer['cluster_id']) == 22
    assert [(one['broker_id'], one['host'], one['port']) for one in answer['brokers']] == [(0, 'broker.example', 1234)]
    assert answer['cluster_authorized_operations'] == 8096


async def test_controllers_are_not_here(world: World) -> None:
    for kind, code in ((2, Code.MISMATCHED_ENDPOINT_TYPE), (3, Code.UNSUPPORTED_ENDPOINT_TYPE)):
        answer = await world.call('describe_cluster', 2, endpoint_type=kind)
        assert (answer['error_code'], answer['brokers']) == (code, [])
