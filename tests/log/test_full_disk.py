"""Disks that are full, and writes that are short: what is refused, what recovers by itself, what the reserve is for."""

from __future__ import annotations

import asyncio
import errno
import random

import pytest
from tests.log.slow_disk import LOG
from tests.log.worlds import NOW, SYNCED, WRITTEN, LocalWorld, batch, contents, put

from acklog.errors import Full
from acklog.log.seam import Appended, LogConfig


async def test_short_writes_are_completed(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=3000))
    local.files.short_writes = random.Random(1)
    values = [f'{n}' * 40 for n in range(60)]
    await asyncio.gather(*(put(log, value) for value in values))
    assert await contents(log) == values
    await local.kill()
    assert await contents(await local.open()) == values


async def test_a_full_disk_refuses_and_recovers_by_itself(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', producer=(7, 0, 0))
    local.files.memory.capacity = 400  # the batch does not fit, a part of it does
    with pytest.raises(Full):
        await put(log, 'b' * 500, producer=(7, 0, 1))
    assert (log.end, log.visible_end) == (1, 1)
    assert await contents(log) == ['a']
    local.files.memory.capacity = None
    assert await put(log, 'b' * 500, producer=(7, 0, 1)) == Appended(1, 1, -1)
    assert await contents(log) == ['a', 'b' * 500]
    await local.kill()
    assert await contents(await local.open()) == ['a', 'b' * 500]


async def test_a_turn_that_does_not_fit_has_not_happened(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a')
    local.files.fail('pwritev', errno.ENOSPC, LOG)
    turn = [put(log, 'b', producer=(7, 0, 0)), put(log, 'c', durability=SYNCED), put(log, 'b', producer=(7, 0, 0))]
    results = await asyncio.gather(*turn, return_exceptions=True)
    assert [type(each) for each in results] == [Full] * 3
    assert await put(log, 'b', producer=(7, 0, 0)) == Appended(1, 1, -1)


async def test_no_space_for_a_new_segment(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=200))
    await put(log, 'a' * 100)
    local.files.fail('open', errno.ENOSPC, '*2.log', times=None)
    local.files.fail('open', errno.ENOSPC, '*1.log', times=2)
    for _ in range(2):
        with pytest.raises(Full):
            await put(log, 'b' * 100)
    assert await put(log, 'b' * 100) == Appended(1, 1, -1)
    assert await contents(log) == ['a' * 100, 'b' * 100]


async def test_internal_logs_use_the_reserve_and_publishing_waits_for_space() -> None:
    local = LocalWorld(reserve_bytes=16_000)
    public, internal = await local.open(), await local.open('__state', internal=True)
    await put(public, 'a')
    local.files.memory.capacity = 16_000 + 2000
    with pytest.raises(Full):
        await put(public, 'x' * 4000)
    for number in range(10):
        await put(internal, f'{number}' * 1000, durability=SYNCED)
    with pytest.raises(Full):
        await put(public, 'b', now=NOW + 1)  # there would be room, but it is not for publishers
    assert await contents(public) == ['a']
    local.files.memory.capacity = 100_000
    with pytest.raises(Full):
        await put(public, 'b', now=NOW + 2)  # not looked at again yet
    assert await put(public, 'b', now=NOW + 1000) == Appended(1, 1, -1)
    assert len(await contents(internal)) == 10
    await local.close()


async def test_the_reserve_comes_to_an_end() -> None:
    local = LocalWorld(reserve_bytes=4000)
    internal = await local.open('__state', internal=True)
    local.files.memory.capacity = 6000
    with pytest.raises(Full):
        for number in range(20):
            await put(internal, f'{number:02}' * 500)
    found = await contents(internal)
    assert len(found) >= 4
    local.files.memory.capacity = None
    await put(internal, 'more')
    assert await contents(internal) == [*found, 'more']
    await local.close()


async def test_cutting_and_keeping_to_retention_on_a_full_disk() -> None:
    local = LocalWorld(reserve_bytes=16_000)
    config = LogConfig(segment_bytes=2000, retention_ms=-1)
    log = await local.open(config=config)
    for number in range(20):
        await log.append(batch(f'{number}' * 300, producer=(7, 0, number)), NOW, WRITTEN)
    internal = await local.open('__state', config, internal=True)
    await internal.append(batch('a'), NOW, WRITTEN)
    local.files.memory.capacity = local.files.memory.used
    with pytest.raises(Full):
        await log.append(batch('more'), NOW, WRITTEN)
    assert await log.truncate_before(3) == 3
    await internal.append(batch('b'), NOW, SYNCED)
    log.configure(LogConfig(segment_bytes=2000, retention_ms=-1, retention_bytes=3000))
    assert await log.retain(NOW, None) > 3
    assert await internal.truncate_before(2) == 2
    end = log.end
    assert await log.truncate_before(end) == end
    assert log.size == 0
    local.files.memory.capacity = 60_000
    again = batch('19' * 300, producer=(7, 0, 19))
    assert (await log.append(again, NOW + 1000, SYNCED)).duplicate
    await local.power_loss()
    log = await local.open(config=config)
    assert (log.start, log.end) == (end, end)
    assert (await log.append(again, NOW + 2000, SYNCED)).duplicate
    await local.close()


async def test_a_reserve_that_cannot_be_made_smaller_is_still_there() -> None:
    local = LocalWorld(reserve_bytes=16_000)
    internal = await local.open('__state', internal=True)
    await put(internal, 'a')
    local.files.memory.capacity = local.files.memory.used
    local.files.fail('truncate', errno.EIO, '*/reserve', times=20)
    for _ in range(20):
        with pytest.raises(Full):
            await put(internal, 'b' * 500)
    await put(internal, 'b' * 500, durability=SYNCED)
    assert await contents(internal) == ['a', 'b' * 500]
    await local.close()
