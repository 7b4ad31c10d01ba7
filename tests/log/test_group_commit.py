"""Group commit: who waits for which sync, and what goes on meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from tests.log.slow_disk import Gate, soon
from tests.log.worlds import SYNCED, LocalWorld, contents, put

from acklog.errors import Closed
from acklog.log.seam import LogConfig


async def test_all_that_wait_share_one_sync_that_began_after_their_write(local: LocalWorld) -> None:
    log = await local.open()
    gate = Gate(local)
    first = asyncio.ensure_future(put(log, 'a', durability=SYNCED))
    await soon(lambda: gate.begun == 1)
    later = [asyncio.ensure_future(put(log, str(n), durability=SYNCED)) for n in range(20)]
    await asyncio.sleep(0)
    written = await put(log, 'w')
    assert written.first == 21
    assert log.visible_end == 22
    assert not first.done()
    gate.let()
    await first
    await soon(lambda: gate.begun == 2)
    assert not any(each.done() for each in later)
    gate.let()
    await asyncio.gather(*later)
    assert gate.begun == 2
    gate.open()


async def test_a_repeat_is_answered_when_its_original_is_on_disk(local: LocalWorld) -> None:
    log = await local.open()
    gate = Gate(local)
    original = asyncio.ensure_future(put(log, 'a', producer=(7, 0, 0), durability=SYNCED))
    await soon(lambda: gate.begun == 1)
    assert (await put(log, 'a', producer=(7, 0, 0))).duplicate
    repeat = asyncio.ensure_future(put(log, 'a', producer=(7, 0, 0), durability=SYNCED))
    await asyncio.sleep(0.01)
    assert not repeat.done()
    gate.open()
    assert (await original).first == (await repeat).first == 0
    syncs = gate.begun
    assert (await put(log, 'a', producer=(7, 0, 0), durability=SYNCED)).duplicate
    assert gate.begun == syncs


async def test_logs_do_not_wait_for_each_others_records_only_for_their_sync(local: LocalWorld) -> None:
    logs = [await local.open(f'log{n}') for n in range(5)]
    await asyncio.gather(*(put(log, 'a', durability=SYNCED) for log in logs for _ in range(10)))
    assert local.files.calls['fdatasync'] <= 5 * 2 + 3


async def test_reads_and_written_appends_go_on_during_a_sync(local: LocalWorld) -> None:
    log = await local.open()
    gate = Gate(local)
    waiting = asyncio.ensure_future(put(log, 'a', durability=SYNCED))
    await soon(lambda: gate.begun == 1)
    await put(log, 'b')
    assert await contents(log) == ['a', 'b']
    gate.open()
    await waiting


async def test_deleting_does_not_wait_for_ever_and_closes_nothing_under_a_sync(local: LocalWorld) -> None:
    log = await local.open()
    gate = Gate(local)
    waiting = asyncio.ensure_future(put(log, 'a', durability=SYNCED))
    await soon(lambda: gate.begun == 1)
    deleting = asyncio.ensure_future(log.delete())
    with pytest.raises(Closed):
        await waiting
    assert not deleting.done()
    gate.open()
    await deleting
    assert local.names() == []
    assert local.files.memory.listdir(f'{local.path}/logs') == []


async def test_rolled_segments_are_synced_before_what_follows_them(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=500))
    gate = Gate(local)
    results = [asyncio.ensure_future(put(log, f'{n}' * 100, durability=SYNCED)) for n in range(12)]
    await soon(lambda: gate.begun == 1)
    gate.let(1)
    await soon(lambda: gate.begun == 2)
    local.files.kill()
    gate.open()
    await local.power_loss()
    for result in results:
        result.cancel()
    log = await local.open()
    assert await contents(log) == [f'{n}' * 100 for n in range(log.end)]
