"""Dead letters in a topic: written before a record is dead, owed while they cannot be, written again after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from tests.broker.groups_world import START, World, settled

from acklog.broker.api import Caller, Refused
from acklog.broker.broker import JOURNAL
from acklog.broker.catalog import topics
from acklog.broker.catalog.catalog import NewTopic
from acklog.broker.catalog.config_changes import change_broker, change_group, change_topic
from acklog.broker.dead_letters.records import batch
from acklog.broker.operations import Why
from acklog.core.kinds import Ack
from acklog.errors import Failed, Full, OutcomeUnknown
from acklog.log.seam import Durability
from acklog.wire.record_batch import NewRecord, Record, build, read_header, records, spans

CALLER = Caller('10.0.0.1')
ACCEPT, RELEASE, REJECT = (bytes([kind]) for kind in (Ack.ACCEPT, Ack.RELEASE, Ack.REJECT))
DLQ = 'dlq.orders'
NAME, COPY = 'errors.deadletterqueue.topic.name', 'errors.deadletterqueue.copy.record.enable'
ENABLE, PREFIX = 'errors.deadletterqueue.group.enable', 'errors.deadletterqueue.topic.name.prefix'
AUTO_CREATE = 'errors.deadletterqueue.auto.create.topics.enable'
EARLIEST = {'share.auto.offset.reset': 'earliest'}


@pytest.fixture(params=[0, 2], ids=['at once', 'slow logs'])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield await World.open()
    await World.close_all()


async def configure(world: World, configs: Mapping[str, str]) -> None:
    await change_group(world.broker, 'g', lambda _: {**EARLIEST, **configs}, only=False)


async def dead_letter_topic(world: World, partitions: int = 1, **configs: str) -> None:
    texts = {ENABLE: 'true', **{name.replace('_', '.'): text for name, text in configs.items()}}
    [made] = await topics.create_topics(world.broker, [NewTopic(DLQ, partitions, texts)])
    assert not isinstance(made, Refused)


async def taken(world: World, count: int, *extra: NewRecord) -> bytes:
    """The topic `orders`, of which member a holds all records."""
    topic = await world.topic('orders')
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    new = [NewRecord(b'k%d' % i, b'v%d' % i, [('trace', b'%d' % i)]) for i in range(count)]
    await partition.append(build([*new, *extra], timestamp=world.now), world.now, Durability.WRITTEN)
    number = count + len(extra)
    assert await world.take('a', 0, (topic, 0), count=number) == list(range(number))
    return topic


def delivery(world: World, topic: bytes) -> Any:
    return world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)


async def settle(world: World, topic: bytes, *acks: Any) -> None:
    delivery(world, topic).acknowledge('a', acks)
    await world.broker.deliveries.journal.written()


async def letters(world: World, index: int = 0, name: str = DLQ) -> list[Record]:
    await settled()
    await settled()
    partition = world.broker.partition(world.catalog.topics[name].id_bytes, index)
    assert partition is not None
    read = await partition.log.read(0, 1 << 30)
    return list(records(read.data))


async def offsets(world: World, index: int = 0) -> list[int]:
    """Which records the letters are about."""
    return [int(dict(each.headers)['__dlq.errors.offset'] or b'') for each in await letters(world, index)]


async def refusal(call: Any) -> str:
    with pytest.raises(Refused) as refused:
        await call
    return str(refused.value)


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
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ, COPY: 'true'})
    topic = await taken(world, 3)
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
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    await settle(world, topic, (0, 0, RELEASE, world.now + 9000))
    await world.broker.operations.waiting_discard(CALLER, 'g')
    [letter] = await letters(world)
    assert dict(letter.headers)['__dlq.errors.message'] == b'The record died: given up by an operator.'


async def test_a_redriven_record_that_dies_again_has_another_letter(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
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


# -- what cannot be written --------------------------------------------------------------------------------------------


async def test_what_cannot_be_written_stays_owed_and_says_why(world: World) -> None:
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 2)
    await settle(world, topic, (0, 0, REJECT, None), (1, 1, ACCEPT, None))
    await settled()
    missing = f'the topic {DLQ} does not exist, and {AUTO_CREATE} is off'
    assert world.fate(topic, 0) == 'dying'
    [status] = (await world.broker.operations.status(CALLER, 'g')).partitions
    assert (status.dying, status.dead, status.start, status.lag, status.dying_reason) == (1, 0, 0, 1, missing)
    why = f'1 record is dead when the dead letters are written, which cannot be done: {missing}'
    assert await world.broker.operations.why(CALLER, 'g') == [Why('orders', 0, 'dying', why)]
    await dead_letter_topic(world)  # at once, without waiting for the next try
    assert await offsets(world) == [0]
    assert world.fate(topic, 0) == 'dead'
    [status] = (await world.broker.operations.status(CALLER, 'g')).partitions
    assert (status.dying_reason, status.start, status.dead) == (None, 2, 1)


async def test_a_topic_that_takes_none_any_more_is_written_to_when_it_does_again(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    await change_topic(world.broker, DLQ, lambda _: {}, only=False)
    topic = await taken(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    assert ENABLE in world.broker.dead_letters.reason(delivery(world, topic))  # type: ignore[operator]
    assert await letters(world) == []
    await change_topic(world.broker, DLQ, lambda _: {ENABLE: 'true'}, only=False)
    assert await offsets(world) == [0]


async def test_a_write_that_fails_is_tried_again_later_and_later(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    log = world.catalog.topics[DLQ].log_name(0)
    world.directory.trouble.on_demand[log] = [Full, Full, Full]
    tries = []
    await settle(world, topic, (0, 0, REJECT, None))
    for _ in range(70):
        await settled()
        tries.append(len(world.directory.trouble.on_demand[log]))
        assert world.fate(topic, 0) == ('dying' if world.broker.dead_letters.reason(delivery(world, topic)) else 'dead')
        world.pass_time(100)
    assert tries[:1] + tries[11:12] + tries[31:32] == [2, 1, 0]  # at once, after 1 s, after 2 s more
    assert await offsets(world) == [0]  # after 4 s more
    assert world.fate(topic, 0) == 'dead'


async def test_the_letters_of_a_write_with_an_unknown_outcome_are_written_again(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    world.directory.trouble.on_demand[world.catalog.topics[DLQ].log_name(0)] = [OutcomeUnknown]
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    assert world.fate(topic, 0) == 'dying'
    world.pass_time(1000)
    assert set(await offsets(world)) == {0}
    assert world.fate(topic, 0) == 'dead'


# -- crashes and changes -----------------------------------------------------------------------------------------------


async def test_what_was_dying_at_a_crash_is_written_after_it(world: World) -> None:
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 3)
    await settle(world, topic, (1, 2, REJECT, None))
    await settled()
    await world.restart()
    await settled()
    assert [world.fate(topic, offset) for offset in (1, 2)] == ['dying', 'dying']
    await dead_letter_topic(world)
    assert await offsets(world) == [1, 2]
    await world.restart()
    assert await offsets(world) == [1, 2]  # once only: that they stand was remembered
    assert [world.fate(topic, offset) for offset in (1, 2)] == ['dead', 'dead']


@pytest.mark.parametrize('turns', range(0, 40, 3))
async def test_a_crash_at_any_moment_loses_no_letter(world: World, turns: int) -> None:
    """Each dead record has a letter, each letter its dead or dying record."""
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 5)
    await settle(world, topic, (0, 4, REJECT, None))
    for _ in range(turns):
        await asyncio.sleep(0)
    world.directory = world.directory.restarted()
    await world.restart()
    assert set(await offsets(world)) == set(range(5))
    assert [world.fate(topic, offset) for offset in range(5)] == ['dead'] * 5


async def test_no_letter_speaks_of_a_death_that_the_journal_lost(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    with pytest.raises(Failed):
        await settle(world, topic, (0, 0, REJECT, None))
    for _ in range(10):
        await settled()
    world.pass_time(1000)
    assert await letters(world) == []
    assert world.fate(topic, 0) == 'acquired a'
    await settle(world, topic, (0, 0, REJECT, None))
    assert await offsets(world) == [0]


async def test_letters_are_written_again_when_the_journal_lost_that_they_stand(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    for _ in range(10):
        await settled()
    world.pass_time(1000)
    assert await offsets(world) == [0, 0]
    assert world.fate(topic, 0) == 'dead'


async def test_records_that_the_log_loses_owe_no_letter_any_more(world: World) -> None:
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 2)
    await settle(world, topic, (0, 1, REJECT, None))
    await settled()
    await world.broker.partition(topic, 0).truncate_before(2)  # type: ignore[union-attr]
    assert world.broker.dead_letters.reason(delivery(world, topic)) is None
    await dead_letter_topic(world)
    assert await letters(world) == []


async def test_a_group_without_such_a_topic_any_more_buries_in_place(world: World) -> None:
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 2)
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    assert world.fate(topic, 0) == 'dying'
    await configure(world, {})
    await settled()
    assert world.fate(topic, 0) == 'dead'
    assert world.broker.dead_letters.reason(delivery(world, topic)) is None
    await settle(world, topic, (1, 1, REJECT, None))
    assert world.fate(topic, 1) == 'dead'


async def test_a_deleted_group_owes_nothing(world: World) -> None:
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    group = world.catalog.groups['g']
    await world.broker.deliveries.delete_group(group)
    await dead_letter_topic(world)
    world.pass_time(60_000)
    assert await letters(world) == []


async def test_a_seek_forgets_what_was_dying(world: World) -> None:
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    await settled()
    await delivery(world, topic).seek(1)
    await dead_letter_topic(world)
    assert await letters(world) == []
    assert (world.fate(topic, 0), world.broker.dead_letters.reason(delivery(world, topic))) == ('done', None)


async def test_a_stop_waits_for_what_is_being_written(world: World) -> None:
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ})
    topic = await taken(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    await world.stop_and_start()
    assert await offsets(world) == [0]
    assert world.fate(topic, 0) == 'dead'


def test_sizes() -> None:
    """A batch is never larger than it was taken for."""
    letters = [NewRecord(b'k' * size, b'v' * size, [('h', b'x' * size)]) for size in (1, 60, 70, 300) * 50]
    for most in (200, 500, 5000, 50_000, 1 << 20):
        data, count = batch(letters, START, most)
        assert (len(data) <= most, count >= 1) == (True, True)
        assert read_header(data).record_count == count
