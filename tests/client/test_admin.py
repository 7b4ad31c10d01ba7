"""Administration against a real server."""

from __future__ import annotations

import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import publish, take

from acklog.client import EARLIEST, LATEST, AlreadyExists, Client, NotFound, PartitionLag, Refused

pytestmark = pytest.mark.system


async def test_a_topic_from_creation_to_deletion(client: Client, name: str) -> None:
    made = await client.admin.create_topic(name, partitions=3, configs={'retention.ms': '3600000'})
    assert (made.name, made.partitions, made.internal) == (name, 3, False)
    assert made in await client.admin.list_topics()
    described = await client.admin.describe_topic(name)
    assert described.id == made.id
    assert [(p.index, p.start, p.end) for p in described.partitions] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert described.configs == {'retention.ms': '3600000'}
    with pytest.raises(AlreadyExists, match=f"topic '{name}'"):
        await client.admin.create_topic(name)
    await client.admin.delete_topic(name)
    assert name not in [topic.name for topic in await client.admin.list_topics()]
    with pytest.raises(NotFound):
        await client.admin.delete_topic(name)


async def test_asking_for_a_topic_does_not_create_it(client: Client, name: str) -> None:
    assert not await client.topic_exists(name)
    with pytest.raises(NotFound, match=f"topic '{name}'"):
        await client.admin.describe_topic(name)
    assert not await client.topic_exists(name)


@pytest.mark.parametrize('bad', ['', 'a/b', '..', 'x' * 250])
async def test_names_that_are_not_allowed(client: Client, bad: str) -> None:
    with pytest.raises(Refused, match='INVALID_TOPIC_EXCEPTION'):
        await client.admin.create_topic(bad)


async def test_offsets_by_time(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    async with client.producer() as producer:
        for timestamp in (1_000, 2_000, 3_000):
            await producer.publish(name, b'x', timestamp=timestamp)
    offsets = [(await client.admin.offsets(name, at))[0] for at in (EARLIEST, 0, 1_001, 3_000, 3_001, LATEST)]
    assert offsets == [0, 0, 1, 2, -1, 3]


async def test_configs_of_a_topic_are_set_and_unset(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await client.admin.alter_topic_configs(name, {'retention.ms': '1000', 'max.message.bytes': '5000'})
    await client.admin.alter_topic_configs(name, {'max.message.bytes': None})
    configs = {config.name: config for config in await client.admin.topic_configs(name)}
    assert (configs['retention.ms'].value, configs['retention.ms'].is_set) == ('1000', True)
    assert not configs['max.message.bytes'].is_set
    assert configs['max.message.bytes'].value != '5000'


async def test_a_config_that_is_not_allowed_changes_nothing(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    with pytest.raises(Refused, match='INVALID_CONFIG'):
        await client.admin.alter_topic_configs(name, {'retention.ms': 'soon', 'max.message.bytes': '5000'})
    assert (await client.admin.describe_topic(name)).configs == {}


async def test_configs_of_a_group_that_does_not_exist_yet(client: Client, name: str) -> None:
    await client.admin.alter_group_configs(name, {'share.record.lock.duration.ms': '20000'})
    configs = {config.name: config for config in await client.admin.group_configs(name)}
    assert (configs['share.record.lock.duration.ms'].value, configs['share.record.lock.duration.ms'].is_set) == (
        '20000',
        True,
    )
    assert configs['share.auto.offset.reset'].value == 'latest'


async def test_a_group_from_its_first_member_to_its_deletion(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    with pytest.raises(NotFound):
        await client.admin.describe_group('nobody-' + name)
    await publish(client, name, b'a', b'b', b'c')
    async with client.subscribe(name, [name]) as subscription:
        records = await take(subscription, 3)
        subscription.accept(records[0])
        await subscription.flush()
        described = await client.admin.describe_group(name)
        assert described.state == 'Stable'
        assert [(m.id, m.topics, m.assignment) for m in described.members] == [
            (subscription.member_id, [name], {name: [0]})
        ]
        assert await client.admin.group_exists(name)
        with pytest.raises(Refused, match='NON_EMPTY_GROUP'):
            await client.admin.delete_group(name)
    assert await client.admin.lag(name) == [PartitionLag(name, 0, 1, 2, True)]
    assert name in [group.id for group in await client.admin.list_groups(kinds=['share'])]
    await client.admin.delete_group(name)
    assert not await client.admin.group_exists(name)
    with pytest.raises(NotFound):
        await client.admin.delete_group(name)
