"""One Produce request for very many partitions: others have their turn, and what a connection sends keeps its order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.admin_world import TOPIC, World
from tests.broker.stretches import longest

from acklog.broker.api import Caller
from acklog.broker.apis.produce import API
from acklog.broker.eager import Eager
from acklog.errors import ProtocolError
from acklog.server.dispatch import Dispatch
from acklog.wire import produce
from acklog.wire.error_code import ErrorCode as Code
from acklog.wire.frame import request_frame
from acklog.wire.record_batch import build, records

PARTITIONS = 1000
LAST = PARTITIONS - 1
AT_ONE_GO = 30_000  # calls: a few milliseconds. What is done for PARTITIONS without turns is a multiple


@pytest.fixture(params=['memory', 'disk'])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    world = await World.open(tmp_path if request.param == 'disk' else None)
    await world.made('orders', PARTITIONS)
    yield world
    await world.close()


def asked(*partitions: tuple[int, bytes], acks: int = 1) -> produce.Request:
    """A record for each of these partitions."""
    batches = [produce.Partition(index, build([value], timestamp=1)) for index, value in partitions]
    return produce.Request(acks, 1000, None, [produce.Topic('orders', None, batches)])


def everywhere(value: bytes, acks: int = 1) -> produce.Request:
    return asked(*((index, value) for index in range(PARTITIONS)), acks=acks)


def begin(world: World, caller: Caller, request: produce.Request) -> asyncio.Future[Any]:
    """Start it, as a connection does."""
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    Eager(
        API.handle(world.broker, caller, 9, request),  # type: ignore[arg-type]
        lambda result, error: ended.set_result(result) if error is None else ended.set_exception(error),
    )
    return ended


async def values(world: World, index: int) -> list[bytes | None]:
    log = world.partition('orders', index).log
    return [record.value for record in records((await log.read(0, 1 << 20)).data)] if log.visible_end else []


@pytest.mark.parametrize('acks', [1, -1])
async def test_others_have_their_turn(world: World, acks: int) -> None:
    pieces = request_frame(0, 9, 1, None, produce.encode_request(9, everywhere(b'x', acks)))
    answer, most = await longest(Dispatch(world.broker).answer(world.caller, memoryview(b''.join(pieces))[4:]))
    assert most < AT_ONE_GO
    [topic] = produce.decode_response(9, memoryview(b''.join(answer or []))[9:]).topics
    assert [(each.index, each.error_code) for each in topic.partitions] == [(n, 0) for n in range(PARTITIONS)]


@pytest.mark.parametrize('acks', [0, 1, -1])
async def test_what_a_connection_publishes_keeps_its_order(world: World, acks: int) -> None:
    """Requests that are sent one behind the other without waiting, whatever their shape."""
    requests = [
        everywhere(b'1', acks),
        asked((LAST, b'2'), acks=acks),
        asked((0, b'3'), (LAST, b'3'), acks=acks),
        everywhere(b'4', acks),
        asked((LAST, b'5'), acks=acks),
    ]
    await asyncio.gather(*(begin(world, world.caller, request) for request in requests))
    assert await values(world, LAST) == [b'1', b'2', b'3', b'4', b'5']
    assert await values(world, 0) == [b'1', b'3', b'4']
    assert await values(world, 1) == [b'1', b'4']


@pytest.mark.parametrize('acks', [0, 1, -1])
async def test_also_where_records_are_looked_into_for_long(world: World, acks: int) -> None:
    """On a topic with records for later, of which one batch takes turns to be read."""
    assert await world.alter(TOPIC, 'orders', ('acklog.deliver.at.enable', 'true')) == (0, None)
    header = [('acklog-deliver-at', b'1')]
    long = build([*[(None, b'1', ())] * 5000, (None, b'1', header)], timestamp=1, compression='gzip')
    first = produce.Request(acks, 1000, None, [produce.Topic('orders', None, [produce.Partition(LAST, long)])])
    requests = [first, asked((LAST, b'2'), acks=acks), everywhere(b'3', acks), asked((LAST, b'4'), acks=acks)]
    await asyncio.gather(*(begin(world, world.caller, request) for request in requests))
    found = await values(world, LAST)
    assert found == [b'1'] * 5001 + [b'2', b'3', b'4']


async def test_another_connection_does_not_wait_for_it(world: World) -> None:
    many = begin(world, world.caller, everywhere(b'many'))
    other = begin(world, Caller('10.0.0.2'), asked((LAST, b'one')))
    await other
    await many
    assert await values(world, LAST) == [b'one', b'many']


async def test_a_partition_that_is_named_again_is_appended_to_in_the_order_of_the_request(world: World) -> None:
    numbers = [b'%d' % number for number in range(300)]
    await begin(world, world.caller, asked(*((number % 2, text) for number, text in enumerate(numbers))))
    assert await values(world, 0) == numbers[::2]
    assert await values(world, 1) == numbers[1::2]


async def test_without_an_answer_what_is_wrong_closes_the_connection_and_the_rest_is_there(world: World) -> None:
    wrong = asked((PARTITIONS, b'x'), *((index, b'x') for index in range(100)), acks=0)
    later = asked((99, b'y'), acks=0)
    outcomes = await asyncio.gather(
        begin(world, world.caller, wrong), begin(world, world.caller, later), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [ProtocolError, type(None)]
    assert await values(world, 99) == [b'x', b'y']


async def test_one_batch_for_a_partition(world: World) -> None:
    two = b''.join([build([b'1'], timestamp=1), build([b'2'], timestamp=1)])
    partitions = [produce.Partition(0, two), produce.Partition(1, build([b'3', b'4'], timestamp=1))]
    request = produce.Request(1, 1000, None, [produce.Topic('orders', None, partitions)])
    [topic] = (await begin(world, world.caller, request)).topics
    assert [each.error_code for each in topic.partitions] == [Code.INVALID_RECORD, Code.NONE]
    assert (await values(world, 0), await values(world, 1)) == ([], [b'3', b'4'])


async def test_more_partitions_than_there_can_be_are_no_request(world: World) -> None:
    """Each would be told that it is not there."""
    partitions = [produce.Partition(index, None) for index in range(50_000)]
    many = produce.Request(1, 1000, None, [produce.Topic('orders', None, partitions)])
    with pytest.raises(ProtocolError, match='more elements'):
        produce.decode_request(9, b''.join(produce.encode_request(9, many)))
