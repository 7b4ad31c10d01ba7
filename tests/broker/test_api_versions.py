"""ApiVersions: what is served, said to clients of every age."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.admin_world import World

from acklog.broker.api import Api
from acklog.broker.apis import APIS
from acklog.wire import layout
from acklog.wire.error_code import ErrorCode as Code

CLIENT = {'client_software_name': 'probe', 'client_software_version': '1.0'}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open()
    yield world
    await world.close()


async def ask(world: World, version: int, **fields: Any) -> dict[str, Any]:
    names = CLIENT if version >= 3 else {}
    return await world.call('api_versions', version, **{**names, **fields})


@pytest.mark.parametrize('api', [api for api in APIS if api.codec is None], ids=lambda api: api.name)
def test_every_version_that_is_served_can_be_read_and_written(api: Api) -> None:
    known = layout.versions(api.key)
    assert {*range(api.versions[0], api.versions[1] + 1)} <= {*known}


@pytest.mark.parametrize('version', range(6))
async def test_the_list_is_the_same_for_all(world: World, version: int) -> None:
    answer = await ask(world, version)
    assert answer['error_code'] == Code.NONE
    assert {(api.key, *api.versions) for api in APIS} == {
        (key['api_key'], key['min_version'], key['max_version']) for key in answer['api_keys']
    }


async def test_features_from_version_0_on_are_kept_from_clients_that_refuse_them(world: World) -> None:
    features = [
        {entry['name']: (entry['min_version'], entry['max_version']) for entry in answer['supported_features']}
        for answer in (await ask(world, 3), await ask(world, 4))
    ]
    ours = {name: (1, 1) for name in ('acklog.release.at', 'acklog.words', 'acklog.release.after', 'acklog.grace')}
    assert features == [ours, {**ours, 'share.version': (0, 1)}]


@pytest.mark.parametrize('name', ['', '-', 'a b', 'näme'])
async def test_a_name_that_none_has(world: World, name: str) -> None:
    answer = await ask(world, 4, client_software_name=name)
    assert (answer['error_code'], answer['api_keys']) == (Code.INVALID_REQUEST, [])


async def test_whom_the_client_means(world: World) -> None:
    here = world.broker.node.cluster_id
    asked = {
        (None, -1): Code.NONE,
        (here, 0): Code.NONE,
        ('elsewhere', 0): Code.REBOOTSTRAP_REQUIRED,
        (here, 5): Code.REBOOTSTRAP_REQUIRED,
        (None, 5): Code.INVALID_REQUEST,
        (here, -1): Code.INVALID_REQUEST,
    }
    answers = {
        (cluster, node): (await ask(world, 5, cluster_id=cluster, node_id=node))['error_code']
        for cluster, node in asked
    }
    assert answers == asked
