"""Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeTopicPartitions: requests and answers as bytes, on
the log in memory and on the one on disk. Codes and words are those of Apache Kafka 4.4 unless said."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.admin_world import BROKER, World, topic

from acklog.log.memory import MemoryDirectory, Trouble
from acklog.log.seam import LogConfig
from acklog.wire.error_code import ErrorCode as Code
from acklog.wire.error_words import TOPIC_RULE


@pytest.fixture(params=['memory', 'disk'])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    world = await World.open(MemoryDirectory(Trouble(delay=2)) if request.param == 'memory' else tmp_path / 'data')
    yield world
    await world.close()


def named(*names: str) -> list[dict[str, Any]]:
    return [{'name': name, 'topic_id': None} for name in names]


async def metadata(world: World, *names: str, version: int = 12, create: bool = True) -> dict[str, Any]:
    answer = await world.call('metadata', version, topics=named(*names), allow_auto_topic_creation=create)
    return {topic['name']: topic for topic in answer['topics']}


# -- CreateTopics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('version', range(2, 8))
async def test_create_in_every_version(world: World, version: int) -> None:
    assert await world.create(topic('orders', 3), topic('more', -1, -1), version=version) == {
        'orders': (0, None),
        'more': (0, None),
    }
    found = await metadata(world, 'orders', 'more')
    assert [part['partition_index'] for part in found['orders']['partitions']] == [0, 1, 2]
    assert len(found['more']['partitions']) == 4  # num.partitions
    assert found['orders']['topic_id'] == world.broker.catalog.topics['orders'].id
    await world.append('orders', 1)


async def test_the_answer_tells_what_was_made(world: World) -> None:
    asked = topic('orders', 2, configs={'retention.ms': '5'})
    for validate_only in (True, False):
        answer = await world.call('create_topics', 7, topics=[asked], timeout=1, validate_only=validate_only)
        [made] = answer['topics']
        assert (made['num_partitions'], made['replication_factor'], made['topic_config_error_code']) == (2, 1, 0)
        assert made['topic_id'] is not None
        entry = next(config for config in made['configs'] if config['name'] == 'retention.ms')
        assert (entry['value'], entry['config_source'], entry['read_only']) == ('5', 1, False)
        assert ('orders' in world.broker.catalog.topics) is not validate_only


NAMES = {
    '': TOPIC_RULE,
    '.': TOPIC_RULE,
    '..': TOPIC_RULE,
    'a b': TOPIC_RULE,
    'ä': TOPIC_RULE,
    'a\n': TOPIC_RULE,
    'x' * 250: TOPIC_RULE,
    '__mine': "names that begin with '__' are kept for the server's own topics",  # Kafka lets them be
}


async def test_names_that_no_topic_can_have(world: World) -> None:
    answers = await world.create(*(topic(name) for name in NAMES), topic('x' * 249))
    for name, words in NAMES.items():
        assert answers[name] == (Code.INVALID_TOPIC_EXCEPTION, words)
    assert answers['x' * 249] == (0, None)
    found = await metadata(world, *NAMES)
    assert {answer['error_code'] for answer in found.values()} == {Code.INVALID_TOPIC_EXCEPTION}


REFUSED = [
    (topic('t', 0), Code.INVALID_PARTITIONS, 'Number of partitions was set to an invalid non-positive value.'),
    (topic('t', -2), Code.INVALID_PARTITIONS, 'Number of partitions'),
    (topic('t', 1, 0), Code.INVALID_REPLICATION_FACTOR, 'Replication factor must be larger than 0, or -1'),
    (topic('t', 1, -2), Code.INVALID_REPLICATION_FACTOR, 'Replication factor must be larger than 0, or -1'),
    (topic('t', 1, 2), Code.INVALID_REPLICATION_FACTOR, 'Unable to replicate the partition 2 time(s)'),
    (
        topic('t', 10_001),
        Code.POLICY_VIOLATION,
        'Excessively large number of partitions per request: 10000 are allowed.',
    ),
    (topic('t', configs={'nope': '1'}), Code.INVALID_CONFIG, 'Unknown topic config name: nope'),
    (topic('t', configs={'retention.ms': 'x'}), Code.INVALID_CONFIG, 'Invalid value x for configuration retention.ms'),
    (topic('t', configs={'retention.ms': None}), Code.INVALID_CONFIG, 'Null value not supported for topic configs'),
    (topic('t', configs={'cleanup.policy': 'compact'}), Code.INVALID_CONFIG, 'compact is not supported by acklog yet'),
    (topic('t', 2, -1, assigned=[(0, [0])]), Code.INVALID_REQUEST, 'numPartitions was not set to -1'),
    (topic('t', -1, 1, assigned=[(0, [0])]), Code.INVALID_REQUEST, 'replication factor was not set to -1'),
    (topic('t', -1, -1, assigned=[(0, [0]), (2, [0])]), Code.INVALID_REPLICA_ASSIGNMENT, 'consecutive 0-based'),
    (topic('t', -1, -1, assigned=[(0, [0]), (0, [0])]), Code.INVALID_REPLICA_ASSIGNMENT, 'Found multiple manual'),
    (topic('t', -1, -1, assigned=[(0, [0, 0])]), Code.INVALID_REPLICA_ASSIGNMENT, 'the broker 0 more than once'),
    (topic('t', -1, -1, assigned=[(0, [5])]), Code.INVALID_REPLICA_ASSIGNMENT, 'broker 5, but no such broker'),
    (topic('t', -1, -1, assigned=[(0, [])]), Code.INVALID_REPLICA_ASSIGNMENT, 'an empty replica list'),
]


@pytest.mark.parametrize('validate_only', [True, False])
async def test_one_that_is_wrong_does_not_hinder_the_others(world: World, validate_only: bool) -> None:
    for number, (asked, code, words) in enumerate(REFUSED):
        good = f'good-{number}'
        answers = await world.create(asked, topic(good), validate_only=validate_only)
        assert answers[good] == (0, None)
        assert answers['t'][0] == code
        assert words in (answers['t'][1] or '')
        assert (good in world.broker.catalog.topics) is not validate_only


async def test_assigned_by_hand(world: World) -> None:
    assert await world.create(topic('orders', -1, -1, assigned=[(1, [0]), (0, [0])])) == {'orders': (0, None)}
    assert world.broker.catalog.topics['orders'].partitions == 2


async def test_named_twice_or_there_already(world: World) -> None:
    answers = await world.create(topic('twice'), topic('twice', 2), topic('once'))
    assert answers == {'twice': (Code.INVALID_REQUEST, 'Duplicate topic name.'), 'once': (0, None)}
    taken = (Code.TOPIC_ALREADY_EXISTS, "there is a topic 'once' already")
    assert await world.create(topic('once')) == {'once': taken}
    assert await world.create(topic('once'), validate_only=True) == {'once': taken}


async def test_the_network_cannot_fill_the_node() -> None:
    world = await World.open(settings={'acklog.max.partitions': '6'})
    assert await world.create(topic('a', 4), topic('b', 2)) == {'a': (0, None), 'b': (0, None)}
    for validate_only in (True, False):
        answers = await world.create(topic('c', 1), validate_only=validate_only)
        assert answers['c'][0] == Code.POLICY_VIOLATION
    found = await metadata(world, 'd')
    assert found['d']['error_code'] == Code.POLICY_VIOLATION
    assert (await grow(world, 'b', 3))[0] == Code.POLICY_VIOLATION


# -- Metadata ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('version', range(14))
async def test_metadata_in_every_version(world: World, version: int) -> None:
    await world.made('orders', 2)
    everything = [] if version == 0 else None
    answer = await world.call('metadata', version, topics=everything)
    assert [(node['node_id'], node['port']) for node in answer['brokers']] == [(0, 9092)]
    assert answer.get('controller_id', 0) == 0
    [orders] = answer['topics']
    assert (orders['name'], orders['error_code']) == ('orders', 0)
    assert orders['partitions'][1] | {'leader_epoch': 0, 'offline_replicas': []} == {
        'error_code': 0,
        'partition_index': 1,
        'leader_id': 0,
        'leader_epoch': 0,
        'replica_nodes': [0],
        'isr_nodes': [0],
        'offline_replicas': [],
    }
    if version:
        assert (await world.call('metadata', version, topics=[]))['topics'] == []


async def test_a_topic_asked_for_is_created(world: World) -> None:
    found = await metadata(world, 'new', create=False)
    assert found['new']['error_code'] == Code.UNKNOWN_TOPIC_OR_PARTITION
    found = await metadata(world, 'new', 'new')
    assert (found['new']['error_code'], len(found['new']['partitions'])) == (0, 4)
    again = await metadata(world, 'new')
    assert again['new']['topic_id'] == found['new']['topic_id']
    assert (await world.call('metadata', 3, topics=named('old client')))['topics'][0]['error_code'] == 17
    assert (await world.call('metadata', 3, topics=named('old-client')))['topics'][0]['error_code'] == 0


async def test_many_ask_for_it_at_once(world: World) -> None:
    answers = await asyncio.gather(*(metadata(world, 'new', 'other') for _ in range(20)))
    assert {(answer['new']['error_code'], answer['new']['topic_id']) for answer in answers} == {
        (0, world.broker.catalog.topics['new'].id)
    }
    assert world.broker.catalog.partitions == 8


async def test_creation_can_be_off(world: World) -> None:
    assert await world.alter(4, '', ('auto.create.topics.enable', 'false')) == (0, None)
    assert (await metadata(world, 'new'))['new']['error_code'] == Code.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_by_id(world: World) -> None:
    await world.made('orders')
    orders, unknown = world.broker.catalog.topics['orders'].id, uuid.uuid4()
    asked = [{'name': None, 'topic_id': orders}, {'name': None, 'topic_id': unknown}]
    answer = await world.call('metadata', 13, topics=asked)
    assert [(found['error_code'], found['name'], found['topic_id']) for found in answer['topics']] == [
        (0, 'orders', orders),
        (Code.UNKNOWN_TOPIC_ID, None, unknown),
    ]


async def test_permissions_when_asked_for(world: World) -> None:
    await world.made('orders')
    asked = {'include_topic_authorized_operations': True, 'include_cluster_authorized_operations': True}
    answer = await world.call('metadata', 10, topics=None, **asked)
    assert answer['topics'][0]['topic_authorized_operations'] == 3576  # as Kafka without an authorizer
    assert answer['cluster_authorized_operations'] == 8096
    answer = await world.call('metadata', 10, topics=None)
    assert answer['topics'][0]['topic_authorized_operations'] == -(1 << 31)


# -- DeleteTopics ------------------------------------------------------------------------------------------------------


async def delete(world: World, *entries: Any, version: int = 6) -> list[tuple[str | None, int, str | None]]:
    if version < 6:
        answer = await world.call('delete_topics', version, topic_names=entries, timeout=1)
    else:
        topics = [
            {'name': entry if isinstance(entry, str) else None, 'topic_id': None if isinstance(entry, str) else entry}
            for entry in entries
        ]
        answer = await world.call('delete_topics', version, topics=topics, timeout=1)
    return [(one['name'], one['error_code'], one.get('error_message')) for one in answer['responses']]


@pytest.mark.parametrize('version', range(1, 7))
async def test_delete_in_every_version(world: World, version: int) -> None:
    await world.made('a', 2)
    await world.made('b')
    await world.append('b', 1)
    answers = await delete(world, 'a', 'nope', 'b', version=version)
    assert [answer[:2] for answer in answers] == [('a', 0), ('nope', Code.UNKNOWN_TOPIC_OR_PARTITION), ('b', 0)]
    assert world.broker.partitions == {}
    assert [name for name in world.directory.names() if not name.startswith('__')] == []


async def test_delete_by_id(world: World) -> None:
    await world.made('a')
    found = world.broker.catalog.topics['a'].id
    twice = 'The provided topic name maps to an ID that was already supplied.'
    assert {answer[1:] for answer in await delete(world, 'a', found)} == {(Code.INVALID_REQUEST, twice)}
    assert await delete(world, found) == [('a', 0, None)]
    [(name, code, words)] = await delete(world, found)
    assert (name, code, words) == (None, Code.UNKNOWN_TOPIC_ID, 'there is no topic with that id')


async def test_what_cannot_be_deleted(world: World) -> None:
    await world.made('a')
    [(_, code, _)] = await delete(world, 'a', 'a')
    assert code == Code.INVALID_REQUEST
    answer = await world.call('delete_topics', 6, topics=[{'name': None, 'topic_id': None}], timeout=1)
    assert answer['responses'][0]['error_message'] == 'Neither topic name nor id were specified.'
    both = {'name': 'a', 'topic_id': uuid.uuid4()}
    answer = await world.call('delete_topics', 6, topics=[both], timeout=1)
    assert answer['responses'][0]['error_message'] == 'You may not specify both topic name and topic id.'
    await world.alter(4, '0', ('delete.topic.enable', 'false'))
    assert [answer[:2] for answer in await delete(world, 'a')] == [('a', Code.TOPIC_DELETION_DISABLED)]
    assert 'a' in world.broker.catalog.topics


# -- CreatePartitions --------------------------------------------------------------------------------------------------


async def grow(
    world: World, name: str, count: int, assigned: list[list[int]] | None = None, version: int = 3, **options: Any
) -> tuple[int, str | None]:
    assignments = None if assigned is None else [{'broker_ids': ids} for ids in assigned]
    entry = {'name': name, 'count': count, 'assignments': assignments}
    answer = await world.call('create_partitions', version, topics=[entry], timeout=1, **options)
    return answer['results'][0]['error_code'], answer['results'][0]['error_message']


@pytest.mark.parametrize('version', range(4))
async def test_more_partitions(world: World, version: int) -> None:
    await world.made('a', 1)
    await world.append('a', 1)
    assert await grow(world, 'a', 3, version=version, validate_only=True) == (0, None)
    assert world.broker.catalog.topics['a'].partitions == 1
    assert await grow(world, 'a', 3, version=version) == (0, None)
    assert await grow(world, 'a', 5, [[0], [0]], version=version) == (0, None)
    assert (world.partition('a', 4).log.end, world.partition('a', 0).log.end) == (0, 1)


async def test_partitions_that_are_refused(world: World) -> None:
    await world.made('a', 3)
    for count in (3, 2, 0, -1):
        words = f"topic 'a' has 3 partitions: {count} would not be more"
        assert await grow(world, 'a', count) == (Code.INVALID_PARTITIONS, words)
    assert (await grow(world, 'nope', 3))[0] == Code.UNKNOWN_TOPIC_OR_PARTITION
    few = 'Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.'
    assert await grow(world, 'a', 5, [[0]]) == (Code.INVALID_REPLICA_ASSIGNMENT, few)
    assert (await grow(world, 'a', 4, [[7]]))[0] == Code.INVALID_REPLICA_ASSIGNMENT
    assert (await grow(world, 'a', 100_000))[0] == Code.POLICY_VIOLATION
    twice = [{'name': 'a', 'count': count, 'assignments': None} for count in (4, 5)]
    answer = await world.call('create_partitions', 3, topics=twice, timeout=1)
    assert [(one['name'], one['error_code']) for one in answer['results']] == [('a', Code.INVALID_REQUEST)]


# -- DescribeTopicPartitions -------------------------------------------------------------------------------------------


async def page(
    world: World, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[list[tuple[str, int, list[int]]], tuple[str, int] | None]:
    start = None if cursor is None else {'topic_name': cursor[0], 'partition_index': cursor[1]}
    answer = await world.call(
        'describe_topic_partitions',
        0,
        topics=[{'name': name} for name in names],
        response_partition_limit=limit,
        cursor=start,
    )
    topics = [
        (found['name'], found['error_code'], [part['partition_index'] for part in found['partitions']])
        for found in answer['topics']
    ]
    after = answer['next_cursor']
    return topics, None if after is None else (after['topic_name'], after['partition_index'])


async def test_pages_of_partitions(world: World) -> None:
    await world.made('b', 3)
    await world.made('a', 2)
    assert await page(world, []) == ([('a', 0, [0, 1]), ('b', 0, [0, 1, 2])], None)
    assert await page(world, [], 4) == ([('a', 0, [0, 1]), ('b', 0, [0, 1])], ('b', 2))
    assert await page(world, [], 4, ('b', 2)) == ([('b', 0, [2])], None)
    assert await page(world, [], 2) == ([('a', 0, [0, 1])], ('b', 0))
    assert await page(world, ['b'], 0) == ([('b', 0, [0])], ('b', 1))
    assert await page(world, ['nope', 'a b', 'a']) == ([('a b', 17, []), ('nope', 3, []), ('a', 0, [0, 1])], None)
    assert await page(world, ['a'], 9, ('z', 0)) == ([('a', Code.INVALID_REQUEST, [])], None)


# -- restarts ----------------------------------------------------------------------------------------------------------


async def test_what_the_logs_lack_is_made_and_what_is_left_over_goes() -> None:
    directory = MemoryDirectory()
    world = await World.open(directory)
    await world.made('orders', 2)
    orders = world.broker.catalog.topics['orders']
    await world.append('orders', 1)
    await (await directory.open(orders.log_name(1), LogConfig())).delete()  # as if killed before it was made
    await directory.open('AAAAAAAAAAAAAAAAAAAAAA-0', LogConfig())  # as if killed before it was removed
    world = await World.open(directory.restarted())
    assert world.broker.catalog.topics['orders'].id == orders.id
    assert (world.partition('orders', 0).log.end, world.partition('orders', 1).log.end) == (1, 0)
    assert 'AAAAAAAAAAAAAAAAAAAAAA-0' not in world.directory.names()


async def test_a_restart_on_disk(tmp_path: Path) -> None:
    world = await World.open(tmp_path)
    await world.made('orders', 2, retention_ms='5')
    await world.append('orders', 1)
    topic_id = world.broker.catalog.topics['orders'].id
    await world.close()
    world = await World.open(tmp_path)
    found = (await metadata(world, 'orders'))['orders']
    assert (found['topic_id'], len(found['partitions'])) == (topic_id, 2)
    assert world.partition('orders').log.end == 1
    await world.close()


async def test_created_and_deleted_at_the_same_time() -> None:
    world = await World.open(MemoryDirectory(Trouble(delay=3, seed=5)))

    async def remove(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await delete(world, 'a')

    for turns in range(0, 60, 3):
        await asyncio.gather(world.create(topic('a', 8)), remove(turns))
        await delete(world, 'a')
        assert world.broker.partitions == {}
        assert [name for name in world.directory.names() if not name.startswith('__')] == []


async def test_no_more_partitions_than_10000_are_created_by_one_request(world: World) -> None:
    """Asked for in any way; the message says how many."""
    many = [topic(f'many-{index}', 2500) for index in range(5)]
    for validate_only in (True, False):
        answers = await world.create(*many, validate_only=validate_only)
        codes = [(code, '10000' in (words or '')) for code, words in answers.values()]
        assert codes == [(0, False)] * 4 + [(Code.POLICY_VIOLATION, True)]
    assert await world.alter(BROKER, '', ('num.partitions', '2500')) == (0, None)
    asked = [{'name': f'more-{index}'} for index in range(5)]
    answer = await world.call('metadata', 12, topics=asked, allow_auto_topic_creation=True)
    assert [each['error_code'] for each in answer['topics']] == [0] * 4 + [Code.POLICY_VIOLATION]
