"""ListGroups, DeleteGroups, and the offsets of share groups: requests in, answers out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.groups_world import World

from acklog.broker.apis.alter_share_group_offsets import API as ALTER
from acklog.broker.apis.delete_groups import API as DELETE
from acklog.broker.apis.delete_share_group_offsets import API as DELETE_OFFSETS
from acklog.broker.apis.describe_share_group_offsets import API as DESCRIBE
from acklog.broker.apis.list_groups import API as LIST
from acklog.broker.apis.offset_fetch import API as OFFSET_FETCH

OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_GROUP, INVALID, NON_EMPTY, GROUP_NOT_FOUND = 1, 3, 24, 42, 68, 69


@pytest.fixture(autouse=True, params=[0, 3], ids=['logs at once', 'logs with delay'])
async def delay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield
    await World.close_all()


async def populated() -> tuple[World, bytes]:
    """Group g has member m; nobody is in h."""
    world = await World.open()
    topic = await world.topic('a', 2)
    await world.beat('m', 0, 'a')
    await world.beat('n', 0, 'a', group='h')
    await world.beat('n', -1, group='h')
    return world, topic


async def alter(world: World, group: str, topic: str, **offsets: int) -> Any:
    """Error codes by partition ('p0'), or of the whole request."""
    partitions = [{'partition_index': int(name[1:]), 'start_offset': offset} for name, offset in offsets.items()]
    fields = {'group_id': group, 'topics': [{'topic_name': topic, 'partitions': partitions}]}
    answer = await world.call(ALTER, fields)
    if answer['error_code']:
        return answer['error_code']
    [response] = answer['responses']
    return {f'p{p["partition_index"]}': p['error_code'] for p in response['partitions']}


async def describe(world: World, group: str, topic: str | None = None, *indexes: int) -> Any:
    """{'a-0': (start, lag)} or the error code."""
    asked = None if topic is None else [{'topic_name': topic, 'partitions': indexes}]
    [answer] = (await world.call(DESCRIBE, {'groups': [{'group_id': group, 'topics': asked}]}))['groups']
    if answer['error_code']:
        return answer['error_code']
    return {
        f'{t["topic_name"]}-{p["partition_index"]}': (p['start_offset'], p['lag'])
        for t in answer['topics']
        for p in t['partitions']
    }


@pytest.mark.parametrize(
    ('states', 'types', 'names'),
    [
        ([], [], ['g', 'h']),
        (['Stable'], [], ['g']),
        (['empty'], ['SHARE'], ['h']),
        (['Dead', 'Empty', 'Stable'], ['share', 'classic'], ['g', 'h']),
        ([], ['consumer'], []),
        (['nonsense'], [], []),
    ],
)
async def test_list(states: list[str], types: list[str], names: list[str]) -> None:
    world, _ = await populated()
    answer = await world.call(LIST, {'states_filter': states, 'types_filter': types})
    assert [group['group_id'] for group in answer['groups']] == names


async def test_list_in_every_version() -> None:
    world, _ = await populated()
    for version in range(LIST.versions[0], LIST.versions[1] + 1):
        [g, _h] = (await world.call(LIST, {}, version=version))['groups']
        assert (g['group_id'], g['protocol_type']) == ('g', 'share')
    assert (g['group_state'], g['group_type']) == ('Stable', 'share')


async def test_delete() -> None:
    world, _ = await populated()
    answer = await world.call(DELETE, {'groups_names': ['g', 'h', 'i']})
    assert [(r['group_id'], r['error_code']) for r in answer['results']] == [
        ('g', NON_EMPTY), ('h', 0), ('i', GROUP_NOT_FOUND),
    ]  # fmt: skip
    await world.restart()
    assert list(world.catalog.groups) == ['g']


async def test_a_group_made_again_begins_anew() -> None:
    world, topic = await populated()
    await alter(world, 'h', 'a', p0=0)
    await world.publish(topic, 3)
    assert await describe(world, 'h') == {'a-0': (0, 3)}
    await world.call(DELETE, {'groups_names': ['h']})
    await world.beat('n', 0, 'a', group='h')
    assert await describe(world, 'h') == {}


async def test_where_a_group_begins() -> None:
    world, topic = await populated()
    await world.publish(topic, 5)
    assert await alter(world, 'h', 'a', p0=3, p1=0, p2=0) == {'p0': 0, 'p1': 0, 'p2': UNKNOWN_TOPIC}
    assert await describe(world, 'h') == {'a-0': (3, 2), 'a-1': (0, 0)}
    assert await alter(world, 'h', 'a', p0=6, p1=-1) == {'p0': OUT_OF_RANGE, 'p1': INVALID}
    assert await alter(world, 'h', 'b', p0=0) == {'p0': UNKNOWN_TOPIC}
    assert await alter(world, 'g', 'a', p0=0) == NON_EMPTY
    assert await alter(world, '', 'a', p0=0) == INVALID_GROUP
    assert await alter(world, 'new', 'a', p0=1) == {'p0': 0}
    await world.restart()
    assert await describe(world, 'new') == {'a-0': (1, 4)}


async def test_a_partition_that_is_named_again_is_moved_once_to_the_last_offset() -> None:
    world, topic = await populated()
    await world.publish(topic, 5)
    journal = world.broker.deliveries.journal.log
    asked = [('a', 0, 1), ('a', 1, 0), ('a', 0, 9), ('b', 0, 0)] * 100 + [('a', 0, 3)]
    before = journal.end
    topics = [
        {'topic_name': name, 'partitions': [{'partition_index': index, 'start_offset': offset}] * 3}
        for name, index, offset in asked
    ]
    answer = await world.call(ALTER, {'group_id': 'h', 'topics': topics})
    assert [
        (each['topic_name'], [(p['partition_index'], p['error_code']) for p in each['partitions']])
        for each in answer['responses']
    ] == [('a', [(0, 0), (1, 0)]), ('b', [(0, UNKNOWN_TOPIC)])]
    assert journal.end - before <= 4  # at most a beginning and a seek for each of the two
    assert await describe(world, 'h') == {'a-0': (3, 2), 'a-1': (0, 0)}


async def test_below_the_logs_start_means_its_start() -> None:
    world, topic = await populated()
    await world.publish(topic, 5)
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    await partition.log.truncate_before(2)
    assert await alter(world, 'h', 'a', p0=0) == {'p0': 0}
    assert await describe(world, 'h') == {'a-0': (2, 3)}


async def test_the_lag_counts_what_is_not_settled() -> None:
    world, topic = await populated()
    await world.take('m', 0, (topic, 0))
    await world.publish(topic, 4)
    assert await describe(world, 'g') == {'a-0': (0, 4)}
    assert await world.take('m', 1, count=3) == [0, 1, 2]
    assert await world.sign_off('m', 2, topic, 1, 2) == [0, 0]
    assert await describe(world, 'g') == {'a-0': (0, 2)}  # one held, one to be taken; the hole counts no more
    assert await world.sign_off('m', 3, topic, 0) == [0, 0]
    assert await describe(world, 'g') == {'a-0': (3, 1)}


async def test_what_there_is_to_describe() -> None:
    world, _ = await populated()
    await alter(world, 'h', 'a', p0=0)
    assert await describe(world, 'h', 'a', 0, 1, 7) == {'a-0': (0, 0), 'a-1': (-1, -1), 'a-7': (-1, -1)}
    assert await describe(world, 'h', 'b', 0) == {'b-0': (-1, -1)}
    assert await describe(world, 'i') == {}  # that it does not exist is no error, as on Kafka
    assert await describe(world, 'i', 'a', 0) == {'a-0': (-1, -1)}


async def test_all_of_a_group_is_described_once() -> None:
    world, _ = await populated()
    await alter(world, 'h', 'a', p0=0)
    asked = [{'group_id': 'h', 'topics': None}, {'group_id': 'h', 'topics': [{'topic_name': 'a', 'partitions': [1]}]}]
    groups = (await world.call(DESCRIBE, {'groups': asked * 1000}))['groups']
    assert [[p['partition_index'] for p in group['topics'][0]['partitions']] for group in groups] == [[0], [1]]


async def test_a_group_forgets_a_topic() -> None:
    world, _ = await populated()
    await alter(world, 'h', 'a', p0=0, p1=0)
    fields = {'group_id': 'h', 'topics': [{'topic_name': 'a'}, {'topic_name': 'b'}]}
    answer = await world.call(DELETE_OFFSETS, fields)
    assert [(r['topic_name'], r['error_code']) for r in answer['responses']] == [('a', 0), ('b', UNKNOWN_TOPIC)]
    assert await describe(world, 'h') == {}
    answer = await world.call(DELETE_OFFSETS, fields)
    assert [(r['topic_name'], r['error_code']) for r in answer['responses']] == [
        ('a', UNKNOWN_TOPIC),
        ('b', UNKNOWN_TOPIC),
    ]
    for group, code in (('', INVALID_GROUP), ('g', NON_EMPTY), ('i', GROUP_NOT_FOUND)):
        assert (await world.call(DELETE_OFFSETS, {'group_id': group, 'topics': []}))['error_code'] == code


@pytest.mark.parametrize('version', range(1, 10))
async def test_no_consumer_group_has_committed_anything(version: int) -> None:
    world, _ = await populated()
    topics = [{'name': 'a', 'partition_indexes': [0, 7]}, {'name': 'no such', 'partition_indexes': [1]}]
    fields = {'group_id': 'g', 'topics': topics} if version < 8 else {'groups': [{'group_id': 'g', 'topics': topics}]}
    answer = await world.call(OFFSET_FETCH, fields, version=version)
    found = answer['topics'] if version < 8 else answer['groups'][0]['topics']
    assert [(t['name'], p['partition_index'], p['committed_offset']) for t in found for p in t['partitions']] == [
        ('a', 0, -1),
        ('a', 7, -1),
        ('no such', 1, -1),
    ]


async def test_all_that_a_consumer_group_has_committed_is_nothing() -> None:
    world, _ = await populated()
    answer = await world.call(OFFSET_FETCH, {'groups': [{'group_id': 'g', 'topics': None}]})
    assert list(answer['groups'][0]['topics']) == []
