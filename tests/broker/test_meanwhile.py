"""What happens while a call waits for a log is looked at again afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.broker.dead_letters_world import DLQ, REJECT, with_letters
from tests.broker.groups_world import START, World, delivery_of, settled

from acklog.broker.api import Refused
from acklog.broker.broker import JOURNAL
from acklog.broker.catalog.config_changes import change_group
from acklog.broker.catalog.topics import delete_topic
from acklog.broker.deliveries.delivery import ShareDelivery
from acklog.broker.eager import AT_A_TIME, turn
from acklog.broker.journal import format as journal_format
from acklog.broker.journal import replay, shortening
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.broker.operations import Selection, Target
from acklog.errors import Failed
from acklog.log.seam import Durability
from acklog.log.trouble import Trouble
from acklog.wire.record_batch import build

AN_HOUR_AGO = {'share.auto.offset.reset': 'by_duration:PT1H'}
HOUR = 3_600_000
DELAY = 9  # turns of the loop, at most, that a log takes
MANY = 2 * AT_A_TIME  # partitions: they are moved in several turns


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    await World.close_all()


async def begun(world: World, records: int = 4, **configs: str) -> bytes:
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest', **configs})
    await world.groups.ensure('g')
    await world.publish(topic, records)
    return topic


async def test_two_who_begin_on_a_partition_begin_together(world: World) -> None:
    topic = await begun(world, **AN_HOUR_AGO)
    world.directory.trouble.delay = DELAY
    group, deliveries = world.catalog.groups['g'], world.broker.deliveries
    found = await asyncio.gather(*(deliveries.get(group, topic, 0) for _ in range(3)))
    assert found == [delivery_of(world, topic)] * 3


@pytest.mark.parametrize('turns', range(0, 24, 2))
async def test_a_group_that_is_deleted_while_it_begins(world: World, turns: int) -> None:
    topic = await begun(world, **AN_HOUR_AGO)
    group = world.catalog.groups['g']
    world.directory.trouble.delay = DELAY
    deleting = asyncio.ensure_future(world.groups.delete('g'))
    for _ in range(turns):
        await turn()
    beginning = world.broker.deliveries.get(group, topic, 0)
    _, begun_on = await asyncio.gather(deleting, beginning, return_exceptions=True)
    assert isinstance(begun_on, ShareDelivery | Refused)
    assert len(world.broker.deliveries) == 0


async def test_a_group_that_was_deleted_does_not_begin_anywhere(world: World) -> None:
    """Also where it is said from where on, which needs no looking."""
    topic = await begun(world)
    group = world.catalog.groups['g']
    await world.groups.delete('g')
    for start in (None, 0):
        with pytest.raises(Refused):
            await world.broker.deliveries.get(group, topic, 0, start=start)
    assert len(world.broker.deliveries) == 0


async def _seek(world: World) -> None:
    await world.broker.operations.seek(world.caller('o'), 'g', Target('latest'), 't')


async def _move(world: World) -> None:
    await world.broker.operations.scheduled_move(world.caller('o'), Selection('t'), START + 2 * HOUR)


async def _leave(world: World) -> None:
    await world.broker.operations.leave(world.caller('a'), 'g', 'a')


@pytest.mark.parametrize('records_in', [1, MANY])
@pytest.mark.parametrize('change', [_seek, _move, _leave])
async def test_what_got_lost_while_others_had_their_turn_is_not_answered(
    change: Callable[[World], Awaitable[None]], records_in: int
) -> None:
    """A change of many partitions, so many of which have records, or one that waits for other logs as well."""
    world = await World.open({'acklog.deliver.at.enable': 'true'})
    topic = await world.topic('t', MANY)
    header = 'acklog-deliver-at', str(START + HOUR).encode()
    for index in range(records_in):
        partition = world.broker.partition(topic, index)
        assert partition is not None
        for headers in ([], [header]):
            await partition.append(build([(None, b'v', headers)], timestamp=START), START, Durability.WRITTEN)
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    await world.broker.operations.acquire(world.caller('a'), 'g', 'a', ['t'], MANY)
    before = states(world, topic, records_in)
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    with pytest.raises(Failed):
        await change(world)
    await settled()
    after = states(world, topic, records_in)
    assert before[0] == after[0]
    assert all(
        now in (was, ['done', 'done']) for was, now in zip(before, after, strict=True)
    )  # a seek in part, perhaps
    await World.close_all()


async def test_where_a_group_begins_is_not_answered_either(world: World) -> None:
    await world.topic('t', MANY)
    await world.groups.ensure('g')
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    with pytest.raises(Failed):
        await _seek(world)


def states(world: World, topic: bytes, count: int) -> list[list[str]]:
    return [[world.fate(topic, offset, index) for offset in (0, 1)] for index in range(count)]


async def reading(world: World, topic: bytes) -> asyncio.Future[object]:
    """Member a takes two records: they are reserved, and the log is being read."""
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    world.directory.trouble.delay = DELAY
    state = delivery_of(world, topic).state.state
    taking = asyncio.ensure_future(world.take('a', 1, count=2))
    while not state.reservations:
        await turn()
    return taking


async def test_a_group_that_is_paused_while_the_log_is_read(world: World) -> None:
    topic = await begun(world)
    taking = await reading(world, topic)
    world.broker.pauses.pause_now(world.catalog.groups['g'], 'lunch')
    assert await taking == []
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['acquired a', 'not taken']


async def test_a_share_partition_that_is_folded_anew_while_the_log_is_read(world: World) -> None:
    topic = await begun(world)
    taking = await reading(world, topic)
    delivery = delivery_of(world, topic)
    before = delivery.state
    world.broker.deliveries.journal.on_lost([delivery.key])
    world.directory.trouble.delay = 0  # so that it is there again before the log has been read
    while delivery.state is before:
        await turn()
    assert not taking.done()
    assert await taking == [1, 2]
    assert [world.fate(topic, offset) for offset in range(4)] == ['acquired a'] * 3 + ['not taken']


async def test_a_share_partition_that_ends_while_it_is_folded_anew(world: World) -> None:
    """Nobody who still knows it takes from it any more."""
    topic = await begun(world)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    deliveries, delivery = world.broker.deliveries, delivery_of(world, topic)
    world.directory.trouble.delay = DELAY
    deliveries.journal.on_lost([delivery.key])
    await turn()
    await turn()
    ending = asyncio.ensure_future(deliveries.delete_partition(world.catalog.groups['g'], topic, 0))
    await ending
    for _ in range(4):
        await settled()
    assert delivery.fenced


@pytest.mark.parametrize('turns', range(0, 24, 2))
async def test_a_group_that_is_deleted_while_its_share_partition_is_folded_anew(world: World, turns: int) -> None:
    """The journal is told that it has ended, or would keep its history for ever."""
    topic = await begun(world)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    world.close('a-takes')
    journal = world.broker.deliveries.journal
    await journal.written()
    world.directory.trouble.delay = DELAY
    deleting = asyncio.ensure_future(world.groups.delete('g'))
    for _ in range(turns):
        await turn()
    if len(world.broker.deliveries):
        journal.on_lost([delivery_of_id(world).key])
    await deleting
    for _ in range(4):
        await settled()
    assert len(world.broker.deliveries) == 0
    assert journal.bases == {}


def delivery_of_id(world: World) -> ShareDelivery:
    """The only one there is, whether its group is still known or not."""
    [delivery] = world.broker.deliveries._all.values()
    return delivery


async def test_a_log_that_begins_later_while_a_share_partition_is_folded_anew(world: World) -> None:
    topic = await begun(world)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    delivery, partition = delivery_of(world, topic), world.broker.partition(topic, 0)
    assert partition is not None
    world.broker.deliveries.journal.on_lost([delivery.key])
    await partition.truncate_before(2)
    await settled()
    assert not delivery.fenced
    assert delivery.state.status.start == 2


@pytest.mark.parametrize('turns', range(8))
async def test_a_config_that_is_changed_while_a_share_partition_is_folded_anew(
    world: World, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, 'READ_BYTES', 1)  # so that it takes a while
    topic = await begun(world, 10)
    for epoch in range(10):
        assert await world.take('a', epoch, (topic, 0), count=1) == [epoch]
    delivery = delivery_of(world, topic)
    world.directory.trouble.delay = 3
    world.broker.deliveries.journal.on_lost([delivery.key])
    for _ in range(turns):
        await turn()
    await change_group(world.broker, 'g', lambda _: {'share.record.lock.duration.ms': '20000'}, only=False)
    await settled()
    assert not delivery.fenced
    assert delivery.state.config.lock_ms == 20_000


@pytest.mark.parametrize('turns', range(0, 24))
async def test_a_share_partition_that_is_lost_again_while_it_is_folded_anew(world: World, turns: int) -> None:
    """What is answered then is not overwritten by what the second reading finds."""
    topic = await begun(world)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    journal, delivery = world.broker.deliveries.journal, delivery_of(world, topic)
    world.directory.trouble.delay = 3
    journal.on_lost([delivery.key])
    while delivery.key in world.broker.deliveries._refolds._lost:
        await turn()
    journal.on_lost([delivery.key])
    for _ in range(4):
        await settled()
    world.pass_time(LONGEST_MS)
    for _ in range(turns):
        await turn()
    [_, code] = await world.sign_off('a', 1, topic, 0)
    for _ in range(4):
        await settled()
    assert world.fate(topic, 0) == ('acquired a' if code else 'done')


@pytest.mark.parametrize('turns', range(1, 16))
async def test_a_group_that_is_made_again_while_it_is_deleted(world: World, turns: int) -> None:
    """Who has come before its end comes again; who has come to the new one stays."""
    topic = await world.topic('t')
    await world.groups.ensure('g')
    deleting = asyncio.ensure_future(world.groups.delete('g'))
    for _ in range(turns):
        await turn()
    await world.beat('a', 0, 't')
    await deleting
    assert world.groups.members.any('g') == ('g' in world.catalog.groups)
    assert await world.take('a', 0, (topic, 0)) == []
    assert await world.take('a', 1) == []


async def test_a_share_partition_that_ends_while_it_is_written_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it holds up the journal any more."""
    monkeypatch.setattr(shortening, 'TURN_BYTES', 10)
    monkeypatch.setattr(journal_format, 'CHUNK_BYTES', 20)
    topic = await begun(world)
    assert await world.take('a', 0, (topic, 0), count=4) == [0, 1, 2, 3]
    journal = world.broker.deliveries.journal
    [key] = journal.bases
    world.directory.trouble.delay = DELAY
    before = journal.log.end
    writing = asyncio.ensure_future(journal.shortening.snapshot(key))
    while journal.log.end < before + 3:
        await turn()
    assert not writing.done()
    await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)
    await writing
    await journal.written()
    assert (journal.bases, journal.sizes) == ({}, {})


async def test_what_has_ended_is_forgotten_when_that_is_written(world: World) -> None:
    topic = await begun(world)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    with pytest.raises(Failed):
        await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)
    assert len(world.broker.deliveries.journal._ended) == 1
    world.pass_time(1000)
    await settled()
    assert world.broker.deliveries.journal._ended == set()


async def test_what_somebody_who_is_cancelled_had_reserved_goes_to_who_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await begun(world, 0)
    for member in 'ab':
        assert await world.take(member, 0, (topic, 0)) == []
    await world.publish(topic, 2)
    with monkeypatch.context() as slow:
        slow.setattr(Trouble, 'pause', lambda _: asyncio.Event().wait())
        reading = asyncio.ensure_future(world.take('a', 1, count=2))
        waiting = asyncio.ensure_future(world.take('b', 1, count=2, wait=60_000))
        while not delivery_of(world, topic).waiters:
            await turn()
    reading.cancel()
    assert await asyncio.wait_for(waiting, 5) == [0, 1]


@pytest.mark.parametrize('turns', range(0, 24))
async def test_a_topic_that_is_deleted_while_dead_letters_are_written_to_it(
    world: World, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await with_letters(world, 1)
    world.directory.trouble.delay = DELAY
    deleting = asyncio.ensure_future(delete_topic(world.broker, world.catalog.topics[DLQ]))
    for _ in range(turns):
        await turn()
    delivery_of(world, topic).acknowledge('a', [(0, 0, REJECT, None)])
    assert await deleting
    await settled()
    assert 'this is a bug' not in caplog.text


@pytest.mark.parametrize('turns', range(8))
async def test_a_log_that_begins_later_while_a_group_is_moved_to_its_start(world: World, turns: int) -> None:
    topic = await world.topic('t', MANY)
    group = await world.groups.ensure('g')
    for index in range(MANY):
        await world.publish(topic, 2, index)
    seeking = asyncio.ensure_future(world.broker.operations.seek(world.caller('c'), 'g', Target('earliest'), 't'))
    for _ in range(turns):
        await turn()
    last = world.broker.partition(topic, MANY - 1)
    assert last is not None
    await last.truncate_before(1)
    await seeking
    starts = [each.state.status.start for each in world.broker.deliveries.of_group(group.id)]
    assert starts == [0] * (MANY - 1) + [1]
