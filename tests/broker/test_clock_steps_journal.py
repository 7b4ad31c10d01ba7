"""The clock is set to any year, and whatever becomes of the journal: a restart finds what there was (rule 11)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
from tests.broker.clock_world import HOUR, STEPS, begun, release
from tests.broker.groups_world import START, World, delivery_of, settled

from acklog.broker.broker import JOURNAL
from acklog.broker.journal import format as journal_format
from acklog.broker.journal import shortening
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.core import kinds
from acklog.errors import Failed, Full, OutcomeUnknown
from acklog.wire.acknowledgements import RELEASE


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    for each in World.opened:
        each.directory.trouble.failure_rate = 0
    await World.close_all()


EDGES = [None, -(1 << 63), -5, 0, 1, HOUR, START - 1, START, START + 1, START + HOUR, 1 << 62, (1 << 63) - 1]


async def test_a_share_partition_that_begins_anew_gives_no_lock_the_number_of_an_old_one(world: World) -> None:
    """Though the clock shows a time at which there were others."""
    topic, numbers = await begun(world, 1), []
    for _ in range(2):
        await world.take('a', 0, (topic, 0))
        delivery = delivery_of(world, topic)
        numbers.append(delivery.state.status.lock_number)
        await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)
        world.set_clock(-HOUR)
        await settled()
        await world.restart()
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize('seed', range(12))
async def test_any_time_and_any_clock(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whatever is said, and to whatever year the clock is set: a restart finds what there was, and who wants to take
    gets all that is available."""
    chance = random.Random(seed)
    monkeypatch.setattr(shortening, 'SLACK_BYTES', chance.choice([300, 1 << 20]))
    config = {'share.record.lock.duration.ms': str(HOUR), 'share.delivery.count.limit': '1000'}
    topic = await begun(world, 40, **config | {'share.session.timeout.ms': '60000'})

    def records() -> list[object]:
        delivery = delivery_of(world, topic)
        assert not delivery.fenced
        record = delivery.state.status.record
        return [(o, e.state, e.due, e.deferred, e.attempts) for o in range(40) if (e := record(o))]

    for number in range(30):
        member = f'a{number}'
        taken = await world.take(member, 0, (topic, 0), count=chance.randint(1, 20))
        delivery = delivery_of(world, topic)
        now = world.now
        for offset in taken:
            at, after = chance.choice(EDGES), chance.choice(EDGES)
            if chance.random() < 0.5:
                delivery.acknowledge(member, [(offset, offset, bytes([RELEASE]), at, after, None)])
                record = delivery.state.status.record(offset)
                due = at if at is not None else now + (20_000 if after is None else min(max(after, 0), 1 << 62))
                assert record.due == (None if due <= now else min(due, 1 << 62) if at is not None else due)
            elif (when := kinds.when(at, after)) is not None:
                delivery.change(lambda state, offset=offset, when=when: state.defer(world.now, offset, when))
        for _ in range(chance.randrange(3)):
            year = chance.choice([1900, 1970, 2023, 9999])
            by = round((year - 1970) * 365.25 * 24 * HOUR) + chance.choice([0, 7, -3, HOUR]) - world.now
            world.set_clock(by)
            await settled()
        world.pass_time(chance.choice([0, 1, 19_999, 20_000, HOUR]))
        await settled()
        before = records()
        if chance.random() < 0.4:
            await world.restart()
            world.pass_time(0)
            assert records() == before
        available = sum(each[1] not in ('waiting', 'acquired') for each in before)
        assert len(await world.take(f'b{number}', 0, (topic, 0), count=100)) == available
        world.close(f'b{number}-takes')
        world.pass_time(0)


@pytest.mark.parametrize('by', STEPS)
@pytest.mark.parametrize('ends', ['killed a second later', 'stopped'])
@pytest.mark.parametrize('failure', [Full, Failed, OutcomeUnknown])
async def test_a_step_that_the_journal_did_not_take_is_said_again(
    world: World, by: int, ends: str, failure: type[Exception]
) -> None:
    """Where nothing else is written, too."""
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, None, 2 * HOUR))
    due = world.now + 2 * HOUR + by
    await settled()
    world.directory.trouble.on_demand[JOURNAL] = [failure] * 2
    world.set_clock(by)
    await settled()
    world.directory.trouble.on_demand.pop(JOURNAL, None)
    if ends == 'stopped':
        await world.stop_and_start()
    else:
        world.pass_time(1000)
        await settled()
        await world.restart()
    delivery = delivery_of(world, topic)
    assert delivery.state.status.record(0).due == due


@pytest.mark.parametrize('seed', range(12))
async def test_whatever_becomes_of_the_journal(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """It fails, is shortened, or is read anew, by a restart or for what got lost: what is left of a lock and of a delay
    is the same as ever, and so is a named instant."""
    chance = random.Random(seed)
    monkeypatch.setattr(shortening, 'SLACK_BYTES', chance.choice([300, 2000, 1 << 20]))
    monkeypatch.setattr(journal_format, 'CHUNK_BYTES', chance.choice([40, 1000]))
    topic = await begun(world, 40, **{'share.record.lock.duration.ms': str(10 * HOUR)})
    await world.take('a', 0, (topic, 0), count=5)
    locked_until, named, delayed = world.now + 10 * HOUR, world.now + 50 * HOUR, world.now + 50 * HOUR
    release(world, topic, (1, named, None), (2, None, delayed - world.now))
    delivery = delivery_of(world, topic)
    delivery.change(lambda state: state.defer(world.now, 3, named))
    delivery.change(lambda state: state.defer(world.now, 4, -(delayed - world.now)))
    await world.broker.deliveries.journal.written()
    for epoch in range(60):
        what = chance.random()
        if what < 0.3:
            by = chance.choice([7, HOUR, -7, -HOUR]) + chance.randrange(100)
            world.set_clock(by)
            locked_until, delayed = locked_until + by, delayed + by
        elif what < 0.5:
            failures = [chance.choice([Full, Failed, OutcomeUnknown]) for _ in range(chance.randint(1, 3))]
            world.directory.trouble.on_demand[JOURNAL] = [*failures]
        elif what < 0.8:
            await world.take(f'b{epoch}', 0, (topic, 0), count=chance.randint(1, 3))
            world.close(f'b{epoch}-takes')
        elif what < 0.9:
            await settled()
        world.directory.trouble.on_demand.pop(JOURNAL, None) if chance.random() < 0.5 else None
        if what > 0.9:
            world.directory.trouble.on_demand.pop(JOURNAL, None)
            world.pass_time(LONGEST_MS)
            await settled()
            await world.publish(topic, 1)
            await world.take(f'c{epoch}', 0, (topic, 0))  # with it goes what could not be written before
            await settled()
            await world.restart()
            world.pass_time(0)
        delivery = delivery_of(world, topic)
        if delivery.fenced:
            continue
        record = delivery.state.status.record
        assert [record(o).due for o in (1, 2)] == [named, delayed]
        assert [record(o).deferred for o in (3, 4)] == [named, delayed]
        assert {record(o).lock_until for o in (0, 3, 4)} == {locked_until}
