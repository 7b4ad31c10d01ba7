"""What is known of idempotent producers when segments are lost, cut or removed: a repeat of what is lost is stored, a
repeat of what was on disk is not."""

from __future__ import annotations

import asyncio
import errno
import random

import pytest
from tests.log.slow_disk import Gate, soon
from tests.log.worlds import SYNCED, LocalWorld, contents, put

from acklog.errors import LogError
from acklog.log.seam import Appended, Log, LogConfig

SMALL = LogConfig(segment_bytes=300)
LONG = 200  # bytes of a record that fills a segment


async def lose_power(local: LocalWorld, gate: Gate, paths: str) -> Log:
    """What no sync had covered of these files is gone, and no sync begins any more."""
    local.files.kill()
    gate.open()
    await local.power_loss(paths=paths)
    return await local.open(config=SMALL)


@pytest.mark.parametrize('with_one_behind', [False, True])
async def test_a_lost_batch_is_no_original(local: LocalWorld, with_one_behind: bool) -> None:
    """The next segment, empty or not, names its producer."""
    log = await local.open(config=SMALL)
    await put(log, 'a', durability=SYNCED)
    gate = Gate(local)
    lost = asyncio.ensure_future(put(log, 'b' * LONG, producer=(7, 0, 0), durability=SYNCED))
    await soon(lambda: log.visible_end == 2)
    local.files.fail('pwritev', errno.ENOSPC, '*2.log', times=0 if with_one_behind else 1)
    await asyncio.gather(put(log, 'c' * LONG), return_exceptions=True)
    log = await lose_power(local, gate, '*1.log')
    with pytest.raises(LogError):
        await lost
    assert await put(log, 'b' * LONG, producer=(7, 0, 0), durability=SYNCED) == Appended(1, 1, -1)
    assert await contents(log) == ['a', 'b' * LONG]


async def test_producers_of_what_lies_before_a_cut(local: LocalWorld) -> None:
    log = await local.open(config=SMALL)
    await put(log, 'a', producer=(7, 0, 0), durability=SYNCED)
    gate = Gate(local)
    await put(log, 'b')
    for value in 'cd':
        await put(log, value * LONG)
    log = await lose_power(local, gate, '*0.log')
    assert await contents(log) == ['a']
    assert await put(log, 'a', producer=(7, 0, 0), durability=SYNCED) == Appended(0, 0, -1, True)


@pytest.mark.parametrize('end', ['power loss', 'power loss after a cut', 'failed sync'])
async def test_producers_that_could_not_be_named_when_the_segment_began(
    local: LocalWorld, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its index file names them later, in a chunk that speaks of batches no sync has covered."""
    monkeypatch.setattr('acklog.log.appender.MARK_BYTES', 120)
    log = await local.open(config=SMALL)
    await put(log, 'a' * LONG, producer=(7, 0, 0), durability=SYNCED)
    local.files.fail('pwritev', errno.ENOSPC, '*1.index')
    await put(log, 'b', durability=SYNCED)
    gate = Gate(local)
    await put(log, 'c' * 100)
    if end == 'failed sync':
        local.files.fail('fdatasync', errno.EIO, '*1.log')
        gate.open()
        with pytest.raises(LogError):
            await log.flush()
        await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    else:
        if end == 'power loss after a cut':
            gate.open()
            assert await log.truncate_before(1) == 1
        log = await lose_power(local, gate, '*1.log')
    assert await put(log, 'a' * LONG, producer=(7, 0, 0)) == Appended(0, 0, -1, True)


async def test_producers_named_by_one_index_file_alone_when_its_segment_is_written_anew(local: LocalWorld) -> None:
    log = await local.open(config=SMALL)
    await put(log, 'a' * LONG, producer=(7, 0, 0), durability=SYNCED)
    assert await log.truncate_before(1) == 1
    local.files.fail('fdatasync', errno.EIO, '*1.log')
    with pytest.raises(LogError):
        await put(log, 'b', durability=SYNCED)
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    for _ in range(2):
        assert await put(log, 'a' * LONG, producer=(7, 0, 0)) == Appended(0, 0, -1, True)
        await local.power_loss()
        log = await local.open(config=SMALL)


@pytest.mark.parametrize('end', ['close', 'complete'])
async def test_producers_after_a_failed_sync_of_what_alone_names_them(local: LocalWorld, end: str) -> None:
    log = await local.open(config=SMALL)
    await put(log, 'a' * LONG, producer=(7, 0, 0), durability=SYNCED)
    assert await log.truncate_before(1) == 1
    await put(log, 'b' * LONG, durability=SYNCED)
    local.files.fail('fdatasync', errno.EIO, '*1.index')
    if end == 'close':
        with pytest.raises(LogError):
            await log.close()
    else:
        await put(log, 'c' * LONG, durability=SYNCED)
    await local.kill()
    log = await local.open(config=SMALL)
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
    assert await put(log, 'a' * LONG, producer=(7, 0, 0)) == Appended(0, 0, -1, True)


@pytest.mark.parametrize('killed', [False, True])
async def test_an_index_file_whose_sync_failed_names_nobody(local: LocalWorld, killed: bool) -> None:
    log = await local.open(config=SMALL)
    await put(log, 'a' * LONG, producer=(7, 0, 0), durability=SYNCED)
    local.files.fail('fdatasync', errno.EIO, '*1.index', times=None)
    for value in 'bc':
        await put(log, value * LONG, durability=SYNCED)
    await log.flush()
    if killed:
        await local.kill()
        log = await local.open(config=SMALL)
    assert await log.truncate_before(1) == 1
    await local.power_loss()
    log = await local.open(config=SMALL)
    assert await put(log, 'a' * LONG, producer=(7, 0, 0)) == Appended(0, 0, -1, True)


async def test_an_index_file_that_alone_was_to_name_them_and_could_not_be_synced(local: LocalWorld) -> None:
    """It is none of those that say that their segment is complete, however it goes on."""
    log = await local.open(config=SMALL)
    await put(log, 'a' * LONG, producer=(7, 0, 0))
    await put(log, 'b' * 100)
    local.files.fail('fdatasync', errno.EIO, '*1.index')
    with pytest.raises(LogError):
        await log.truncate_before(1)
    await put(log, 'c' * LONG, durability=SYNCED)
    await log.flush()
    assert await log.retain(1, None) == 1
    await local.power_loss(random.Random(1))
    log = await local.open(config=SMALL)
    assert await put(log, 'a' * LONG, producer=(7, 0, 0)) == Appended(0, 0, -1, True)


async def test_what_names_them_is_not_cut_off_with_what_lies_before_it(local: LocalWorld) -> None:
    """A segment that is removed was on disk already; the next one, which has grown since, was not."""
    log = await local.open(config=SMALL)
    await put(log, 'a' * LONG, producer=(7, 0, 0))
    await put(log, 'b', durability=SYNCED)
    gate = Gate(local)
    hold_up = local.files.before_sync
    local.files.before_sync = lambda path: hold_up(path) if path.endswith('.log') else None
    await put(log, 'c' * 100)
    await put(log, 'd' * LONG)
    cutting = asyncio.ensure_future(log.truncate_before(1))
    await asyncio.wait([cutting], timeout=0.05)
    if not cutting.done():
        gate.open()
        await cutting
    log = await lose_power(local, gate, '*1.*')
    assert await put(log, 'a' * LONG, producer=(7, 0, 0)) == Appended(0, 0, -1, True)
