"""A clock that is set forward or back in the tests: a group with delays and locks, and what is asked of it."""

from __future__ import annotations

from tests.broker.groups_world import World, delivery_of

from acklog.wire.acknowledgements import RELEASE

HOUR = 3_600_000
STEPS = [HOUR, 2_600, -2_600, -HOUR]
CONFIGS = {
    'share.auto.offset.reset': 'earliest',
    'share.record.lock.duration.ms': '30000',
    'share.session.timeout.ms': '45000',
    'acklog.retry.backoff': 'fixed:20s',
}


async def begun(world: World, records: int, **configs: str) -> bytes:
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda _: CONFIGS | configs)
    await world.publish(topic, records)
    return topic


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
