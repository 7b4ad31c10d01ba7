"""Dead letters in a topic: what they say, where they go, which topics may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.broker.dead_letters_world import (
    ACCEPT,
    AUTO_CREATE,
    COPY,
    DLQ,
    ENABLE,
    NAME,
    PREFIX,
    REJECT,
    RELEASE,
    configure,
    dead_letter_topic,
    delivery,
    letters,
    offsets,
    refusal,
    settle,
    taken,
    with_letters,
)
from tests.broker.groups_world import START, World, settled

from acklog.broker.api import Caller
from acklog.broker.catalog.config_changes import change_broker, change_topic
from acklog.broker.dead_letters.records import batch, copies
from acklog.broker.eager import turn
from acklog.log.memory import MemoryDirectory
from acklog.log.seam import Durability, LogConfig
from acklog.wire.record_batch import NewRecord, Record, build, read_header, spans

CALLER = Caller('10.0.0.1')


@pytest.fixture(params=[0, 2], ids=['at once', 'slow logs'])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield await World.open()
    await World.close_all()


# -- what is written ---------------------------------------------------------------------------------------------------


async def test_a_dead_letter_says_where_the_record_is_and_why_it_died(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ, 'share.delivery.count.limit': '1'})
    topic = await taken(world, 4)
    world.pass_time(5)
    await settle(
        world, topic, (0, 0, REJECT, None, None, 'no such customer'), (1, 1, RELEASE, None), (2, 2, ACCEPT, None)
    )
    first, second = await letters(world)
    assert first == Record(
        0,
        START + 5,
        None,
        None,
        (
            ('__dlq.errors.topic', b'orders'),
            ('__dlq.errors.partition', b'0'),
            ('__dlq.errors.offset', b'0'),
            ('__dlq.errors.group', b'g'),
            ('__dlq.errors.delivery.count', b'1'),
            ('__dlq.errors.message', b'Offset rejected by client.'),
            ('acklog-words', b'no such customer'),
        ),
    )
    assert dict(second.headers)['__dlq.errors.message'] == b'Offset delivery count exceeded the threshold.'
    fates = [world.fate(topic, offset) for offset in range(4)]
    assert fates == ['dead', 'dead after 1 failure', 'done', 'acquired a']


async def test_a_copy_has_key_value_and_headers(world: World) -> None:
    topic = await with_letters(world, 3, errors_deadletterqueue_copy_record_enable='true')
    await settle(world, topic, (0, 0, REJECT, None), (2, 2, REJECT, None))
    found = [(each.key, each.value, each.headers[0]) for each in await letters(world)]
    assert found == [(b'k0', b'v0', ('trace', b'0')), (b'k2', b'v2', ('trace', b'2'))]
    assert await offsets(world) == [0, 2]


async def test_many_die_together_and_are_written_in_few_batches(world: World) -> None:
    await dead_letter_topic(world, max_message_bytes='100000')
    await configure(world, {NAME: DLQ, COPY: 'true'})
    topic = await taken(world, 2500)
    await settle(world, topic, (0, 2499, REJECT, None))
    for _ in range(20):
        await settled()
    assert await offsets(world) == list(range(2500))
    log = world.broker.partition(world.catalog.topics[DLQ].id_bytes, 0).log  # type: ignore[union-attr]
    read = await log.read(0, 1 << 30)
    sizes = [span.size for span in spans(read.data)]
    assert len(sizes) == 10
    assert max(sizes) <= 100_000
    assert delivery(world, topic).state.status.counts().dead == 2500


async def test_what_is_too_large_for_the_topic_comes_without_a_copy(world: World) -> None:
    await dead_letter_topic(world, max_message_bytes='1000')
    await configure(world, {NAME: DLQ, COPY: 'true'})
    topic = await taken(world, 1, NewRecord(b'k', b'x' * 2000), NewRecord(b'k', b'small'))
    await settle(world, topic, (0, 2, REJECT, None))
    assert [each.value for each in await letters(world)] == [b'v0', None, b'small']
    assert await offsets(world) == [0, 1, 2]
    assert world.fate(topic, 1) == 'dead'


async def test_letters_go_to_the_partition_of_the_same_number(world: World) -> None:
    await dead_letter_topic(world, partitions=2)
    await configure(world, {NAME: DLQ})
    topic = await world.topic('orders', partitions=4)
    await world.publish(topic, 1, index=3)
    assert await world.take('a', 0, (topic, 3)) == [0]
    found = world.broker.deliveries.find(world.catalog.groups['g'], topic, 3)
    assert found is not None
    found.acknowledge('a', [(0, 0, REJECT, None)])
    assert (await offsets(world, 0), await offsets(world, 1)) == ([], [0])


async def test_given_up_by_an_operator_is_a_death_too(world: World) -> None:
    topic = await with_letters(world, 1)
    await settle(world, topic, (0, 0, RELEASE, world.now + 9000))
    await world.broker.operations.waiting_discard(CALLER, 'g')
    [letter] = await letters(world)
    assert dict(letter.headers)['__dlq.errors.message'] == b'The record died: given up by an operator.'


async def test_a_redriven_record_that_dies_again_has_another_letter(world: World) -> None:
    topic = await with_letters(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    assert await offsets(world) == [0]
    assert (await world.broker.operations.redrive(CALLER, 'g')).records == 1
    assert await world.take('a', 1, (topic, 0)) == [0]
    await settle(world, topic, (0, 0, REJECT, None))
    assert await offsets(world) == [0, 0]


# -- which topic may be ------------------------------------------------------------------------------------------------


async def test_which_topics_are_refused(world: World) -> None:
    await world.topic('dlq.plain')
    assert 'ENABLE is not true' in (await refusal(configure(world, {NAME: 'dlq.plain'}))).replace(ENABLE, 'ENABLE')
    assert "does not begin with 'dlq.'" in await refusal(configure(world, {NAME: 'orders'}))
    assert "a topic's name has 1 to 249 of the characters" in await refusal(configure(world, {NAME: 'dlq.a b'}))
    await change_broker(world.broker, '', lambda _: {PREFIX: ''}, only=False)
    await configure(world, {NAME: 'failures'})


async def test_a_group_whose_topic_became_wrong_can_still_be_configured(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    await change_topic(world.broker, DLQ, lambda _: {}, only=False)
    await configure(world, {NAME: DLQ, COPY: 'true'})


async def test_a_missing_topic_is_created_where_that_is_allowed(world: World) -> None:
    await change_broker(world.broker, '', lambda _: {AUTO_CREATE: 'true', 'num.partitions': '3'}, only=False)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    assert DLQ not in world.catalog.topics  # not before it is needed
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    made = world.catalog.topics[DLQ]
    assert (made.partitions, made.configs) == (3, {ENABLE: 'true'})
    assert await offsets(world) == [0]


async def test_a_topic_is_not_its_own_dead_letter_topic(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = world.catalog.topics[DLQ].id_bytes
    await world.publish(topic, 1)
    assert await world.take('a', 0, (topic, 0)) == [0]
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    assert world.fate(topic, 0) == 'dead'
    assert len((await world.broker.partition(topic, 0).log.read(0, 1 << 20)).data) > 0  # type: ignore[union-attr]
    assert world.broker.partition(topic, 0).log.end == 1  # type: ignore[union-attr]


# -- by itself ---------------------------------------------------------------------------------------------------------


def test_sizes() -> None:
    """A batch is never larger than it was taken for."""
    letters = [NewRecord(b'k' * size, b'v' * size, [('h', b'x' * size)]) for size in (1, 60, 70, 300) * 50]
    for most in (200, 500, 5000, 50_000, 1 << 20):
        data, count = batch(letters, START, most)
        assert (len(data) <= most, count >= 1) == (True, True)
        assert read_header(data).record_count == count


async def test_a_small_batch_of_many_records_holds_up_nobody() -> None:
    """Others have their turn while one of its records is looked for."""
    log, count = await MemoryDirectory().open('log', LogConfig()), 50_000
    await log.append(build([b'v'] * count, timestamp=START, compression='gzip'), START, Durability.WRITTEN)
    turns, looking = 0, asyncio.ensure_future(copies(log, [count - 1], 1 << 20))
    while not looking.done():
        turns += 1
        await turn()
    assert await looking == ({count - 1: (None, b'v', ())}, 1)
    assert turns > 20
