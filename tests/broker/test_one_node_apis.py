"""Admin APIs about replicas, leaders, directories and quorums, where there is one of each. Codes and words are those of
Apache Kafka 4.4 with one node."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.broker.admin_world import NOW, World

from acklog.wire.error_code import ErrorCode as Code

PREFERRED, UNCLEAN = 0, 1
UNKNOWN = Code.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open(settings={'data': 'some/where'})
    await world.made('t', 2)
    yield world
    await world.close()


# -- leaders and replicas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', [PREFERRED, UNCLEAN])
async def test_no_election_is_needed(world: World, kind: int) -> None:
    asked = [{'topic': 't', 'partitions': [0, 9]}, {'topic': 'none', 'partitions': [0]}]
    answer = await world.call('elect_leaders', 2, election_type=kind, topic_partitions=asked, timeout=1000)
    assert answer['error_code'] == Code.NONE
    assert {
        (result['topic'], one['partition_id']): one['error_code']
        for result in answer['replica_election_results']
        for one in result['partition_result']
    } == {('t', 0): Code.ELECTION_NOT_NEEDED, ('t', 9): UNKNOWN, ('none', 0): UNKNOWN}


async def test_an_election_of_all_has_nothing_to_say(world: World) -> None:
    answer = await world.call('elect_leaders', 2, topic_partitions=None, timeout=1000)
    assert answer['replica_election_results'] == [{'topic': 't', 'partition_result': []}]


async def test_a_kind_of_election_that_there_is_not(world: World) -> None:
    asked = [{'topic': 't', 'partitions': [0]}]
    answer = await world.call('elect_leaders', 1, election_type=5, topic_partitions=asked, timeout=1000)
    assert answer['error_code'] == Code.INVALID_REQUEST
    [one] = answer['replica_election_results'][0]['partition_result']
    assert (one['error_code'], one['error_message']) == (Code.INVALID_REQUEST, 'Unknown election type 5')


async def reassigned(world: World, name: str, index: int, replicas: Sequence[int] | None) -> tuple[int, str | None]:
    topics = [{'name': name, 'partitions': [{'partition_index': index, 'replicas': replicas}]}]
    answer = await world.call('alter_partition_reassignments', 1, topics=topics, timeout=1000)
    assert answer['error_code'] == Code.NONE
    [one] = answer['responses'][0]['partitions']
    return one['error_code'], one['error_message']


async def test_a_partition_is_where_it_can_be(world: World) -> None:
    assert await reassigned(world, 't', 0, [0]) == (Code.NONE, None)
    includes = 'The manual partition assignment includes'
    for replicas, words in (
        ([1], 'broker 1, but no such broker is registered.'),
        ([0, 1], 'broker 1, but no such broker is registered.'),
        ([0, 0], 'the broker 0 more than once.'),
        ([], 'an empty replica list.'),
    ):
        refused = (Code.INVALID_REPLICA_ASSIGNMENT, f'{includes} {words}')
        assert await reassigned(world, 't', 0, replicas) == refused
    assert await reassigned(world, 't', 9, [0]) == (UNKNOWN, "topic 't' has the partitions 0 to 1, not 9")
    assert await reassigned(world, 'none', 0, [0]) == (UNKNOWN, "there is no topic 'none'")


async def test_one_of_many_replicas_that_is_named_twice(world: World) -> None:
    begun = time.process_time()
    words = 'The manual partition assignment includes the broker 49999 more than once.'
    assert await reassigned(world, 't', 0, [*range(50_000), 49_999]) == (Code.INVALID_REPLICA_ASSIGNMENT, words)
    assert time.process_time() - begun < 1


async def test_there_is_no_move_to_take_back_or_to_list(world: World) -> None:
    assert (await reassigned(world, 't', 0, None))[0] == Code.NO_REASSIGNMENT_IN_PROGRESS
    for asked in (None, [{'name': 't', 'partition_indexes': [0, 9]}]):
        answer = await world.call('list_partition_reassignments', 0, topics=asked, timeout=1000)
        assert (answer['error_code'], answer['topics']) == (Code.NONE, [])


# -- directories -------------------------------------------------------------------------------------------------------


async def directory(world: World, topics: Any) -> dict[str, Any]:
    [one] = (await world.call('describe_log_dirs', 5, topics=topics))['results']
    assert isinstance(one, dict)
    return one


async def test_what_partitions_take_up(world: World) -> None:
    await world.append('t', NOW)
    one = await directory(world, None)
    assert one['log_dir'].startswith('/')
    assert one['log_dir'].endswith('/some/where')
    sizes = [(p['partition_index'], p['partition_size']) for p in one['topics'][0]['partitions']]
    assert sizes == [(0, world.partition('t').log.size), (1, 0)]
    assert sizes[0][1] > 0


async def test_directories_of_what_there_is_not(world: World) -> None:
    assert (await directory(world, []))['topics'] == []
    asked = [{'topic': 'none', 'partitions': [0]}, {'topic': 't', 'partitions': [7, 1, 1]}]
    [topic] = (await directory(world, asked))['topics']
    assert (topic['name'], [p['partition_index'] for p in topic['partitions']]) == ('t', [1])


async def test_partitions_stay_in_the_one_directory(world: World) -> None:
    here = (await directory(world, []))['log_dir']
    outcomes = {}
    for path in (here, '/elsewhere'):
        dirs = [{'path': path, 'topics': [{'name': 't', 'partitions': [0, 9]}, {'name': 'none', 'partitions': [0]}]}]
        answer = await world.call('alter_replica_log_dirs', 2, dirs=dirs)
        outcomes[path] = [p['error_code'] for result in answer['results'] for p in result['partitions']]
    assert outcomes == {here: [Code.NONE, UNKNOWN, UNKNOWN], '/elsewhere': [Code.LOG_DIR_NOT_FOUND] * 3}


# -- quorum ------------------------------------------------------------------------------------------------------------


async def quorum(world: World, topic: str, index: int) -> dict[str, Any]:
    asked = [{'topic_name': topic, 'partitions': [{'partition_index': index}]}]
    answer = await world.call('describe_quorum', 2, topics=asked)
    [partition] = answer['topics'][0]['partitions']
    return {**partition, 'nodes': answer['nodes']}


async def test_the_node_is_its_own_quorum(world: World) -> None:
    before = await quorum(world, '__cluster_metadata', 0)
    assert (before['error_code'], before['leader_id']) == (Code.NONE, 0)
    assert [(v['replica_id'], v['log_end_offset']) for v in before['current_voters']] == [(0, before['high_watermark'])]
    assert [node['node_id'] for node in before['nodes']] == [0]
    await world.made('another')
    assert (await quorum(world, '__cluster_metadata', 0))['high_watermark'] > before['high_watermark']


@pytest.mark.parametrize(('topic', 'index'), [('t', 0), ('__cluster_metadata', 1)])
async def test_other_partitions_have_no_quorum(world: World, topic: str, index: int) -> None:
    answer = await quorum(world, topic, index)
    assert (answer['error_code'], answer['current_voters'], answer['nodes']) == (UNKNOWN, [], [])
