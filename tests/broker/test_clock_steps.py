"""The clock is set forward or back while everything is under way: what follows from a duration lasts as long as it
would have, an instant that somebody named is what it was (rule 11)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.broker.groups_world import START, World, settled

from acklog.broker.apis.fetch import API as FETCH
from acklog.broker.broker import JOURNAL
from acklog.broker.deliveries.delivery import ShareDelivery
from acklog.broker.eager import turn
from acklog.broker.journal import format as journal_format
from acklog.broker.journal import shortening
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.core import kinds, operators
from acklog.errors import Failed, Full, OutcomeUnknown
from acklog.log.seam import Durability
from acklog.wire import fetch
from acklog.wire.acknowledgements import RELEASE
from acklog.wire.record_batch import build

HOUR = 3_600_000
STEPS = [HOUR, 2_600, -2_600, -HOUR]
CONFIGS = {
    'share.auto.offset.reset': 'earliest',
    'share.record.lock.duration.ms': '30000',
    'share.session.timeout.ms': '45000',
    'acklog.retry.backoff': 'fixed:20s',
}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    yield await World.open()
    for each in World.opened:
        each.directory.trouble.failure_rate = 0
    await World.close_all()


async def begun(world: World, records: int, **configs: str) -> bytes:
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: CONFIGS | configs)
    await world.publish(topic, records)
    return topic


def delivery_of(world: World, topic: bytes) -> ShareDelivery:
    delivery = world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)
    assert delivery is not None
    return delivery


def lasts(world: World, topic: bytes, by: int, passed_ms: int, left_ms: int, *fates: str) -> None:
    """What ends with another fate of the first record does so when `left_ms` have passed after the clock was set."""
    world.pass_time(passed_ms)
    world.set_clock(by)
    world.pass_time(left_ms - 1)
    assert world.fate(topic, 0) == fates[0]
    world.pass_time(1)
    assert world.fate(topic, 0) == fates[1]


def release(world: World, topic: bytes, *acks: tuple[int, int | None, int | None]) -> None:
    """(offset, instant, delay), by member a."""
    delivery_of(world, topic).acknowledge(
        'a', [(offset, offset, bytes([RELEASE]), at, after, None) for offset, at, after in acks]
    )


async def three_batches(world: World) -> bytes:
    """Of ten records each, all of them with a."""
    topic = await begun(world, 0)
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    for _ in range(3):
        await partition.append(build([(None, bytes(100), [])] * 10, timestamp=world.now), world.now, Durability.WRITTEN)
    await world.take('a', 0, (topic, 0), count=30)
    return topic


def got_ready(world: World, topic: bytes) -> list[bool]:
    """Of which of the three the records can be sent one by one without looking into it first."""
    delivery = delivery_of(world, topic)
    return [delivery.excerpts.last_of(delivery.key, offset) is not None for offset in (0, 10, 20)]


@pytest.mark.parametrize('by', STEPS)
async def test_a_lock_lasts_as_long_as_it_would_have(world: World, by: int) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    lasts(world, topic, by, 10_000, 20_000, 'acquired a', 'waiting after 1 failure')


@pytest.mark.parametrize('by', STEPS)
@pytest.mark.parametrize('after', [None, 20_000], ids=['the backoff', 'its own'])
async def test_a_delay_lasts_as_long_as_it_would_have(world: World, by: int, after: int | None) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, None, after))
    lasts(world, topic, by, 10_000, 10_000, 'waiting after 1 failure', 'available after 1 failure')


@pytest.mark.parametrize('by', STEPS)
async def test_a_record_comes_at_the_instant_that_was_named(world: World, by: int) -> None:
    """To a member that waits, too."""
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    instant = world.now + 2 * HOUR
    release(world, topic, (0, instant, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=300_000))
    await settled()
    world.set_clock(by)
    await settled()
    if instant - world.now > 300_000:
        world.pass_time(300_000)
        assert await poll == []
        world.pass_time(instant - world.now - 1000)
        poll = asyncio.ensure_future(world.take('a', 2, wait=300_000))
        await settled()
        world.pass_time(999)
        await settled()
        assert not poll.done()
        world.pass_time(1)
    assert await poll == [0]
    assert world.now == instant


async def test_what_is_due_by_the_new_time_comes_at_once(world: World) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, world.now + 5_000, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=60_000))
    await settled()
    world.set_clock(5_000)
    world.pass_time(0)
    assert await poll == [0]


async def test_only_what_falls_due_soon_by_the_new_time_is_got_ready(world: World) -> None:
    topic = await three_batches(world)
    release(world, topic, (0, None, HOUR), (10, world.now + HOUR, None), (20, world.now + 2 * HOUR, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=300_000))
    await settled()
    assert got_ready(world, topic) == [False, False, False]
    world.set_clock(HOUR - 200)
    await settled()
    assert got_ready(world, topic) == [False, True, False]
    world.pass_time(200)
    assert await poll == [10]


async def test_what_is_being_got_ready_while_the_clock_is_set_back(world: World) -> None:
    """It does not count as ready until that time comes again."""
    topic = await three_batches(world)
    release(world, topic, (0, world.now + 100, None), (10, None, 5_000))
    world.directory.trouble.delay = 5
    poll = asyncio.ensure_future(world.take('a', 1, wait=300_000))
    while not world.broker.deliveries.waiting:
        await turn()
    world.set_clock(-HOUR)
    await settled()
    assert got_ready(world, topic) == [True, False, False]
    world.pass_time(4_800)
    await settled()
    assert got_ready(world, topic) == [True, True, False]
    world.pass_time(200)
    assert await poll == [10]


WHEN = pytest.mark.parametrize('woken', [None, 1_000, 2_500], ids=['not woken', 'woken before', 'woken after'])


@pytest.mark.parametrize('by', STEPS)
@WHEN
async def test_a_fetch_lasts_as_long_as_it_would_have(world: World, by: int, woken: int | None) -> None:
    topic = await begun(world, 0)
    request = fetch.Request(5_000, 1 << 19, 1 << 20, topics=[fetch.Topic('t', topic, [fetch.Partition(0, 0, 1 << 20)])])

    async def wake() -> None:
        await world.publish(topic, 1)  # not enough for it

    poll = asyncio.ensure_future(FETCH.handle(world.broker, world.caller('c'), 16, request))
    assert await lasted(world, poll, by, woken, wake) == 5_000
    assert (await poll).error_code == 0


@pytest.mark.parametrize('by', STEPS)
@WHEN
async def test_a_poll_lasts_as_long_as_it_would_have(world: World, by: int, woken: int | None) -> None:
    topic = await begun(world, 0)

    async def wake() -> None:
        await world.broker.deliveries.topic_has_grown(world.catalog.topics['t'], 1)  # to look again, in vain

    poll = asyncio.ensure_future(world.take('a', 0, (topic, 0), wait=5_000))
    assert await lasted(world, poll, by, woken, wake) == 5_000
    assert await poll == []


async def lasted(
    world: World, poll: asyncio.Future[Any], by: int, woken: int | None, wake: Callable[[], Awaitable[None]]
) -> int:
    """After how many ms a poll was over; the clock was set after two seconds, and it was woken in between."""
    await settled()
    for ms in range(0, 20_000, 500):
        if poll.done():
            return ms
        if ms == woken:
            await wake()
        if ms == 2_000:
            world.set_clock(by)
        await settled()
        world.pass_time(500)
        await settled()
    return 20_000


@pytest.mark.parametrize('by', STEPS)
async def test_a_silent_member_is_lost_when_it_would_have_been(world: World, by: int) -> None:
    topic = await begun(world, 1, **{'share.record.lock.duration.ms': '60000'})
    await world.beat('a', 0, 't')
    await world.take('a', 0, (topic, 0))
    lasts(world, topic, by, 15_000, 30_000, 'acquired a', 'waiting after 1 failure')


@pytest.mark.parametrize('by', STEPS)
async def test_a_session_from_before_a_restart_may_be_adopted_as_long(world: World, by: int) -> None:
    topic = await begun(world, 1, **{'share.record.lock.duration.ms': '60000'})
    await world.take('a', 0, (topic, 0))
    await world.restart()
    lasts(world, topic, by, 15_000, 30_000, 'acquired a', 'waiting after 1 failure')


@pytest.mark.parametrize('by', STEPS)
async def test_a_grace_lasts_as_long_as_it_would_have(world: World, by: int) -> None:
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0), grace=10_000)
    world.close('a-takes')
    lasts(world, topic, by, 4_000, 6_000, 'acquired a', 'waiting after 1 failure')


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


async def test_what_was_due_before_the_clock_was_set_back_is_done_by_the_old_time(world: World) -> None:
    """No timer has been called yet."""
    topic = await begun(world, 2)
    await world.take('a', 0, (topic, 0), count=2)
    release(world, topic, (0, world.now + 50, None))
    world.now += 30_000
    world.set_clock(-HOUR)
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['available after 1 failure', 'waiting after 1 failure']
    await settled()
    await world.restart()
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['available after 1 failure', 'waiting after 1 failure']


@pytest.mark.parametrize('by', STEPS)
@pytest.mark.parametrize('named', [True, False])
async def test_what_comes_due_while_the_clock_is_being_set_is_offered(world: World, by: int, named: bool) -> None:
    """Doing what is due everywhere takes time, in which more falls due."""
    topic = await begun(world, 1)
    await world.take('a', 0, (topic, 0))
    release(world, topic, (0, world.now + 5 if named else None, 5))
    poll = asyncio.ensure_future(world.take('a', 1, wait=60_000))
    await settled()
    world.broker.clock_steps()
    world.now += 10
    world.set_clock(by, again=False)
    await settled()
    assert poll.done() and await poll == [0]


@pytest.mark.parametrize('by', [HOUR, -HOUR])
async def test_what_comes_soon_by_the_new_time_is_got_ready(world: World, by: int) -> None:
    """For whom waits, though by the old time all was ready."""
    topic = await begun(world, 0)
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    large = build([(None, b'x' * 100, [])] * 20, timestamp=world.now)
    for _ in range(2):
        await partition.append(large, world.now, Durability.WRITTEN)
    await world.take('a', 0, (topic, 0), count=40)
    delivery = delivery_of(world, topic)
    release(world, topic, (0, None, 100), (20, world.now + by + 200, None) if by > 0 else (20, None, None))
    poll = asyncio.ensure_future(world.take('a', 1, wait=60_000))
    await settled()
    assert [delivery.excerpts.last_of(delivery.key, offset) for offset in (0, 20)] == [19, None]
    world.set_clock(by)
    world.pass_time(100)
    assert await poll == [0]
    if by < 0:
        world.pass_time(500)
        delivery.change(lambda state: operators.move(state, world.now, [20], world.now + 100))
    poll = asyncio.ensure_future(world.take('a', 2, wait=60_000))
    await settled()
    assert delivery.excerpts.last_of(delivery.key, 20) == 39
    world.pass_time(100)
    assert await poll == [20]


EDGES = [None, -(1 << 63), -5, 0, 1, HOUR, START - 1, START, START + 1, START + HOUR, 1 << 62, (1 << 63) - 1]


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
