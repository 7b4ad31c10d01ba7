"""Writes and syncs that fail: nobody is answered, and what no sync covered is written anew."""

from __future__ import annotations

import asyncio
import errno
import random
import time

import pytest
from tests.log.slow_disk import LOG, Gate, soon
from tests.log.worlds import NOW, SYNCED, LocalWorld, contents, put

from acklog.errors import Failed, Full, LogError
from acklog.log.seam import Appended, LogConfig


async def test_a_failed_sync_answers_nobody_and_the_bytes_are_written_anew(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    local.files.fail('fdatasync', errno.EIO, LOG)
    waiting = [asyncio.ensure_future(put(log, value, durability=SYNCED)) for value in 'bc']
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in results] == [Failed, Failed]
    await soon(lambda: local.files.calls['rename'] > 2)
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await contents(log) == ['a', 'b', 'c']
    assert await put(log, 'd', durability=SYNCED) == Appended(3, 3, -1)
    await local.power_loss()
    assert await contents(await local.open()) == ['a', 'b', 'c', 'd']


async def test_a_failed_first_sync_of_a_log(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=300))
    gate = Gate(local)
    for number in range(6):
        await put(log, f'{number}' * 100)
    local.files.fail('fdatasync', errno.EIO, LOG)
    flushing = asyncio.ensure_future(log.flush())
    await asyncio.sleep(0)
    gate.open()
    with pytest.raises(Failed):
        await flushing
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await put(log, 'x', durability=SYNCED) == Appended(6, 6, -1)
    await local.power_loss()
    assert await contents(await local.open()) == [*(f'{n}' * 100 for n in range(6)), 'x']


async def test_a_sync_right_after_a_failed_one_proves_nothing(local: LocalWorld) -> None:
    log = await local.open()
    gate = Gate(local)
    waiting = [asyncio.ensure_future(put(log, 'a', durability=SYNCED))]
    await soon(lambda: gate.begun == 1)
    waiting.append(asyncio.ensure_future(put(log, 'b', durability=SYNCED)))
    await soon(lambda: log.visible_end == 2)  # and asked for a sync of its own
    local.files.fail('fdatasync', errno.EIO, LOG)
    gate.open()
    time.sleep(0.05)  # noqa: ASYNC251 - the thread goes on; the loop does not hear of it
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in results] == [Failed, Failed]
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    await put(log, 'c', durability=SYNCED)
    await local.power_loss()
    assert await contents(await local.open()) == ['a', 'b', 'c']


async def test_no_space_at_a_sync_says_so(local: LocalWorld) -> None:
    log = await local.open()
    local.files.fail('fdatasync', errno.ENOSPC, LOG)
    with pytest.raises(Full):
        await put(log, 'a', durability=SYNCED)
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await contents(log) == ['a']


async def test_while_it_cannot_be_written_anew_writes_fail_and_reads_go_on(local: LocalWorld) -> None:
    log, other = await local.open(), await local.open('other')
    await put(log, 'a', durability=SYNCED)
    local.files.fail('fdatasync', errno.EIO, '*/logs/log/*', times=None)
    with pytest.raises(Failed):
        await put(log, 'b', durability=SYNCED)
    for turn in range(3):
        with pytest.raises(Failed):
            await put(log, 'c', now=NOW + 1000 * turn)
        await asyncio.sleep(0.01)
    with pytest.raises(Failed):
        await log.flush()
    assert await contents(log) == ['a', 'b']
    assert await put(other, 'x', durability=SYNCED) == Appended(0, 0, -1)
    local.files.heal()
    with pytest.raises(Failed):
        await put(log, 'c', now=NOW + 10_000)
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await put(log, 'c', durability=SYNCED) == Appended(2, 2, -1)


async def test_what_a_failed_sync_has_lost_is_cut_at_the_next_opening(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    local.files.fail('fdatasync', errno.EIO, LOG, unseen=True)
    with pytest.raises(Failed):
        await put(log, 'b', durability=SYNCED)
    await asyncio.sleep(0.05)
    with pytest.raises(Failed):
        await put(log, 'c')
    await local.kill()
    log = await local.open()
    assert await contents(log) == ['a']
    assert await put(log, 'c', durability=SYNCED) == Appended(1, 1, -1)


async def test_killed_after_a_failed_sync_the_next_process_writes_anew(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    local.files.fail('fdatasync', errno.EIO, '*/logs/log/*', times=None)
    with pytest.raises(Failed):
        await put(log, 'b', durability=SYNCED)
    await local.kill()
    log = await local.open()
    assert await contents(log) == ['a', 'b']
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    await put(log, 'c', durability=SYNCED)
    await local.power_loss()
    assert await contents(await local.open()) == ['a', 'b', 'c']


async def test_what_needs_another_segment_when_the_write_before_it_fails(local: LocalWorld) -> None:
    """In one turn: nothing goes to a log that is being written anew."""
    log = await local.open(config=LogConfig(segment_bytes=400))
    await put(log, 'a' * 100)
    local.files.fail('pwritev', errno.EIO, LOG)
    results = await asyncio.gather(*(put(log, value * 100) for value in 'bc'), return_exceptions=True)
    assert [type(each) for each in results] == [Failed, Failed]
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await put(log, 'd', durability=SYNCED) == Appended(1, 1, -1)
    await local.power_loss()
    assert await contents(await local.open()) == ['a' * 100, 'd']


async def test_a_failed_write_that_cannot_be_cut_back(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', producer=(7, 0, 0))
    local.files.short_writes = random.Random(2)
    local.files.fail('pwritev', errno.EIO, LOG, after=1)
    local.files.fail('truncate', errno.EIO, LOG)
    with pytest.raises(Failed):
        await put(log, 'b' * 100, producer=(7, 0, 1))
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await put(log, 'b', producer=(7, 0, 1)) == Appended(1, 1, -1)
    assert await contents(log) == ['a', 'b']
    await local.kill()
    assert await contents(await local.open()) == ['a', 'b']


async def test_a_log_that_cannot_be_closed_cleanly_leaves_the_others_clean(local: LocalWorld) -> None:
    log, other = await local.open(), await local.open('other')
    await put(log, 'a', durability=SYNCED)
    await put(other, 'x')
    local.files.fail('fdatasync', errno.EIO, '*/logs/log/*', times=None)
    await put(log, 'b')
    epoch = log.epoch
    with pytest.raises(LogError):
        await local.directory.close()
    local.files.heal()
    local.directory = local._start()
    other = await local.open('other')
    assert other.epoch == epoch + 1
    assert await contents(other) == ['x']
    assert await contents(await local.open()) == ['a', 'b']


async def test_a_sync_that_fails_while_the_log_is_closed(local: LocalWorld) -> None:
    """What no sync covered is written anew by whoever opens the log next, not beside it by the one that was closed."""
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    gate = Gate(local)
    local.files.fail('fdatasync', errno.EIO, LOG)
    appending = asyncio.ensure_future(put(log, 'b', durability=SYNCED))
    await soon(lambda: gate.begun)
    closing = asyncio.ensure_future(log.close())
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(appending, closing, return_exceptions=True)
    assert all(isinstance(each, LogError) for each in results)
    renamed = local.files.calls['rename']
    await asyncio.sleep(0.05)
    assert local.files.calls['rename'] == renamed
    log = await local.open()
    assert await contents(log) == ['a', 'b']


async def test_a_start_that_retention_moved_in_memory_only(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=300, retention_ms=-1, retention_bytes=300))
    for value in 'abcd':
        await put(log, value * 200, durability=SYNCED)
    local.files.fail('unlink', errno.EIO)
    with pytest.raises(Failed):
        await log.retain(NOW, None)
    local.files.fail('unlink', errno.EIO)
    with pytest.raises(Failed):
        await log.truncate_before(1)
    start = await log.truncate_before(1)
    assert start == log.start >= 1
    await local.power_loss()
    assert (await local.open()).start == start
