"""Topics and groups that a subscriber names: what can never be there is refused at once, and not waited for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import publish, take

import acklog
from acklog.client import Client, Refused
from acklog.wire.error_code import ErrorCode as Code

TOPIC = "a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"
GROUP = "a group's name has 1 to 255 characters"
NO_NAMES = [  # (group, topics, what is said, its code)
    *[
        ('g', [name], f'topic {name!r}: {TOPIC}', Code.INVALID_TOPIC_EXCEPTION)
        for name in ('', 'a b', 'ä', '..', 'a/b')
    ],
    ('g', ['orders', 'x' * 250], f'topic {"x" * 250!r}: {TOPIC}', Code.INVALID_TOPIC_EXCEPTION),
    ('', ['orders'], f"group '': {GROUP}", Code.INVALID_GROUP_ID),
    ('g' * 256, ['orders'], f'group {"g" * 256!r}: {GROUP}', Code.INVALID_GROUP_ID),
]


@pytest.mark.parametrize(('group', 'topics', 'words', 'code'), NO_NAMES, ids=range(len(NO_NAMES)))
async def test_names_that_can_never_be_are_not_waited_for(
    group: str, topics: list[str], words: str, code: Code
) -> None:
    client = Client('127.0.0.1:1')  # which is not asked
    for subscribe in (client.subscribe, lambda *names: acklog.worker(*names)(print)):
        with pytest.raises(Refused) as refused:
            subscribe(group, topics)
        assert (str(refused.value), refused.value.code) == (f'{words} ({code.name})', code)


@pytest.mark.parametrize(('group', 'topics'), [('g', [b'orders']), ('g', [None]), (None, ['orders']), (7, 'orders')])
async def test_names_that_are_no_text(group: Any, topics: Any) -> None:
    with pytest.raises(TypeError, match=r'the name of a (topic|group) is a str, not'):
        Client('127.0.0.1:1').subscribe(group, topics)


@pytest.mark.system
async def test_names_that_the_server_keeps_for_itself(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    with pytest.raises(Refused, match="topic '__x': names that begin with '__' are kept for the server's own"):
        async with client.subscribe(f'{name}-g', [name, '__x'], begin='earliest'):
            raise AssertionError('it has joined')
    assert not await client.admin.group_exists(f'{name}-g')
    assert not any(config.is_set for config in await client.admin.group_configs(f'{name}-g'))


@pytest.mark.system
async def test_a_topic_that_does_not_exist_yet_is_waited_for_and_that_is_said(
    client: Client, topic: MakeTopic, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    there = await topic()
    async with client.subscribe(name, [there, f'{name}-later'], begin='earliest') as subscription:
        said = [record.getMessage() for record in caplog.records if record.name == 'acklog.client']
        assert said == [f"group '{name}': topic '{name}-later' does not exist yet: waiting for it"]
        await client.admin.create_topic(f'{name}-later', partitions=1)
        await publish(client, f'{name}-later', b'a')
        assert [record.value for record in await take(subscription, 1)] == [b'a']
