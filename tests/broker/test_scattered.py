"""Records that fall due one by one, each in a batch of its own: all that is due comes in one take, and the batches are
got ready before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.broker.groups_world import START, World, settled

from acklog.broker.deliveries import batches
from acklog.broker.deliveries.delivery import ShareDelivery
from acklog.broker.deliveries.taking import take
from acklog.log.seam import Durability
from acklog.wire.acknowledgements import ACCEPT, RELEASE
from acklog.wire.record_batch import build

BATCHES, RECORDS = 8, 100
SIZE = RECORDS * 1000  # bytes of a batch, about


async def scattered(world: World, dues: Sequence[int], compression: str = 'none') -> tuple[bytes, ShareDelivery]:
    """Batches of which all is accepted but for one record each, which was released until that time after the start."""
    topic = await world.topic('t')
    await world.beat('m', 0, 't')
    assert await world.take('m', 0, (topic, 0)) == []
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    for _ in dues:
        batch = build([(None, b'x' * 980)] * RECORDS, timestamp=START, compression=compression)
        await partition.append(batch, START, Durability.WRITTEN)
    delivery = world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)
    assert delivery is not None
    await take(delivery, 'm', len(dues) * RECORDS, 1 << 30, strict=True)
    for number, due in enumerate(dues):
        first, waits = number * RECORDS, kept(number)
        around = ((first, waits - 1), (waits + 1, first + RECORDS - 1))
        delivery.acknowledge('m', [(waits, waits, bytes([RELEASE]), START + due)])
        delivery.acknowledge('m', [(a, b, bytes([ACCEPT]), None) for a, b in around if a <= b])
    return topic, delivery


def kept(number: int) -> int:
    """The offset that was released of that batch."""
    return number * RECORDS + number * 7


async def taken(delivery: ShareDelivery, max_bytes: int) -> list[int]:
    found = await take(delivery, 'm', 500, max_bytes, strict=True)
    return [] if found is None else [offset for first, last, _ in found.ranges for offset in range(first, last + 1)]


@pytest.fixture(autouse=True)
async def closing() -> AsyncIterator[None]:
    yield
    await World.close_all()


@pytest.mark.parametrize('room', [SIZE, 2 * SIZE, 100 * SIZE])
async def test_of_large_batches_only_what_is_sent_counts(room: int) -> None:
    world = await World.open()
    _, delivery = await scattered(world, [1000] * BATCHES)
    world.pass_time(1000)
    assert await taken(delivery, room) == [kept(number) for number in range(BATCHES)]


async def test_batches_that_must_be_sent_whole_count_whole() -> None:
    world = await World.open()
    _, delivery = await scattered(world, [1000] * BATCHES, 'gzip')
    world.pass_time(1000)
    whole = len(build([(None, b'x' * 980)] * RECORDS, timestamp=START, compression='gzip'))
    assert await taken(delivery, 3 * whole) == [kept(0), kept(1), kept(2)]


async def test_few_batches_are_walked_through_in_one_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, 'FRESH', 3 * SIZE)
    world = await World.open()
    _, delivery = await scattered(world, [1000] * BATCHES)
    world.pass_time(1000)
    found = [await taken(delivery, 100 * SIZE) for _ in range(5)]
    assert [offset for some in found for offset in some] == [kept(number) for number in range(BATCHES)]
    assert max(map(len, found)) <= 4


async def test_what_falls_due_soon_is_made_ready_while_somebody_waits() -> None:
    world = await World.open()
    dues = [1000 + 300 * number for number in range(BATCHES)]
    topic, delivery = await scattered(world, dues)
    excerpts = world.broker.deliveries.excerpts

    def ready() -> list[int]:
        return [n for n in range(BATCHES) if excerpts.last_of(delivery.key, kept(n)) == (n + 1) * RECORDS - 1]

    poll = asyncio.create_task(world.take('m', 1, (topic, 0), wait=60_000, count=10))
    await settled()
    world.pass_time(740)
    await settled()
    assert ready() == []
    world.pass_time(20)
    await settled()
    assert ready() == [0]
    world.pass_time(240)
    assert await poll == [kept(0)]
    poll = asyncio.create_task(world.take('m', 2, (topic, 0), wait=60_000, count=10))
    await settled()
    assert ready() == [0]
    world.pass_time(60)
    await settled()
    assert ready() == [0, 1]
    world.pass_time(240)
    assert await poll == [kept(1)]


async def test_nothing_is_made_ready_where_nobody_waits() -> None:
    world = await World.open()
    _, delivery = await scattered(world, [1000] * BATCHES)
    world.pass_time(900)
    await settled()
    assert world.broker.deliveries.excerpts.last_of(delivery.key, kept(0)) is None


async def test_what_the_log_has_not_any_more_is_not_made_ready() -> None:
    world = await World.open()
    topic, delivery = await scattered(world, [1000] * BATCHES)
    poll = asyncio.create_task(world.take('m', 1, (topic, 0), wait=60_000, count=BATCHES))
    await settled()
    await delivery.partition.log.truncate_before(3 * RECORDS)
    world.pass_time(1000)
    assert await poll == [kept(number) for number in range(3, BATCHES)]


@pytest.mark.parametrize('turns', range(1, 11))
async def test_what_was_reserved_is_moved_on_while_it_is_read(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    monkeypatch.setattr(World, 'delay', 3)
    world = await World.open()
    _, delivery = await scattered(world, [1000] * BATCHES)
    world.pass_time(1000)
    taking = asyncio.create_task(taken(delivery, 100 * SIZE))
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not taking.done()
    await delivery.seek(BATCHES * RECORDS)
    assert await taking == []
