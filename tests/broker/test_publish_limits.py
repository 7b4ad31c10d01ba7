"""What is refused of a publish: batches that are too large or cannot be, times that are too far away (KIP-937)."""

from __future__ import annotations

import struct
from typing import Any

import crc32c
import pytest
from tests.broker.admin_world import BROKER, NOW, TOPIC, World

from acklog.broker.apis.produce import API
from acklog.wire import produce
from acklog.wire.error_code import ErrorCode as Code
from acklog.wire.record_batch import NewRecord, build

HOUR = 3_600_000


async def publish(world: World, *times: int, size: int = 1) -> int:
    return await send(world, build([NewRecord(None, b'x' * size, (), when) for when in times], timestamp=times[0]))


async def send(world: World, batch: bytes | bytearray) -> int:
    topic = produce.Topic('orders', None, [produce.Partition(0, memoryview(batch))])
    answer: Any = await API.handle(world.broker, world.caller, 9, produce.Request(1, 1000, None, [topic]))
    return int(answer.topics[0].partitions[0].error_code)


@pytest.fixture
async def world() -> World:
    world = await World.open()
    await world.made('orders')
    return world


async def test_times(world: World) -> None:
    assert await publish(world, NOW + HOUR) == 0
    assert await publish(world, NOW, NOW + HOUR + 1) == Code.INVALID_TIMESTAMP
    assert await publish(world, 0) == await publish(world, -1) == 0
    await world.alter(TOPIC, 'orders', ('message.timestamp.before.max.ms', '10'))
    assert await publish(world, NOW - 10) == await publish(world, -1) == 0
    assert await publish(world, NOW - 11) == Code.INVALID_TIMESTAMP
    await world.alter(TOPIC, 'orders', ('message.timestamp.type', 'LogAppendTime'))
    assert await publish(world, NOW - 11) == await publish(world, NOW + HOUR + 1) == 0


async def test_sizes(world: World) -> None:
    assert await publish(world, NOW, size=1_000_000) == 0
    assert await publish(world, NOW, size=1_100_000) == Code.MESSAGE_TOO_LARGE
    await world.alter(BROKER, '', ('message.max.bytes', '2000000'))
    assert await publish(world, NOW, size=1_100_000) == 0
    await world.alter(TOPIC, 'orders', ('max.message.bytes', '100'))
    assert await publish(world, NOW, size=100) == Code.MESSAGE_TOO_LARGE


CRC, ATTRIBUTES, LAST_DELTA, PRODUCER_ID, COUNT = 17, 21, 23, 43, 57


@pytest.mark.parametrize(
    ('what', 'position', 'form', 'value', 'code'),
    [
        ('its CRC', CRC, None, b'\0\0\0\0', Code.CORRUPT_MESSAGE),
        ('format v0', 16, None, b'\0', Code.INVALID_RECORD),
        ('format v1', 16, None, b'\1', Code.INVALID_RECORD),
        ('no record', COUNT, '>i', 0, Code.INVALID_RECORD),
        ('two records of one', COUNT, '>i', 2, Code.INVALID_RECORD),
        ('a gap behind it', LAST_DELTA, '>i', 5, Code.INVALID_RECORD),
        ('a control batch', ATTRIBUTES, '>h', 0x20, Code.INVALID_RECORD),
        ('no sequence', PRODUCER_ID, '>q', 7, Code.INVALID_RECORD),
    ],
)
async def test_what_cannot_be(world: World, what: str, position: int, form: str | None, value: Any, code: Code) -> None:
    """Codes are those of Apache Kafka 4.4: producers send anew what is corrupt, and give up what is invalid."""
    batch = build([NewRecord(None, b'x', (), NOW)], timestamp=NOW)
    if form is None:
        batch[position : position + len(value)] = value
    else:
        struct.pack_into(form, batch, position, value)
        struct.pack_into('>I', batch, CRC, crc32c.crc32c(memoryview(batch)[ATTRIBUTES:]))
    assert await send(world, batch) == code
