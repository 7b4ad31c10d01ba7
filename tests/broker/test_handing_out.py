"""What members without a Kafka client are given of batches that are broken, unpack to very much, or lack records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from pytest import MonkeyPatch
from tests.broker.groups_world import World
from tests.broker.stretches import longest
from tests.lines import at_most

from acklog.broker.api import Caller, Refused
from acklog.broker.eager import turn
from acklog.broker.operations import Ack, Delivery
from acklog.errors import CorruptBatch
from acklog.log.seam import Durability
from acklog.wire import compression
from acklog.wire import record_batch as rb
from acklog.wire.error_code import ErrorCode

CALLER = Caller('10.0.0.1')
GZIP, ZSTD = 1, 4
AT_ONE_GO = 20_000  # calls: a few milliseconds


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = await World.open({'group.share.delivery.count.limit': '3'})
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    yield world
    await World.close_all()


async def take(world: World, count: int = 100, max_bytes: int = 1 << 20) -> list[Delivery]:
    return await world.broker.operations.acquire(CALLER, 'g', 'm', ['t'], count, max_bytes)


async def append(world: World, topic: bytes, *batches: bytes | bytearray, index: int = 0) -> None:
    for batch in batches:
        partition = world.broker.partition(topic, index)
        assert partition is not None
        await partition.append(bytearray(batch), world.now, Durability.WRITTEN)


def batch(*values: bytes, packed: str = 'none') -> bytearray:
    return rb.build(list(values), timestamp=1, compression=packed)


def with_body(body: bytes, records: int, kind: int = 0) -> bytearray:
    """A batch that has been checked on its way in, though what is inside is anything."""
    made = rb.build([b''] * records, timestamp=1)[: rb.HEADER_SIZE] + body
    made[8:12] = (len(made) - 12).to_bytes(4)
    made[22] = kind
    made[17:21] = rb._crc32c.crc32c(memoryview(made)[21:]).to_bytes(4)
    assert rb.check(made, 1 << 20)
    return made


def offsets(records: Sequence[Delivery]) -> list[int]:
    return [record.offset for record in records]


BROKEN = {
    'nonsense': with_body(b'\xff' * 50, 2),
    'cut off': with_body(bytes(batch(b'a', b'b'))[rb.HEADER_SIZE : -1], 2),
    'fewer than it says': with_body(bytes(batch(b'a' * 10))[rb.HEADER_SIZE :], 2),
    'no gzip': with_body(b'nonsense', 2, GZIP),
    'no zstd': with_body(b'nonsense', 2, ZSTD),
    'unpacks to too much': with_body(compression.compress('gzip', bytes(rb.MAX_UNPACKED + 1)), 2, GZIP),
}


@pytest.mark.parametrize('broken', BROKEN.values(), ids=BROKEN)
async def test_a_broken_batch_does_not_take_others_along(world: World, broken: bytearray) -> None:
    topic = await world.topic('t', 2)
    await append(world, topic, batch(b'0'), broken, batch(b'3'))
    await append(world, topic, batch(b'other'), index=1)
    records = await take(world)
    given = {(record.partition, record.offset) for record in records}
    assert {(0, 0), (0, 3), (1, 0)} <= given
    assert all(world.fate(topic, offset).startswith('acquired') for _, offset in given)
    for offset in {1, 2} - set(offsets(records)):
        assert world.fate(topic, offset) == 'available after 1 failure'


async def test_what_nobody_can_unpack_dies_with_the_reason(world: World) -> None:
    topic = await world.topic('t')
    await append(world, topic, BROKEN['no gzip'])
    for _ in range(4):  # together, together, and for the last time each alone
        with pytest.raises(CorruptBatch):
            await take(world)
    assert await take(world) == []
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['dead after 3 failure'] * 2
    [first, _] = (await world.broker.operations.dead(CALLER, 'g')).items
    assert (first.attempts, first.words.partition(' data')[0]) == (3, 'gzip')


async def test_a_compression_that_is_not_installed(world: World, monkeypatch: MonkeyPatch) -> None:
    topic = await world.topic('t')
    await append(world, topic, batch(b'a', packed='gzip'))

    def unavailable(*_: Any) -> bytes:
        raise compression.CompressionUnavailable('install it')

    monkeypatch.setattr(compression, 'decompress', unavailable)
    for call in (take(world), world.broker.operations.record(CALLER, 't', 0, 0)):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize('packed', ['none', 'gzip'])
async def test_no_more_bytes_than_asked_for_unpacked(world: World, packed: str) -> None:
    topic = await world.topic('t', 2)
    for index in (0, 1):
        await append(world, topic, batch(*[bytes(1000)] * 10, packed=packed), batch(b'-', packed=packed), index=index)
    given: list[Delivery] = []
    while len(given) < 22:
        records = await take(world, max_bytes=2500)
        assert records
        assert sum(len(record.value or b'') for record in records) <= 3500
        assert {record.attempts for record in records} == {0}
        given += records
    assert sorted((record.partition, record.offset) for record in given) == [(p, o) for p in (0, 1) for o in range(11)]
    assert {world.fate(topic, offset) for offset in range(11)} == {'acquired m'}


async def test_one_record_always_fits(world: World) -> None:
    topic = await world.topic('t')
    await append(world, topic, batch(bytes(5000), bytes(5000), packed='gzip'))
    assert [offsets(await take(world, max_bytes=1)) for _ in range(2)] == [[0], [1]]


async def test_an_offset_without_a_record_is_a_gap(world: World) -> None:
    """Its batch says that there are three; two of them have the same offset."""
    topic = await world.topic('t')
    one, two, _ = (bytes(batch(*[b'-'] * number))[rb.HEADER_SIZE :] for number in (1, 2, 3))
    await append(world, topic, with_body(one + two, 3))
    assert offsets(await take(world)) == [0, 1]
    assert world.fate(topic, 2) == 'done'


async def test_many_broken_batches(world: World) -> None:
    """Each is told apart from the others without looking at all of them."""
    topic = await world.topic('t')
    await append(world, topic, with_body(b'\xff' * 7, 1) * 5000, batch(b'whole'))
    with at_most(lines=3_000_000):
        assert [record.value for record in await take(world, 10_000)] == [b'whole']


MANY = 20_000


@pytest.mark.parametrize('begin', [0, MANY - 10])
async def test_others_have_their_turn_while_records_are_looked_for(world: World, begin: int) -> None:
    """In a batch with very many, from its beginning and far into it."""
    topic = await world.topic('t')
    await append(world, topic, batch(*[b''] * MANY, packed='zstd'))
    await take(world, 1)
    await seek(world, begin)
    records, most = await longest(take(world, 1000))
    assert offsets(records) == list(range(begin, min(begin + 1000, MANY)))
    assert most < AT_ONE_GO


async def seek(world: World, offset: int) -> None:
    for delivery in world.broker.deliveries.of_group(world.catalog.groups['g'].id):
        await delivery.seek(offset)


@pytest.mark.parametrize('max_bytes', [1 << 20, 100])
async def test_what_is_taken_away_while_records_are_looked_for_is_left_alone(world: World, max_bytes: int) -> None:
    """The member leaves before it is answered: what it had taken is with another one by then, or free."""
    topic = await world.topic('t')
    await append(world, topic, batch(*[b'0123456789'] * MANY, packed='zstd'))
    await take(world, 1)
    await seek(world, MANY - 100)
    begun = asyncio.ensure_future(take(world, 100, max_bytes))
    while not world.fate(topic, MANY - 1).startswith('acquired'):
        await turn()
    assert not begun.done()
    await world.broker.operations.leave(CALLER, 'g', 'm')
    others = await world.broker.operations.acquire(CALLER, 'g', 'other', ['t'], 50, 1 << 20)
    assert offsets(others) == list(range(MANY - 100, MANY - 50))
    late = await begun
    assert {world.fate(topic, record.offset) for record in others} == {'acquired other'}
    assert {world.fate(topic, offset) for offset in range(MANY - 50, MANY)} == {'available'}
    results = await world.broker.operations.acknowledge(CALLER, 'g', [Ack(each.lock, 'accept') for each in late])
    assert {result.code for result in results} == {'lost'}


async def test_one_record_of_very_many_is_shown_with_turns_for_others(world: World) -> None:
    topic = await world.topic('t')
    await append(world, topic, batch(*[b''] * MANY, b'last', packed='gzip'))
    found, most = await longest(world.broker.operations.record(CALLER, 't', 0, MANY))
    assert found.value == b'last'
    assert most < AT_ONE_GO


async def test_many_records_that_are_renewed_twice_at_once(world: World) -> None:
    """What was said of each before is found without looking at all that was said."""
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    topic = await world.topic('t')
    await append(world, topic, batch(*[b''] * 2000))
    renewals = [Ack(record.lock, 'renew') for record in await take(world, 2000)]
    assert len(renewals) == 2000
    with at_most(lines=3_000_000):
        results = await world.broker.operations.acknowledge(CALLER, 'g', renewals * 5)
    assert [result.code for result in results] == ['ok'] * 5 * 2000
