"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources: requests and answers as bytes. Codes are
those of Apache Kafka 4.4 unless said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.admin_world import BROKER, GROUP, TOPIC, World

from acklog.broker.apis.describe_configs import MOST_AT_ONCE
from acklog.broker.configs import BROKER as BROKER_TABLE
from acklog.broker.configs import GROUP as GROUP_TABLE
from acklog.broker.configs import TOPIC as TOPIC_TABLE
from acklog.log.memory import MemoryDirectory, Trouble
from acklog.wire.error_code import ErrorCode as Code

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open(MemoryDirectory(Trouble(delay=2)), {'log.retention.bytes': '9000'})
    await world.made('orders')
    yield world
    await world.close()


async def described(
    world: World, version: int, kind: int, name: str, keys: Any = None, **options: Any
) -> dict[str, Any]:
    resource = {'resource_type': kind, 'resource_name': name, 'configuration_keys': keys}
    answer = await world.call('describe_configs', version, resources=[resource], **options)
    return dict(answer['results'][0])


# -- DescribeConfigs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('version', range(1, 5))
async def test_describe_in_every_version(world: World, version: int) -> None:
    for kind, name, table in ((TOPIC, 'orders', TOPIC_TABLE), (GROUP, 'any', GROUP_TABLE), (BROKER, '0', BROKER_TABLE)):
        result = await described(world, version, kind, name)
        assert (result['error_code'], result['resource_name'], result['resource_type']) == (0, name, kind)
        listeners = {'listeners', 'advertised.listeners'} if kind == BROKER else set()
        assert {entry['name'] for entry in result['configs']} == {*table, *listeners}
        assert not any(entry['is_sensitive'] or entry['synonyms'] for entry in result['configs'])


async def test_what_is_asked_again_and_again_is_told_once(world: World) -> None:
    resource = {'resource_type': TOPIC, 'resource_name': 'orders', 'configuration_keys': None}
    one = resource | {'configuration_keys': ['retention.ms']}
    answer = await world.call('describe_configs', 4, resources=[resource, one] * 1000)
    assert [len(result['configs']) for result in answer['results']] == [len(TOPIC_TABLE), 1]


async def test_no_number_of_resources_is_described(world: World) -> None:
    resources = [
        {'resource_type': GROUP, 'resource_name': f'{n}', 'configuration_keys': ['share.auto.offset.reset']}
        for n in range(MOST_AT_ONCE + 2)
    ]
    answer = await world.call('describe_configs', 4, resources=resources)
    codes = [result['error_code'] for result in answer['results']]
    assert codes == [Code.NONE] * MOST_AT_ONCE + [Code.INVALID_REQUEST] * 2


async def test_where_a_value_comes_from(world: World) -> None:
    assert await world.alter(TOPIC, 'orders', ('retention.bytes', '7000')) == (0, None)
    assert await world.alter(BROKER, '', ('log.retention.bytes', '8000')) == (0, None)
    result = await described(world, 4, TOPIC, 'orders', ['retention.bytes'], include_synonyms=True)
    assert result['configs'] == [
        {
            'name': 'retention.bytes',
            'value': '7000',
            'read_only': False,
            'config_source': 1,
            'is_sensitive': False,
            'synonyms': [
                {'name': 'retention.bytes', 'value': '7000', 'source': 1},
                {'name': 'log.retention.bytes', 'value': '8000', 'source': 3},
                {'name': 'log.retention.bytes', 'value': '9000', 'source': 4},
                {'name': 'log.retention.bytes', 'value': '-1', 'source': 5},
            ],
            'config_type': 5,
            'documentation': None,
        }
    ]


async def test_types_and_words(world: World) -> None:
    keys = ['cleanup.policy', 'retention.ms', 'max.message.bytes', 'preallocate', 'compression.type']
    result = await described(world, 4, TOPIC, 'orders', keys, include_documentation=True)
    assert {entry['name']: entry['config_type'] for entry in result['configs']} == {
        'cleanup.policy': 7,
        'retention.ms': 5,
        'max.message.bytes': 3,
        'preallocate': 1,
        'compression.type': 2,
    }
    assert all(entry['documentation'] for entry in result['configs'])


async def test_static_configs_are_read_only(world: World) -> None:
    result = await described(world, 4, BROKER, '0', ['node.id', 'num.partitions'])
    assert {entry['name']: entry['read_only'] for entry in result['configs']} == {
        'node.id': True,
        'num.partitions': False,
    }


async def test_where_tools_look_for_the_address(world: World) -> None:
    found = await world.configs(BROKER, '0', 'advertised.listeners')
    assert found == {'advertised.listeners': ('PLAINTEXT://127.0.0.1:9092', 4)}


async def test_the_resource_of_all_nodes_shows_what_was_set_for_all(world: World) -> None:
    assert await world.configs(BROKER, '') == {}
    await world.alter(BROKER, '', ('num.partitions', '8'))
    assert await world.configs(BROKER, '') == {'num.partitions': ('8', 3)}
    await world.alter(BROKER, '0', ('num.partitions', '9'))
    assert await world.configs(BROKER, '0', 'num.partitions') == {'num.partitions': ('9', 2)}


@pytest.mark.parametrize(
    ('kind', 'name', 'code', 'words'),
    [
        (TOPIC, 'nope', Code.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic 'nope'"),
        (TOPIC, 'a b', Code.INVALID_TOPIC_EXCEPTION, "a topic's name has 1 to 249 of the characters"),
        (BROKER, '5', Code.INVALID_REQUEST, 'Unexpected broker id, expected 0 or empty string, but received 5'),
        (BROKER, 'x', Code.INVALID_REQUEST, 'Broker id must be an integer, but it is: x'),
        (GROUP, '', Code.INVALID_REQUEST, "a group's name has 1 to 255 characters"),
        (99, 'x', Code.INVALID_REQUEST, 'Unsupported resource type: 99'),
    ],
)
async def test_what_cannot_be_described(world: World, kind: int, name: str, code: Code, words: str) -> None:
    result = await described(world, 4, kind, name)
    assert (result['error_code'], result['configs']) == (code, [])
    assert words in result['error_message']


# -- IncrementalAlterConfigs -------------------------------------------------------------------------------------------


async def test_set_and_delete(world: World) -> None:
    assert await world.alter(TOPIC, 'orders', ('retention.ms', '5'), ('segment.ms', ' 6 ')) == (0, None)
    assert await world.configs(TOPIC, 'orders', 'retention.ms', 'segment.ms') == {
        'retention.ms': ('5', 1),
        'segment.ms': ('6', 1),
    }
    operations = (('retention.ms', None, DELETE), ('unknown', None, DELETE))
    assert await world.alter(TOPIC, 'orders', *operations) == (0, None)
    assert await world.configs(TOPIC, 'orders', 'retention.ms') == {'retention.ms': ('604800000', 5)}


async def test_lists(world: World) -> None:
    assert await world.alter(TOPIC, 'orders', ('cleanup.policy', 'delete', SUBTRACT)) == (0, None)
    assert await world.configs(TOPIC, 'orders', 'cleanup.policy') == {'cleanup.policy': ('', 1)}
    assert await world.alter(TOPIC, 'orders', ('cleanup.policy', 'delete', APPEND)) == (0, None)
    assert await world.configs(TOPIC, 'orders', 'cleanup.policy') == {'cleanup.policy': ('delete', 1)}
    code, words = await world.alter(TOPIC, 'orders', ('cleanup.policy', 'compact', APPEND))
    assert code == Code.INVALID_CONFIG
    assert 'compact is not supported by acklog yet' in (words or '')
    appended = await world.alter(TOPIC, 'orders', ('retention.ms', '5', APPEND))
    assert appended == (Code.INVALID_CONFIG, "Can't APPEND to key retention.ms because its type is not LIST.")


async def test_a_log_follows_its_configs() -> None:
    world = await World.open()
    await world.made('orders')
    partition = world.partition('orders')
    told = []
    partition.log.configure = told.append  # type: ignore[method-assign]
    await world.alter(TOPIC, 'orders', ('retention.ms', '5'))
    await world.alter(BROKER, '0', ('log.segment.bytes', '2000000'))
    assert [(config.retention_ms, config.segment_bytes) for config in told] == [(5, 1 << 30), (5, 2_000_000)]


async def test_a_group_can_be_configured_before_it_exists(world: World) -> None:
    assert await world.alter(GROUP, 'readers', ('share.record.lock.duration.ms', '1000')) == (0, None)
    assert 'readers' not in world.broker.catalog.groups
    group = await world.broker.catalog.create_group('readers')
    assert group.integer('share.record.lock.duration.ms') == 1000
    await world.alter(GROUP, 'readers', ('share.record.lock.duration.ms', '2000'))
    assert group.integer('share.record.lock.duration.ms') == 2000
    assert world.broker.lock_ms('readers') == 2000


async def test_what_the_broker_gives_groups_must_go_with_what_they_have(world: World) -> None:
    endless = (('share.delivery.count.limit', '-1'), ('acklog.retry.backoff', '1s'))
    assert await world.alter(GROUP, 'g', *endless) == (0, None)
    assert (await world.alter(GROUP, 'g', ('acklog.retry.backoff', 'none')))[0] == Code.INVALID_CONFIG
    assert await world.alter(BROKER, '', ('acklog.retry.backoff', 'fixed:1s')) == (0, None)
    assert await world.alter(GROUP, 'g', ('acklog.retry.backoff', None, DELETE)) == (0, None)
    code, words = await world.alter(BROKER, '', ('acklog.retry.backoff', 'none'))
    assert (code, words.endswith('in group g')) == (Code.INVALID_REQUEST, True)


REFUSED = [
    (TOPIC, 'orders', [('retention.ms', '-2')], Code.INVALID_CONFIG, 'Invalid value -2 for configuration retention.ms'),
    (TOPIC, 'orders', [('nope', '1')], Code.INVALID_CONFIG, 'Unknown topic config name: nope'),
    (TOPIC, 'orders', [('retention.ms', None)], Code.INVALID_REQUEST, 'Null value not supported for : retention.ms'),
    (TOPIC, 'orders', [('retention.ms', '1')] * 2, Code.INVALID_REQUEST, 'Error due to duplicate config keys'),
    (TOPIC, 'orders', [('retention.ms', '1', 9)], Code.INVALID_REQUEST, 'Unknown config operation 9'),
    (TOPIC, 'orders', [('retention.ms', '1'), ('segment.ms', '0')], Code.INVALID_CONFIG, 'Invalid value 0'),
    (TOPIC, 'nope', [('retention.ms', '1')], Code.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic 'nope'"),
    (TOPIC, '', [('retention.ms', '1')], Code.INVALID_REQUEST, 'Default topic resources are not allowed.'),
    (GROUP, '', [('share.isolation.level', 'x')], Code.INVALID_REQUEST, "a group's name has 1 to 255 characters"),
    (GROUP, 'g' * 256, [('share.isolation.level', 'x')], Code.INVALID_REQUEST, "a group's name has 1 to 255"),
    (GROUP, 'g', [('share.isolation.level', 'x')], Code.INVALID_CONFIG, 'Invalid value x for configuration'),
    (GROUP, 'g', [('foo', 'bar')], Code.INVALID_CONFIG, 'Unknown group config name: foo'),
    (GROUP, 'g', [('acklog.retry.backoff', 'x')], Code.INVALID_CONFIG, "'fixed:10s'"),
    (GROUP, 'g', [('errors.deadletterqueue.topic.name', 'd')], Code.INVALID_CONFIG, "does not begin with 'dlq.'"),
    (GROUP, 'g', [('errors.deadletterqueue.topic.name', '__d')], Code.INVALID_CONFIG, "the server's own topics"),
    (
        GROUP,
        'g',
        [('share.heartbeat.interval.ms', '6000'), ('share.session.timeout.ms', '6000')],
        Code.INVALID_CONFIG,
        'share.session.timeout.ms must be greater than share.heartbeat.interval.ms',
    ),
    (
        GROUP,
        'g',
        [('share.delivery.count.limit', '-1')],
        Code.INVALID_CONFIG,
        'share.delivery.count.limit may be -1 (without limit) only where acklog.retry.backoff is not none',
    ),
    (GROUP, 'g', [('acklog.dead.pause.threshold', '0%/10')], Code.INVALID_CONFIG, "'50%/100'"),
    (BROKER, '', [('group.share.delivery.count.limit', '-1')], Code.INVALID_REQUEST, 'may be -1 (without limit) only'),
    (BROKER, '0', [('node.id', '1')], Code.INVALID_REQUEST, 'Cannot update these configs dynamically: [node.id]'),
    (BROKER, '0', [('max.connections', '0')], Code.INVALID_REQUEST, 'Invalid value 0 for configuration'),
    (BROKER, '', [('foo', 'bar')], Code.INVALID_CONFIG, 'Unknown broker config name: foo'),  # Kafka lets it be
    (BROKER, '0', [('group.share.session.timeout.ms', '2000')], Code.INVALID_REQUEST, 'must be greater than'),
    (
        BROKER,
        '7',
        [('log.retention.ms', '1')],
        Code.INVALID_REQUEST,
        'Unexpected broker id, expected 0, but received 7',
    ),
    (BROKER, 'x', [('log.retention.ms', '1')], Code.INVALID_REQUEST, 'Node id must be an integer, but it is: x'),
    (8, '0', [('root', 'INFO')], Code.INVALID_REQUEST, 'Unknown resource type 8'),
    (99, 'x', [('a', 'b')], Code.INVALID_REQUEST, 'Unknown resource type 99'),
]


@pytest.mark.parametrize('validate_only', [True, False])
async def test_what_is_refused_changes_nothing(world: World, validate_only: bool) -> None:
    for kind, name, operations, code, words in REFUSED:
        answer = await world.alter(kind, name, *operations, validate_only=validate_only)
        assert answer[0] == code, (name, operations, answer)
        assert words in (answer[1] or '')
    catalog = world.broker.catalog
    assert (catalog.topics['orders'].configs, catalog.group_configs, catalog.broker_configs) == ({}, {}, {})


async def test_validate_only_changes_nothing(world: World) -> None:
    for kind, name, key, value in (
        (TOPIC, 'orders', 'retention.ms', '5'),
        (GROUP, 'g', 'share.isolation.level', 'read_committed'),
        (BROKER, '', 'num.partitions', '5'),
    ):
        assert await world.alter(kind, name, (key, value), validate_only=True) == (0, None)
    catalog = world.broker.catalog
    assert (catalog.topics['orders'].configs, catalog.group_configs, catalog.broker_configs) == ({}, {}, {})


async def test_resources_are_judged_each_by_itself(world: World) -> None:
    def resource(name: str, value: str) -> dict[str, Any]:
        configs = [{'name': 'retention.ms', 'value': value, 'config_operation': SET}]
        return {'resource_type': TOPIC, 'resource_name': name, 'configs': configs}

    asked = [resource('orders', '5'), resource('nope', '5')]
    answer = await world.call('incremental_alter_configs', 0, resources=asked)
    assert [one['error_code'] for one in answer['responses']] == [0, Code.UNKNOWN_TOPIC_OR_PARTITION]
    answer = await world.call('incremental_alter_configs', 1, resources=[resource('orders', '6')] * 2)
    assert [(one['error_code'], one['error_message']) for one in answer['responses']] == [
        (Code.INVALID_REQUEST, 'Each resource must appear at most once.')
    ] * 2
    assert world.broker.catalog.topics['orders'].integer('retention.ms') == 5


async def test_configs_survive_a_restart() -> None:
    directory = MemoryDirectory()
    world = await World.open(directory)
    await world.made('orders')
    await world.alter(TOPIC, 'orders', ('retention.ms', '5'))
    await world.alter(BROKER, '', ('num.partitions', '2'))
    world = await World.open(directory.restarted(power_loss=True))
    assert await world.configs(TOPIC, 'orders', 'retention.ms') == {'retention.ms': ('5', 1)}
    assert world.broker.settings.integer('num.partitions') == 2


# -- AlterConfigs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('version', range(3))
async def test_alter_replaces_everything(world: World, version: int) -> None:
    async def replaced(name: str, configs: dict[str, str | None], **options: Any) -> int:
        entries = [{'name': key, 'value': value} for key, value in configs.items()]
        resource = {'resource_type': TOPIC, 'resource_name': name, 'configs': entries}
        answer = await world.call('alter_configs', version, resources=[resource], **options)
        return int(answer['responses'][0]['error_code'])

    orders = world.broker.catalog.topics['orders']
    assert await replaced('orders', {'retention.ms': '5', 'segment.ms': '6'}) == 0
    assert await replaced('orders', {'segment.ms': '7'}, validate_only=True) == 0
    assert orders.configs == {'retention.ms': '5', 'segment.ms': '6'}
    assert await replaced('orders', {'segment.ms': '7'}) == 0
    assert orders.configs == {'segment.ms': '7'}
    assert await replaced('orders', {'segment.ms': None}) == Code.INVALID_REQUEST
    assert await replaced('orders', {'nope': '1'}) == Code.INVALID_CONFIG
    assert await replaced('nope', {'segment.ms': '7'}) == Code.UNKNOWN_TOPIC_OR_PARTITION


# -- ListConfigResources -----------------------------------------------------------------------------------------------


async def test_what_has_configs(world: World) -> None:
    await world.alter(GROUP, 'readers', ('share.isolation.level', 'read_committed'))

    async def listed(version: int, *types: int) -> tuple[int, list[tuple[int, str]]]:
        answer = await world.call('list_config_resources', version, resource_types=types)
        return answer['error_code'], [
            (one['resource_type'], one['resource_name']) for one in answer['config_resources']
        ]

    assert await listed(0) == (0, [])
    assert await listed(1) == (0, [(TOPIC, 'orders'), (BROKER, '0'), (GROUP, 'readers')])
    assert await listed(1, GROUP, BROKER) == (0, [(BROKER, '0'), (GROUP, 'readers')])
    assert await listed(1, 99) == (Code.UNSUPPORTED_VERSION, [])
