"""The catalog: what is done is kept over kill -9 and power loss, what failed is not half there, changes do not mix."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from acklog.broker.api import Refused
from acklog.broker.catalog import log as catalog_log
from acklog.broker.catalog.catalog import Catalog, NewTopic, Topic
from acklog.broker.catalog.log import NAME
from acklog.broker.configs import Settings
from acklog.errors import Failed, Full, LogError, OutcomeUnknown
from acklog.log.memory import MemoryDirectory, Trouble
from acklog.wire.error_code import ErrorCode

NOW = 1_700_000_000_000


async def opened(directory: MemoryDirectory, settings: Settings | None = None) -> Catalog:
    return await Catalog.open(directory, lambda: NOW, settings)


async def test_everything_is_there_after_a_power_loss() -> None:
    directory = MemoryDirectory()
    catalog = await opened(directory)
    topic = await catalog.create_topic('orders', 3, {'retention.ms': '5'})
    group = await catalog.create_group('readers')
    await catalog.alter_group_configs('readers', lambda _: {'share.isolation.level': 'read_committed'})
    await catalog.alter_broker_configs('', lambda _: {'num.partitions': '7'})
    assert await catalog.add_partitions(topic, 5)

    again = await opened(directory.restarted(power_loss=True))
    found = again.topics['orders']
    assert (found.id, found.partitions, found.integer('retention.ms')) == (topic.id, 5, 5)
    assert again.topics_by_id[topic.id.bytes] is found
    assert again.groups['readers'].id == group.id
    assert again.groups['readers'].text('share.isolation.level') == 'read_committed'
    assert again.settings.integer('num.partitions') == 7
    assert (again.cluster_id, again.partitions) == (catalog.cluster_id, 5)


async def test_a_topic_made_again_has_another_id() -> None:
    catalog = await opened(MemoryDirectory())
    first = await catalog.create_topic('orders', 1)
    assert await catalog.delete_topic(first)
    assert not await catalog.delete_topic(first)
    second = await catalog.create_topic('orders', 1)
    assert second.id != first.id
    assert not await catalog.add_partitions(first, 9)
    assert not await catalog.alter_topic_configs(first, lambda _: {})


async def test_a_group_made_again_has_another_id_and_the_same_configs() -> None:
    directory = MemoryDirectory()
    catalog = await opened(directory)
    first = await catalog.create_group('readers')
    assert await catalog.create_group('readers') is first
    await catalog.alter_group_configs('readers', lambda _: {'share.delivery.count.limit': '9'})
    assert await catalog.delete_group(first)
    assert not await catalog.delete_group(first)
    catalog = await opened(directory.restarted())
    second = await catalog.create_group('readers')
    assert second.id > first.id
    assert second.integer('share.delivery.count.limit') == 9


async def test_of_two_at_once_one_creates_it() -> None:
    catalog = await opened(MemoryDirectory(Trouble(delay=5)))
    outcomes = await asyncio.gather(*(catalog.create_topics([NewTopic('orders', 1)]) for _ in range(4)))
    refused = [outcome for [outcome] in outcomes if isinstance(outcome, Refused)]
    assert [error.code for error in refused] == [ErrorCode.TOPIC_ALREADY_EXISTS] * 3


async def test_changes_of_one_resource_at_once_all_count() -> None:
    catalog = await opened(MemoryDirectory(Trouble(delay=5)))
    topic = await catalog.create_topic('orders', 1)

    async def add(name: str) -> None:
        await catalog.alter_topic_configs(topic, lambda configs: {**configs, name: '1'})

    await asyncio.gather(add('retention.ms'), add('retention.bytes'), add('segment.ms'))
    assert set(topic.configs) == {'retention.ms', 'retention.bytes', 'segment.ms'}


async def test_partitions_and_groups_are_bounded() -> None:
    catalog = await opened(MemoryDirectory(), Settings({'acklog.max.partitions': '5', 'acklog.max.groups': '1'}))
    topic = await catalog.create_topic('a', 3)
    [fits, refused] = await catalog.create_topics([NewTopic('b', 2), NewTopic('c', 1)])
    assert isinstance(fits, Topic)
    assert isinstance(refused, Refused) and refused.code is ErrorCode.POLICY_VIOLATION
    with pytest.raises(Refused, match=r'acklog\.max.partitions'):
        await catalog.add_partitions(topic, 4)
    await catalog.create_group('one')
    with pytest.raises(Refused, match=r'acklog\.max.groups'):
        await catalog.create_group('two')
    await catalog.alter_group_configs('x', lambda _: {'share.delivery.count.limit': '9'})
    with pytest.raises(Refused, match=r'acklog\.max.groups'):
        await catalog.alter_group_configs('y', lambda _: {'share.delivery.count.limit': '9'})


async def test_producer_ids_are_never_given_twice() -> None:
    directory = MemoryDirectory()
    given = []
    for _ in range(3):
        catalog = await opened(directory)
        given += await asyncio.gather(*(catalog.allocate_producer_ids() for _ in range(1500)))
        directory = directory.restarted(power_loss=True)
    assert len(set(given)) == 4500


async def test_notes_survive_kill_9_in_the_order_of_the_calls() -> None:
    directory = MemoryDirectory(Trouble(delay=4))
    catalog = await opened(directory)
    await asyncio.gather(*(catalog.record('member', 'a', number) for number in range(50)))
    await asyncio.gather(catalog.record('member', 'b', {'topics': ['x']}), catalog.record('session', 'a', [1]))
    await catalog.record('session', 'a', None)
    catalog = await opened(directory.restarted())
    assert catalog.notes('member') == {'a': 49, 'b': {'topics': ['x']}}
    assert catalog.notes('session') == catalog.notes('nothing') == {}


async def test_a_cancelled_caller_does_not_stop_its_change() -> None:
    catalog = await opened(MemoryDirectory(Trouble(delay=9, seed=1)))
    caller = asyncio.ensure_future(catalog.create_topic('orders', 1))
    await asyncio.sleep(0)
    caller.cancel()
    await catalog.create_topic('next', 1)
    assert set(catalog.topics) == {'orders', 'next'}


@pytest.mark.parametrize('error', [Full, Failed, OutcomeUnknown])
async def test_what_failed_is_not_there_and_does_not_turn_up_later(error: type[LogError]) -> None:
    directory = MemoryDirectory()
    catalog = await opened(directory)
    orders = await catalog.create_topic('orders', 1)
    for _ in range(6):
        directory.fail_next(error, NAME)
        with pytest.raises(error):
            await catalog.delete_topic(orders)
        assert set(catalog.topics) == {'orders'}
    await catalog.create_topic('next', 1)
    again = await opened(directory.restarted(power_loss=True))
    assert {topic.name: topic.id for topic in again.topics.values()} == {
        topic.name: topic.id for topic in catalog.topics.values()
    }
    assert set(again.topics) == {'orders', 'next'}


@pytest.mark.parametrize('error', [Full, Failed, OutcomeUnknown])
@pytest.mark.parametrize('before', [0, 1, 2])
async def test_notes_that_are_written_together_fail_together(error: type[LogError], before: int) -> None:
    """Whoever hears that a note is kept finds it after a restart, in whatever company it was written."""
    directory = MemoryDirectory()
    catalog = await opened(directory)
    trouble = directory.trouble
    trouble.on_demand[NAME] = [*[None] * before, error, error]
    rounds = [['a'], ['b', 'c', 'd'], ['e', 'f'], ['g', 'h', 'i']]
    kept = []
    for keys in rounds:
        calls = [catalog.record('note', key, 'x') for key in keys]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert len({type(result) for result in results}) == 1
        kept += [key for key, result in zip(keys, results, strict=True) if result is None]
    trouble.on_demand.clear()
    assert set(kept) == set(catalog.notes('note'))
    assert set(kept) <= set((await opened(directory.restarted())).notes('note'))


@pytest.mark.parametrize('error', [Full, Failed, OutcomeUnknown])
async def test_a_change_is_made_though_the_log_could_not_be_shortened(
    monkeypatch: pytest.MonkeyPatch, error: type[LogError]
) -> None:
    monkeypatch.setattr(catalog_log, 'SLACK_BYTES', 0)
    directory = MemoryDirectory()
    catalog = await opened(directory)
    for number in range(5):
        if number % 2 == 0:  # each failure is followed by one that goes well, with all that it has to put right
            directory.trouble.on_demand[NAME] = [None, error]
        await catalog.create_topic(f't{number}', 1)
        directory.trouble.on_demand.clear()
    assert sorted((await opened(directory.restarted())).topics) == ['t0', 't1', 't2', 't3', 't4']


async def test_the_log_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_log, 'SLACK_BYTES', 20_000)
    monkeypatch.setattr(catalog_log.CONFIG, 'segment_bytes', 4_000)
    directory = MemoryDirectory()
    catalog = await opened(directory)
    topic = await catalog.create_topic('orders', 1)
    log = await directory.open(NAME, catalog_log.CONFIG)
    for number in range(2_000):
        await catalog.alter_topic_configs(topic, lambda _, number=number: {'retention.ms': str(number)})
        assert log.size < 40_000
    catalog = await opened(directory.restarted())
    assert catalog.topics['orders'].integer('retention.ms') == 1_999
    assert catalog.topics['orders'].id == topic.id


async def test_a_snapshot_that_was_cut_off_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_log, 'BATCH_EVENTS', 2)
    directory = MemoryDirectory()
    catalog = await opened(directory)
    for name in 'abcdefgh':
        await catalog.create_topic(name, 1)
    whole = list(catalog._state.events())
    log = await directory.open(NAME, catalog_log.CONFIG)
    parts = [
        {'kind': 'snapshot', 'part': part, 'parts': 3, 'events': whole[part * 4 : part * 4 + 4]} for part in range(3)
    ]
    await catalog._log._append(parts[:2], catalog_log.Durability.SYNCED)
    assert set((await opened(directory.restarted())).topics) == set('abcdefgh')
    assert log.start == 0


# -- against a model, with failures and crashes ------------------------------------------------------------------------

Model = dict[str, dict[str, Any]]


def model_of(catalog: Catalog) -> Model:
    return {
        'topics': {topic.name: (topic.partitions, dict(topic.configs)) for topic in catalog.topics.values()},
        'groups': {group.name: group.id for group in catalog.groups.values()},
        'notes': dict(catalog.notes('member')),
    }


async def some_change(catalog: Catalog, chance: random.Random) -> tuple[Model, Any]:
    """What would be after a change, and the coroutine that makes it."""
    after = model_of(catalog)
    name = chance.choice('abcdef')
    topic, group = catalog.topics.get(name), catalog.groups.get(name)
    kind = chance.randrange(4)
    if kind == 0 and topic is None:
        after['topics'][name] = (2, {})
        return after, catalog.create_topic(name, 2)
    if kind == 1 and topic is not None:
        if chance.random() < 0.5:
            del after['topics'][name]
            return after, catalog.delete_topic(topic)
        count = topic.partitions + 1
        after['topics'][name] = (count, dict(topic.configs))
        return after, catalog.add_partitions(topic, count)
    if kind == 2:
        if group is None:
            after['groups'][name] = catalog._state.next_group_id
            return after, catalog.create_group(name)
        del after['groups'][name]
        return after, catalog.delete_group(group)
    value = chance.randrange(100)
    after['notes'][name] = value
    return after, catalog.record('member', name, value)


@pytest.mark.parametrize('seed', range(40))
async def test_crashes_at_any_point(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_log, 'SLACK_BYTES', 3_000)
    chance = random.Random(seed)
    trouble = Trouble(seed, delay=3)
    directory = MemoryDirectory(trouble)
    catalog = await opened(directory)
    trouble.failure_rate = 0.2
    possible = [model_of(catalog)]
    for _ in range(60):
        after, change = await some_change(catalog, chance)
        if chance.random() < 0.1:  # killed in the middle of it
            task = asyncio.ensure_future(change)
            for _ in range(chance.randrange(8)):
                await asyncio.sleep(0)
            directory = directory.restarted()
            await asyncio.gather(task, return_exceptions=True)
            possible.append(after)
        else:
            try:
                await change
            except LogError:
                possible.append(after)
                continue
            possible = [after]
            assert model_of(catalog) == after
            if chance.random() > 0.1:
                continue
            directory = directory.restarted()
        trouble.failure_rate = 0.0
        catalog = await opened(directory)
        trouble.failure_rate = 0.2
        assert model_of(catalog) in possible
        possible = [model_of(catalog)]
