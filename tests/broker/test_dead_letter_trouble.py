"""Dead letters that cannot be written are owed; a crash, a journal that fails and changes in between lose none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.broker.dead_letters_world import (
    ACCEPT,
    AUTO_CREATE,
    DLQ,
    ENABLE,
    NAME,
    REJECT,
    configure,
    dead_letter_topic,
    delivery,
    folded_anew,
    letters,
    offsets,
    settle,
    taken,
    with_letters,
)
from tests.broker.groups_world import World, settled

from acklog.broker.api import Caller
from acklog.broker.broker import JOURNAL
from acklog.broker.catalog.config_changes import change_topic
from acklog.broker.eager import turn
from acklog.broker.operations import Why
from acklog.errors import Failed, Full, OutcomeUnknown

CALLER = Caller('10.0.0.1')


@pytest.fixture(params=[0, 2], ids=['at once', 'slow logs'])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield await World.open()
    await World.close_all()


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
    topic = await with_letters(world, 1)
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
    topic = await with_letters(world, 1)
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
    topic = await with_letters(world, 5)
    await settle(world, topic, (0, 4, REJECT, None))
    for _ in range(turns):
        await asyncio.sleep(0)
    world.directory = world.directory.restarted()
    await world.restart()
    assert set(await offsets(world)) == set(range(5))
    assert [world.fate(topic, offset) for offset in range(5)] == ['dead'] * 5


async def test_no_letter_speaks_of_a_death_that_the_journal_lost(world: World) -> None:
    topic = await with_letters(world, 1)
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    with pytest.raises(Failed):
        await settle(world, topic, (0, 0, REJECT, None))
    await folded_anew(world)
    assert await letters(world) == []
    assert world.fate(topic, 0) == 'acquired a'
    await settle(world, topic, (0, 0, REJECT, None))
    assert await offsets(world) == [0]


async def test_no_letter_speaks_of_a_death_that_came_while_another_was_written_down(world: World) -> None:
    """And that the journal lost then."""
    topic = await with_letters(world, 2)
    world.directory.trouble.delay = 9
    journal = world.broker.deliveries.journal
    before = journal.log.visible_end
    delivery(world, topic).acknowledge('a', [(0, 0, REJECT, None)])
    while journal._writing is None:
        await turn()
    assert journal.log.visible_end == before
    world.directory.trouble.on_demand[JOURNAL] = [None, Failed]
    delivery(world, topic).acknowledge('a', [(1, 1, REJECT, None)])
    await folded_anew(world)
    assert set(await offsets(world)) == {0}
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['dead', 'acquired a']


async def test_letters_are_written_again_when_the_journal_lost_that_they_stand(world: World) -> None:
    topic = await with_letters(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    await folded_anew(world)
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


@pytest.mark.parametrize('turns', range(0, 16, 2))
async def test_a_seek_while_letters_are_being_made(world: World, turns: int) -> None:
    """No letter is about a record that has not died."""
    topic = await with_letters(world, 2, errors_deadletterqueue_copy_record_enable='true')
    await settle(world, topic, (0, 1, REJECT, None))
    for _ in range(turns):
        await asyncio.sleep(0)
    await delivery(world, topic).seek(2)
    messages = {dict(each.headers)['__dlq.errors.message'] for each in await letters(world)}
    assert messages <= {b'Offset rejected by client.'}


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
    topic = await with_letters(world, 1)
    await settle(world, topic, (0, 0, REJECT, None))
    await world.stop_and_start()
    assert await offsets(world) == [0]
    assert world.fate(topic, 0) == 'dead'
