"""Dead letters in the tests: a group `g` with a topic for them, and a topic `orders` all of which member a holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.api import Refused
from acklog.broker.catalog import topics
from acklog.broker.catalog.catalog import NewTopic
from acklog.broker.catalog.config_changes import change_group
from acklog.core.kinds import Ack
from acklog.log.seam import Durability
from acklog.wire.record_batch import NewRecord, Record, build, records

ACCEPT, RELEASE, REJECT = (bytes([kind]) for kind in (Ack.ACCEPT, Ack.RELEASE, Ack.REJECT))
DLQ = 'dlq.orders'
NAME, COPY = 'errors.deadletterqueue.topic.name', 'errors.deadletterqueue.copy.record.enable'
ENABLE, PREFIX = 'errors.deadletterqueue.group.enable', 'errors.deadletterqueue.topic.name.prefix'
AUTO_CREATE = 'errors.deadletterqueue.auto.create.topics.enable'
EARLIEST = {'share.auto.offset.reset': 'earliest'}


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


async def with_letters(world: World, count: int, **configs: str) -> bytes:
    """`taken`, by a group that has a topic for its dead letters."""
    await dead_letter_topic(world)
    await configure(world, {NAME: DLQ, **{name.replace('_', '.'): text for name, text in configs.items()}})
    return await taken(world, count)


async def folded_anew(world: World) -> None:
    """What the journal lost is read from it again, and what failed is tried again."""
    for _ in range(10):
        await settled()
    world.pass_time(1000)


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
