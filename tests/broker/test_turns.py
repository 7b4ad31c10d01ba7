"""One request with very many small items lets others have their turn meanwhile: reading it, doing it, answering it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from tests.broker.admin_world import GROUP, NOW, TOPIC, World, topic
from tests.broker.stretches import longest

from acklog.broker.api import Api
from acklog.broker.apis import APIS
from acklog.broker.operations import Target
from acklog.server.dispatch import Dispatch
from acklog.wire import cold, layout, share_acknowledge
from acklog.wire.acknowledgements import ACCEPT
from acklog.wire.frame import request_frame
from acklog.wire.layout import REQUEST, RESPONSE, Field, Structure

ITEMS = 4000
AT_ONE_GO = 40_000  # calls: a few milliseconds. What is done for ITEMS without turns is a multiple

BY_NAME = {api.name: api for api in APIS}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open()
    await world.made('orders', ITEMS)
    yield world
    await world.close()


async def call(world: World, api: Api, **fields: Any) -> tuple[Any, int]:
    """(answer, most calls at one go), of the newest version."""
    version = api.versions[1]
    frame = b''.join(request_frame(api.key, version, 1, None, [cold.encode_request(api.key, version, fields)]))
    layout.of_message(api.key, version, RESPONSE)  # loaded before, once: not what is counted
    pieces, most = await longest(Dispatch(world.broker).answer(world.caller, memoryview(frame)[4:]))
    assert pieces is not None
    answer = memoryview(b''.join(pieces))[4:]
    head = 5 if layout.of_message(api.key, version, REQUEST).flexible else 4
    return cold.decode_response(api.key, version, answer[head:]), most


def arrays(structure: Structure) -> list[Field]:
    return [field for field in structure.fields + structure.tagged if field.is_array]


def value(field: Field, number: int, items: int) -> Any:
    """A value for the field in which nothing is like that for another number; of arrays so many items."""
    if field.is_array:
        one = field._replace(is_array=False)
        return [value(one, number + each, 1) for each in range(items)]
    if field.structure is not None:
        inner = field.structure
        return {each.name: value(each, number, items) for each in inner.fields + inner.tagged}
    if field.kind == 'string':
        return f'name-{number}'
    if field.kind == 'uuid':
        return UUID(int=number + 1)
    if field.kind == 'bytes':
        return b''
    return number % 100 if field.kind in ('bool', 'int8', 'uint8') else number


MANY = [
    (api.name, field.name)
    for api in APIS
    if api.codec is None
    for field in arrays(layout.of_message(api.key, api.versions[1], REQUEST))
]


@pytest.mark.parametrize(('name', 'field'), MANY)
async def test_many_items_of_any_request(world: World, name: str, field: str) -> None:
    api = BY_NAME[name]
    [array] = [each for each in arrays(layout.of_message(api.key, api.versions[1], REQUEST)) if each.name == field]
    _, most = await call(world, api, **{field: value(array, 0, ITEMS)})
    assert most < AT_ONE_GO


INDEXES = list(range(ITEMS))
NAMES = [f'name-{index}' for index in INDEXES]
ALTERED = {'group_id': 'g', 'topics': [
    {'topic_name': 'orders', 'partitions': [{'partition_index': index, 'start_offset': 0} for index in INDEXES]}
]}  # fmt: skip

# Of what is there, or is made so: where more is done for each than to say that it is not.
THERE: list[tuple[str, dict[str, Any]]] = [
    ('Metadata', {'topics': None}),
    ('Metadata', {'topics': [{'name': 'orders'}]}),
    ('DescribeTopicPartitions', {'topics': [], 'response_partition_limit': ITEMS}),
    ('ListOffsets', {'topics': [{'name': 'orders', 'partitions': [
        {'partition_index': index, 'timestamp': -1, 'current_leader_epoch': -1} for index in INDEXES]}]}),
    ('DeleteRecords', {'topics': [{'name': 'orders', 'partitions': [
        {'partition_index': index, 'offset': -1} for index in INDEXES]}]}),
    ('CreateTopics', {'topics': [topic(name) for name in NAMES], 'validate_only': True}),
    ('CreateTopics', {'topics': [topic(name, configs={'retention.ms': '7'}) for name in NAMES]}),
    ('CreatePartitions', {'topics': [{'name': 'orders', 'count': 2 * ITEMS}]}),
    ('IncrementalAlterConfigs', {'resources': [
        {'resource_type': TOPIC, 'resource_name': 'orders', 'configs': [{'name': name, 'value': ''} for name in NAMES]}
    ]}),
    ('AlterConfigs', {'resources': [
        {'resource_type': GROUP, 'resource_name': name, 'configs': [{'name': 'share.auto.offset.reset', 'value': 'x'}]}
        for name in NAMES]}),
    ('DescribeConfigs', {'resources': [{'resource_type': GROUP, 'resource_name': name} for name in NAMES]}),
    ('OffsetFetch', {'groups': [{'group_id': 'g', 'topics': [{'name': 'orders', 'partition_indexes': INDEXES}]}]}),
    ('AlterShareGroupOffsets', ALTERED),
    ('ElectLeaders', {'topic_partitions': [{'topic': 'orders', 'partitions': INDEXES}]}),
    ('AlterPartitionReassignments', {'topics': [{'name': 'orders', 'partitions': [
        {'partition_index': index, 'replicas': [0]} for index in INDEXES]}]}),
    ('DescribeLogDirs', {'topics': None}),
    ('DescribeLogDirs', {'topics': [{'topic': 'orders', 'partitions': INDEXES}]}),
    ('DescribeQuorum', {'topics': [{'topic_name': '__cluster_metadata', 'partitions': [
        {'partition_index': 0} for _ in INDEXES]}]}),
]  # fmt: skip


@pytest.mark.parametrize(('name', 'fields'), THERE)
async def test_many_items_of_which_there_is_something_to_say(world: World, name: str, fields: dict[str, Any]) -> None:
    _, most = await call(world, BY_NAME[name], **fields)
    assert most < AT_ONE_GO


async def test_many_partitions_of_a_group(world: World) -> None:
    await call(world, BY_NAME['AlterShareGroupOffsets'], **ALTERED)
    for asked in (None, [{'topic_name': 'orders', 'partitions': INDEXES}]):
        groups = [{'group_id': 'g', 'topics': asked}]
        answer, most = await call(world, BY_NAME['DescribeShareGroupOffsets'], groups=groups)
        assert [each.start_offset for each in answer.groups[0].topics[0].partitions] == [0] * ITEMS
        assert most < AT_ONE_GO
    _, most = await call(world, BY_NAME['DeleteShareGroupOffsets'], group_id='g', topics=[{'topic_name': 'orders'}])
    assert most < AT_ONE_GO


async def test_answers_are_in_the_order_of_what_was_asked(world: World) -> None:
    asked = [f'name-{index}' for index in reversed(INDEXES)]
    answer, _ = await call(world, BY_NAME['CreateTopics'], topics=[topic(name) for name in asked], validate_only=True)
    assert [each.name for each in answer.topics] == asked
    answer, _ = await call(world, BY_NAME['FindCoordinator'], coordinator_keys=asked)
    assert [each.key for each in answer.coordinators] == asked
    answer, _ = await call(world, BY_NAME['OffsetFetch'], groups=[{'group_id': name} for name in asked])
    assert [each.group_id for each in answer.groups] == asked


async def test_a_time_is_looked_for_in_a_batch_of_very_many_records(world: World) -> None:
    times = list(range(NOW, NOW + 5 * ITEMS))
    await world.append('orders', *times, compression='zstd')
    partition = {'partition_index': 0, 'timestamp': times[-1], 'current_leader_epoch': -1}
    answer, most = await call(world, BY_NAME['ListOffsets'], topics=[{'name': 'orders', 'partitions': [partition]}])
    assert answer.topics[0].partitions[0].offset == len(times) - 1
    assert most < AT_ONE_GO


async def test_a_group_begins_on_many_partitions(world: World) -> None:
    """When a member over HTTP takes of them, and when it is moved on those that it has not begun with."""
    await world.made('other')
    operations = world.broker.operations
    await operations.acquire(world.caller, 'h', 'm', ['other'])
    _, most = await longest(operations.acquire(world.caller, 'g', 'm', ['orders']))
    assert most < AT_ONE_GO
    for _ in range(2):  # the second time it has begun with all of them
        moved, most = await longest(operations.seek(world.caller, 'h', Target('latest'), 'orders'))
        assert [each.partition for each in moved] == INDEXES
        assert most < AT_ONE_GO


async def test_many_partitions_are_signed_off(world: World) -> None:
    topic, groups = world.broker.catalog.topics['orders'].id_bytes, world.broker.groups
    group = await groups.ensure('g')
    groups.session(world.caller, 'g', 'm', 0)
    for index in INDEXES:
        await world.broker.deliveries.get(group, topic, index)
    acks = [(0, 0, bytes([ACCEPT]), None)]
    asked = [share_acknowledge.Topic(topic, [share_acknowledge.Partition(index, acks) for index in INDEXES])]
    request = share_acknowledge.Request('g', 'm', 1, False, asked)
    answer, most = await longest(BY_NAME['ShareAcknowledge'].handle(world.broker, world.caller, 2, request))
    assert [each.index for each in answer.topics[0].partitions] == INDEXES
    assert most < AT_ONE_GO
