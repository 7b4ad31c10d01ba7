"""Starts that end before every log was opened, and logs that were opened and never written to."""

from __future__ import annotations

import errno

import pytest
from tests.log.slow_disk import Gate
from tests.log.test_marks import fail_a_sync, goes_on_and_loses_nothing
from tests.log.worlds import SYNCED, LocalWorld, contents, put

from acklog.errors import LogError
from acklog.log.directory import DataDirectory
from acklog.log.faulty_files import FaultyFiles
from acklog.log.seam import Appended, LogConfig

SMALL = LogConfig(segment_bytes=300)


async def end_early(local: LocalWorld, end: str) -> None:
    """The process that has been started opens no log."""
    if end != 'none':
        await getattr(local, end)()


@pytest.mark.parametrize('end', ['none', 'kill', 'restart'])
async def test_what_a_power_loss_tore_is_cut_by_whoever_opens_the_log(local: LocalWorld, end: str) -> None:
    log = await local.open(config=SMALL)
    await put(log, 'a', durability=SYNCED)
    gate = Gate(local)
    for value in 'bcd':
        await put(log, value * 200)
    local.files.kill()
    gate.open()
    await local.power_loss(paths='*1.log')  # of what lies in between
    await end_early(local, end)
    log = await local.open(config=SMALL)
    assert await contents(log) == ['a']
    assert await put(log, 'e', durability=SYNCED) == Appended(1, 1, -1)


@pytest.mark.parametrize('end', ['none', 'kill', 'restart'])
async def test_what_an_index_says_beyond_a_power_loss_is_checked(
    local: LocalWorld, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('acklog.log.appender.MARK_BYTES', 1000)
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    for value in 'bc':
        await put(log, value * 1000)
    memory = local.files.memory
    await local.power_loss(paths='nothing')
    memory.corrupt(f'{local.path}/logs/log/{0:020}.log', 300, bytes(512))
    await end_early(local, end)
    assert await contents(await local.open()) == ['a']


async def test_a_start_after_all_logs_were_opened_knows_that_the_machine_stayed_up(local: LocalWorld) -> None:
    for name in ('log', 'other'):
        await put(await local.open(name), 'a')
    await local.power_loss(paths='nothing')
    await put(await local.open('log'), 'b')
    await local.kill()
    assert not local.directory._run.same_run
    for name in ('log', 'other'):
        await put(await local.open(name), 'c')
    await local.kill()
    assert local.directory._run.same_run
    assert await contents(await local.open()) == ['a', 'b', 'c']


async def test_a_clean_close_says_nothing_of_logs_that_were_not_opened(local: LocalWorld) -> None:
    await fail_a_sync(local)
    await local.kill()
    epoch = local.directory.epoch
    await put(await local.open('other'), 'x')
    await local.restart()
    assert local.directory.epoch == epoch + 1
    await goes_on_and_loses_nothing(local)


async def test_where_it_is_not_known_whether_the_machine_stayed_up(
    local: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FaultyFiles, 'identity', lambda self, handle: '')
    await local.kill()
    await fail_a_sync(local)
    await local.kill()
    await goes_on_and_loses_nothing(local)


@pytest.mark.parametrize('append_fails', [False, True])
async def test_opened_closed_and_opened_again_without_a_record(local: LocalWorld, append_fails: bool) -> None:
    log = await local.open()
    if append_fails:
        local.files.fail('mkdir', errno.ENOSPC)
        with pytest.raises(LogError):
            await put(log, 'a')
    await log.close()
    assert await put(await local.open(), 'a') == Appended(0, 0, -1)


@pytest.mark.parametrize('operation', ['open', 'size', 'pwritev'])
@pytest.mark.parametrize('end', ['close', 'restart'])
async def test_the_directory_of_a_log_whose_first_append_failed(local: LocalWorld, operation: str, end: str) -> None:
    """It is on disk before a record in it counts as being there, in a later process too."""
    log = await local.open()
    local.files.fail(operation, errno.ENOSPC, '*.log')
    with pytest.raises(LogError):
        await put(log, 'a')
    if end == 'close':
        await log.close()
    else:
        await local.restart()
    await put(await local.open(), 'b', durability=SYNCED)
    await local.power_loss()
    assert await contents(await local.open()) == ['b']


async def test_a_directory_that_was_made_although_that_failed(local: LocalWorld) -> None:
    log = await local.open()
    local.files.memory.mkdir(f'{local.path}/logs/log')
    await put(log, 'a', durability=SYNCED)
    await local.power_loss()
    assert await contents(await local.open()) == ['a']


@pytest.mark.parametrize('operation', ['truncate', 'pwritev', 'open', 'listdir', 'rename', 'fsync_dir', 'unlink'])
@pytest.mark.parametrize('after', range(4))
async def test_a_start_that_failed_leaves_nothing_locked(local: LocalWorld, operation: str, after: int) -> None:
    await put(await local.open(), 'a')
    await local.directory.close()
    local.files.fail(operation, errno.EIO, '/data*', after=after)
    try:
        local.directory = DataDirectory(local.path, local.files)
    except OSError:
        assert local.files.memory.open_handles == 0
        local.directory = DataDirectory(local.path, local.files)
    local.files.heal()
    assert await contents(await local.open()) == ['a']


async def test_a_log_whose_removal_failed_is_still_there(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a')
    local.files.fail('rename', errno.EIO, '*/logs/log')
    with pytest.raises(LogError):
        await log.delete()
    assert local.names() == ['log']
    log = await local.open()
    assert await contents(log) == ['a']
    await log.delete()
    assert local.names() == []
    await local.kill()
    assert local.names() == []


async def test_a_log_that_is_closed_then_removed_begins_anew(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a')
    await log.close()
    await log.delete()
    assert await put(await local.open(), 'b') == Appended(0, 0, -1)
