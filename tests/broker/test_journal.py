"""The journal of the share partitions: nothing is answered before it is written, what was written comes back, what
could not be written did not happen, and it stays short."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.broker import JOURNAL
from acklog.broker.eager import turn
from acklog.broker.journal import format as journal_format
from acklog.broker.journal import shortening
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.errors import Failed, Full, LogError, OutcomeUnknown

STORAGE_ERROR, INVALID_RECORD_STATE = 56, 121
EARLIEST = {'share.auto.offset.reset': 'earliest'}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open({'group.share.delivery.count.limit': '3'})
    await World.close_all()


async def begun(world: World, records: int) -> bytes:
    """A topic with records, of which the group has taken one and signed off none."""
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    await world.publish(topic, records)
    return topic


def fates(world: World, topic: bytes, count: int) -> list[str]:
    return [world.fate(topic, offset) for offset in range(count)]


async def test_what_was_answered_comes_back_after_kill_9(world: World) -> None:
    topic = await begun(world, 4)
    assert await world.take('a', 0, (topic, 0), count=3) == [0, 1, 2]
    assert await world.sign_off('a', 1, topic, 1) == [0, 0]
    await world.restart()
    assert fates(world, topic, 3) == ['acquired a', 'done', 'acquired a']


@pytest.mark.parametrize('failure', [Full, Failed, MemoryError])
async def test_what_could_not_be_written_did_not_happen(world: World, failure: type[Exception]) -> None:
    topic = await begun(world, 3)
    assert await world.take('a', 0, (topic, 0), count=2) == [0, 1]
    world.directory.trouble.on_demand[JOURNAL] = [failure]
    assert await world.sign_off('a', 1, topic, 0) == [0, STORAGE_ERROR]
    await settled()
    assert fates(world, topic, 2) == ['acquired a', 'acquired a']
    assert await world.sign_off('a', 2, topic, 0) == [0, 0]
    assert fates(world, topic, 2) == ['done', 'acquired a']


async def test_what_may_have_been_written_is_looked_up(world: World) -> None:
    topic = await begun(world, 3)
    assert await world.take('a', 0, (topic, 0), count=2) == [0, 1]
    stored = 0
    for epoch in range(1, 9):
        world.directory.trouble.on_demand[JOURNAL] = [OutcomeUnknown]
        before = world.broker.deliveries.journal.log.end
        answer = await world.sign_off('a', epoch, topic, 0)
        await settled()
        world.pass_time(LONGEST_MS)  # one loss after the other: it is not read anew at once
        await settled()
        if world.broker.deliveries.journal.log.end > before:
            stored += 1
            assert fates(world, topic, 1) == ['done']
            break
        assert answer == [0, 7]
        assert fates(world, topic, 1) == ['acquired a']
    await world.restart()
    assert fates(world, topic, 1) == ['done' if stored else 'acquired a']


async def test_an_acquire_that_could_not_be_written_gives_nothing(world: World) -> None:
    topic = await begun(world, 3)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    assert await world.take('a', 1, count=1) == []
    await settled()
    assert await world.take('b', 0, (topic, 0), count=2) == [1, 2]


async def test_a_beginning_that_could_not_be_written_is_as_if_it_had_never_been(world: World) -> None:
    topic = await begun(world, 2)
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    assert await world.take('a', 0, (topic, 0), count=1) == []
    await settled()
    assert await world.take('a', 0, (topic, 0), count=2) == [0, 1]
    await world.restart()
    assert fates(world, topic, 2) == ['acquired a', 'acquired a']


async def test_it_stays_short_and_complete(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rounds on one partition while another one is idle with a record in flight: both survive truncation."""
    monkeypatch.setattr(shortening, 'SLACK_BYTES', 3000)
    topic, other = await begun(world, 80), await world.topic('other')
    await world.publish(other, 1)
    assert await world.take('idle', 0, (other, 0), count=1) == [0]
    log = world.broker.deliveries.journal.log
    for number in range(80):
        assert await world.take('a', number * 2, (topic, 0), count=1) == [number]
        assert await world.sign_off('a', number * 2 + 1, topic, number) == [0, 0]
        await settled()
    assert log.start > 0
    assert log.end - log.start < 100
    await world.restart()
    assert set(fates(world, topic, 80)) == {'done'}
    assert world.fate(other, 0) == 'acquired idle'


async def test_a_deleted_group_leaves_nothing(world: World) -> None:
    topic = await begun(world, 2)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    group = world.catalog.groups['g']
    await world.broker.deliveries.delete_group(group)
    await world.restart()
    assert len(world.broker.deliveries) == 0
    assert world.broker.deliveries.journal.bases == {}


@pytest.mark.parametrize('stopped', [False, True])
async def test_an_end_that_could_not_be_written_is_said_again(world: World, stopped: bool) -> None:
    """By itself after a second, and at a stop: it has happened, though whoever asked for it was told of the error."""
    topic = await begun(world, 1)
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    with pytest.raises(Failed):
        await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)
    await settled()
    if stopped:
        await world.stop_and_start()
    else:
        world.pass_time(1000)
        await settled()
        await world.restart()
    assert len(world.broker.deliveries) == 0


async def _group_goes(world: World, topic: bytes) -> None:
    await world.broker.deliveries.delete_group(world.catalog.groups['g'])


async def _share_partition_goes(world: World, topic: bytes) -> None:
    assert await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)


async def _topic_goes(world: World, topic: bytes) -> None:
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    world.broker.deliveries.partition_deleted(partition)
    await world.broker.deliveries.journal.written()


@pytest.mark.parametrize('goes', [_group_goes, _share_partition_goes, _topic_goes])
@pytest.mark.parametrize('while_writing', [False, True])
async def test_what_has_ended_does_not_keep_it_long(
    world: World, monkeypatch: pytest.MonkeyPatch, goes: Callable[..., Awaitable[None]], while_writing: bool
) -> None:
    """Whether or not the share partition's own events are being written when it ends."""
    monkeypatch.setattr(shortening, 'SLACK_BYTES', 3000)
    gone, topic = await begun(world, 2), await world.topic('other')
    await world.publish(topic, 80)
    journal = world.broker.deliveries.journal
    world.directory.trouble.delay = 20 if while_writing else 0
    taken = asyncio.ensure_future(world.take('a', 0, (gone, 0), count=1))
    while not taken.done() and not (while_writing and journal._writing is not None):
        await turn()
    assert taken.done() is not while_writing
    await goes(world, gone)
    await taken
    assert all(key.topic != gone for key in journal.bases)
    for number in range(80):
        assert await world.take('b', number * 2, (topic, 0), count=1) == [number]
        assert await world.sign_off('b', number * 2 + 1, topic, number) == [0, 0]
        await settled()
    assert journal.log.end - journal.log.start < 100


async def test_what_is_being_written_when_nothing_else_is_left_is_not_cut_off(world: World) -> None:
    """The first share partition begins while what those before it left is dropped."""
    topic = await begun(world, 1)
    journal = world.broker.deliveries.journal
    world.directory.trouble.delay = 20
    taken = asyncio.ensure_future(world.take('a', 0, (topic, 0), count=1))
    while journal._writing is None:
        await turn()
    assert journal.bases == {}
    await journal.shortening.shorten()
    assert await taken == [0]
    await world.restart()
    assert fates(world, topic, 1) == ['acquired a']


async def test_what_a_refused_call_found_due_is_told_before_a_snapshot_has_it(world: World) -> None:
    """Else it would happen twice, which no start can fold."""
    topic = await begun(world, 2)
    assert await world.take('a', 0, (topic, 0), count=2) == [0, 1]
    world.now += 30_000  # and the timer has not called yet
    assert await world.sign_off('a', 1, topic, 0) == [0, INVALID_RECORD_STATE]
    journal = world.broker.deliveries.journal
    await journal.shortening.snapshot(next(iter(journal.bases)))
    world.pass_time(0)
    assert await world.take('b', 0, (topic, 0), count=1) == [0]
    await journal.log.truncate_before(journal.needed_from)
    await world.restart()
    assert fates(world, topic, 2) == ['acquired b', 'available after 1 failure']


@pytest.mark.parametrize('failing', range(6))
@pytest.mark.parametrize('failure', [Full, Failed, OutcomeUnknown])
async def test_a_snapshot_that_could_not_be_written_replaces_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, failing: int, failure: type[Exception]
) -> None:
    """Whichever append of it fails: its mark, one of its parts, what others write meanwhile."""
    monkeypatch.setattr(shortening, 'TURN_BYTES', 10)
    monkeypatch.setattr(journal_format, 'CHUNK_BYTES', 50)
    topic = await begun(world, 30)
    assert await world.take('a', 0, (topic, 0), count=10) == list(range(10))
    assert await world.sign_off('a', 1, topic, 0, 2, 4) == [0, 0]
    before = fates(world, topic, 10)
    journal = world.broker.deliveries.journal
    world.directory.trouble.on_demand[JOURNAL] = [*[None] * failing, failure]
    with contextlib.suppress(LogError):
        await journal.shortening.snapshot(next(iter(journal.bases)))
    with contextlib.suppress(LogError):
        await journal.log.truncate_before(min(journal.bases.values()))
    world.directory.trouble.on_demand.clear()
    await settled()
    world.pass_time(LONGEST_MS)
    await settled()
    assert fates(world, topic, 10) == before
    await world.restart()
    assert fates(world, topic, 10) == before
