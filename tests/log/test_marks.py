"""A failed sync is known to the next process, whatever keeps the log from saying so."""

from __future__ import annotations

import asyncio
import errno

import pytest
from tests.log.slow_disk import LOG, Gate, soon
from tests.log.worlds import NOW, SYNCED, LocalWorld, contents, put

from acklog.errors import LogError
from acklog.log.disk import finish
from acklog.log.seam import Appended, LogConfig

MARK = '*/sync-failed'
LONG = 'b' * 1000  # some sectors of it lie before what follows


async def fail_a_sync(local: LocalWorld, error: int = errno.ENOSPC) -> None:
    """The log `log` has one record on disk, and one that the operating system has and will not write."""
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    local.files.fail('open', error, MARK, times=None)
    local.files.fail('rename', error, '*.log.new', times=None)
    local.files.fail('fdatasync', error, LOG)
    with pytest.raises(LogError):
        await put(log, LONG, durability=SYNCED)


async def goes_on_and_loses_nothing(local: LocalWorld) -> None:
    """Not even by a power loss: what no sync had covered was written anew when the log was opened."""
    await put(await local.open(), 'c', durability=SYNCED)
    await local.power_loss()
    assert await contents(await local.open()) == ['a', LONG, 'c']


@pytest.mark.parametrize('error', [errno.ENOSPC, errno.EIO, errno.EROFS])
async def test_the_next_process_writes_anew_what_no_sync_covered(local: LocalWorld, error: int) -> None:
    await fail_a_sync(local, error)
    await local.kill()
    await goes_on_and_loses_nothing(local)


async def test_so_does_the_one_after_it(local: LocalWorld) -> None:
    await fail_a_sync(local)
    for _ in range(3):
        await local.kill()
    await goes_on_and_loses_nothing(local)


async def test_opened_again_by_the_same_process(local: LocalWorld) -> None:
    await fail_a_sync(local)
    log = await local.open()
    with pytest.raises(LogError):
        await log.close()
    local.files.heal()
    await goes_on_and_loses_nothing(local)


async def test_killed_before_the_loop_hears_of_the_failed_sync(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    gate = Gate(local)
    local.files.fail('fdatasync', errno.EIO, LOG)
    appending = asyncio.ensure_future(put(log, LONG, durability=SYNCED))
    await soon(lambda: gate.begun)
    gate.open()
    local.directory._shared.syncer.stop()  # the thread is through, and the loop had no turn
    await local.kill()
    await asyncio.gather(appending, return_exceptions=True)
    await goes_on_and_loses_nothing(local)


async def test_logs_without_unsynced_bytes_are_not_written_anew(
    local: LocalWorld, caplog: pytest.LogCaptureFixture
) -> None:
    other = await local.open('other')
    await put(other, 'x')
    await other.truncate_before(1)
    await fail_a_sync(local)
    await local.kill()
    assert await put(await local.open('other'), 'y', durability=SYNCED) == Appended(1, 1, -1)
    assert 'other: what no sync covered' not in caplog.text


@pytest.mark.parametrize('end', ['restart', 'power loss'])
async def test_it_is_over_when_all_is_on_disk(local: LocalWorld, end: str) -> None:
    await fail_a_sync(local)
    if end == 'restart':
        await local.kill()
        await local.open()
        await local.restart()
    else:
        await local.power_loss()
    await put(await local.open(), 'c')
    await local.kill()
    assert not (await local.open()).store.sync_failed  # type: ignore[attr-defined]


async def test_killed_after_a_failed_sync_of_what_alone_names_the_producers(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=300))
    await put(log, 'a' * 200, producer=(7, 0, 0))
    await put(log, 'b' * 200)
    local.files.fail('fdatasync', errno.EIO, f'*/{1:020d}.index')
    with pytest.raises(LogError):
        await log.truncate_before(1)
    await local.kill()
    log = await local.open(config=LogConfig(segment_bytes=300))
    assert await log.retain(NOW, None) == 1
    assert len(log.store.segments) == 1  # type: ignore[attr-defined]
    await local.power_loss()
    log = await local.open()
    assert await contents(log) == ['b' * 200]
    assert await put(log, 'a' * 200, producer=(7, 0, 0)) == Appended(0, 0, -1, True)


async def test_killed_while_a_log_is_closed_and_a_sync_fails(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    await put(log, LONG)
    local.files.fail('fdatasync', errno.EIO, LOG)
    with pytest.raises(OSError, match='Input/output error'):
        finish(log.store)  # type: ignore[attr-defined]  # in its thread, and the loop had no turn
    await local.kill()
    await goes_on_and_loses_nothing(local)


@pytest.mark.parametrize('killed', [False, True])
async def test_a_failed_sync_of_a_torn_end_that_was_cut(local: LocalWorld, killed: bool) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    await put(log, LONG)
    await local.kill()
    path = f'{local.path}/logs/log/{0:020}.log'
    handle = local.files.open(path)
    local.files.pwritev(handle, [b'torn'], local.files.size(handle))
    local.files.close(handle)
    local.files.fail('fdatasync', errno.EIO, LOG)
    with pytest.raises(LogError):
        await local.open()
    if killed:
        await local.kill()
    await goes_on_and_loses_nothing(local)
