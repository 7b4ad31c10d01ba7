"""What every Log does to keep to retention, and when its beginning is cut off."""

from __future__ import annotations

import pytest
from tests.log.worlds import NOW, WRITTEN, World, batch, contents, put

from acklog.errors import OutOfRange
from acklog.log.seam import Appended, LogConfig

SMALL = 10_000_000  # ms


async def test_truncate_before(world: World) -> None:
    log = await world.open(config=LogConfig(segment_bytes=300))
    for number in range(20):
        await put(log, f'{number}' * 30)
    size = log.size
    assert await log.truncate_before(13) == 13
    assert await log.truncate_before(4) == 13
    assert (log.start, log.end) == (13, 20)
    assert log.size < size // 2
    assert await contents(log) == [f'{n}' * 30 for n in range(13, 20)]
    with pytest.raises(OutOfRange):
        await log.truncate_before(21)
    assert await log.truncate_before(20) == 20
    assert (log.start, log.end, log.size) == (20, 20, 0)
    assert await put(log, 'more') == Appended(20, 20, -1)
    assert await contents(log) == ['more']


async def test_retention_by_size(world: World) -> None:
    config = LogConfig(segment_bytes=400, retention_bytes=1000, retention_ms=-1)
    log = await world.open(config=config)
    for number in range(20):
        await put(log, f'{number:02}' * 20)
    before = log.size
    assert await log.retain(NOW, keep_from=0) == 0
    start = await log.retain(NOW, keep_from=None)
    assert log.start == start > 0
    assert 1000 <= log.size < 1400 < before
    assert await contents(log) == [f'{n:02}' * 20 for n in range(start, 20)]


async def test_retention_by_time(world: World) -> None:
    config = LogConfig(segment_bytes=400, retention_ms=1000)
    log = await world.open(config=config)
    for number in range(20):
        await put(log, f'{number:02}' * 20, now=NOW + 100 * number)
    assert await log.retain(NOW + 1000, keep_from=None) == 0
    start = await log.retain(NOW + 2000, keep_from=None)
    assert 0 < start <= 11
    assert await log.retain(NOW + 2500, keep_from=start) == start
    assert await log.retain(NOW + 10_000, keep_from=None) == 20
    assert (log.start, log.end, log.size) == (20, 20, 0)
    assert await put(log, 'more') == Appended(20, 20, -1)


async def test_a_producers_clock_ahead_keeps_nothing_longer(world: World) -> None:
    log = await world.open(config=LogConfig(retention_ms=1000))
    await log.append(batch('from the future', at=NOW * 2), NOW, WRITTEN)
    assert await log.retain(NOW + 1001, keep_from=None) == 1


async def test_a_segment_is_rolled_by_age(world: World) -> None:
    config = LogConfig(segment_ms=1000, retention_bytes=0, retention_ms=-1)
    log = await world.open(config=config)
    await put(log, 'a', now=NOW)
    await put(log, 'b', now=NOW + 999)
    assert await log.retain(NOW + 999, keep_from=None) == 0
    await put(log, 'c', now=NOW + 1000)
    assert await log.retain(NOW + 1000, keep_from=None) == 2
    assert await log.retain(NOW + 2000, keep_from=None) == 3


async def test_config_may_change(world: World) -> None:
    log = await world.open(config=LogConfig(retention_ms=-1))
    await put(log, 'a')
    assert await log.retain(NOW + SMALL, keep_from=None) == 0
    log.configure(LogConfig(retention_ms=1000))
    assert await log.retain(NOW + SMALL, keep_from=None) == 1
