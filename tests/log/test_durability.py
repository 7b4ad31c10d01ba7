"""The local log against disks that are slow, full, or failing: what is answered, what is refused, what comes back."""

from __future__ import annotations

import asyncio
import errno
import random
import threading
import time

import pytest
from tests.log.worlds import NOW, SYNCED, WRITTEN, LocalWorld, batch, contents, put

from acklog.errors import Closed, Damaged, Failed, Full, LogError
from acklog.log.seam import Appended, LogConfig

LOG = '*/logs/log/*.log'


async def soon(condition) -> None:  # type: ignore[no-untyped-def]
    """Let the loop run until the condition holds."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError('it does not come')


class Gate:
    """Holds syncs up until they are let through, one by one."""

    def __init__(self, local: LocalWorld) -> None:
        self.begun = 0
        self._through = threading.Semaphore(0)
        self._files = local.files
        local.files.before_sync = self._wait

    def _wait(self, path: str) -> None:
        self.begun += 1
        assert self._through.acquire(timeout=10)

    def let(self, count: int = 1) -> None:
        self._through.release(count)

    def open(self) -> None:
        """Let all through, now and later."""
        self._files.before_sync = lambda path: None
        self._through.release(100)


# --- group commit


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


# --- short writes, full disks


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


# --- failed writes and syncs


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
    await asyncio.sleep(0)
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
    with pytest.raises(Failed):
        await put(log, 'c')
    await soon(lambda: not log.store.sync_failed)  # type: ignore[attr-defined]
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


# --- torn tails and damage


async def test_a_torn_tail_is_cut(local: LocalWorld, caplog: pytest.LogCaptureFixture) -> None:
    log = await local.open()
    for number in range(5):
        await put(log, str(number))
    size = log.size
    local.files.memory.corrupt(f'{local.path}/logs/log/{0:020}.log', size, bytes(batch('torn'))[:40])
    await local.kill()
    log = await local.open()
    assert (log.end, log.size) == (5, size)
    assert 'cut off a tail of 40 bytes' in caplog.text
    assert await put(log, '5') == Appended(5, 5, -1)
    await local.kill()
    assert await contents(await local.open()) == [str(n) for n in range(6)]


async def test_zeros_at_the_end_are_cut(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    local.files.memory.corrupt(f'{local.path}/logs/log/{0:020}.log', log.size, bytes(5000))
    await local.power_loss()
    assert await contents(await local.open()) == ['a']


async def test_damage_below_what_was_synced_is_reported_with_file_and_position(local: LocalWorld) -> None:
    log = await local.open()
    for number in range(5):
        await put(log, str(number), durability=SYNCED)
    size = log.size // 5
    await local.restart()
    path = f'{local.path}/logs/log/{0:020}.log'
    local.files.memory.corrupt(path, 2 * size + 65, b'?')
    log = await local.open()
    assert await contents(log, 0, up_to=2) == ['0', '1']
    assert len((await log.read(0, 1 << 20)).data) == 2 * size
    with pytest.raises(Damaged, match=f'{path}: at {2 * size}'):
        await log.read(2, 1 << 20)
    assert await contents(log, 3) == ['3', '4']


async def test_damage_in_a_closed_segment_after_an_unclean_end(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=400))
    for number in range(12):
        await put(log, f'{number}' * 50, durability=SYNCED)
    await local.kill()
    path = f'{local.path}/logs/log/{0:020}.log'
    local.files.memory.corrupt(path, 65, b'???')
    log = await local.open()
    with pytest.raises(Damaged, match=path):
        await log.read(0, 1 << 20)
    assert (await contents(log, 3))[-1] == '11' * 50


async def test_missing_bytes_of_what_was_synced_are_damage(local: LocalWorld) -> None:
    log = await local.open()
    for number in range(5):
        await put(log, f'{number}' * 50, durability=SYNCED)
    await local.restart()
    await put(await local.open(), 'more', durability=SYNCED)
    await local.power_loss()
    path = f'{local.path}/logs/log/{0:020}.log'
    handle = local.files.memory.open(path)
    local.files.memory.truncate(handle, 200)
    with pytest.raises(Damaged, match=path):
        await local.open()


async def test_a_read_error_names_file_and_position(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a')
    await put(log, 'b')
    local.files.fail('pread', errno.EIO, LOG)
    with pytest.raises(Damaged, match=r'0\.log: at 0'):
        await log.read(0, 100)
    assert await contents(log) == ['a', 'b']


async def test_who_waits_at_the_end_needs_no_file_for_what_is_published(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a')
    await put(log, 'b', 'c')
    local.files.fail('pread', errno.EIO, LOG)
    assert await contents(log, 1) == ['b', 'c']
    with pytest.raises(Damaged):  # nothing but that is at hand
        await log.read(0, 100)


@pytest.mark.parametrize('seed', range(30))
async def test_after_a_power_loss_a_prefix_is_there_with_all_that_was_answered(seed: int) -> None:
    chance = random.Random(seed)
    local = LocalWorld()
    log = await local.open(config=LogConfig(segment_bytes=chance.choice([300, 2000, 1 << 20]), index_interval_bytes=64))
    expected: list[str] = []
    synced = 0
    for _ in range(4):
        for _ in range(chance.randrange(12)):
            value = f'{len(expected)}' * chance.randrange(1, 300)
            durability = chance.choice([WRITTEN, SYNCED])
            await put(log, value, durability=durability)
            expected.append(value)
            if durability is SYNCED:
                synced = len(expected)
        await local.power_loss(chance if chance.random() < 0.8 else None)
        log = await local.open(config=LogConfig(segment_bytes=2000, index_interval_bytes=64))
        found = await contents(log)
        assert found == expected[: len(found)]
        assert len(found) >= synced
        expected, synced = found, 0 if log.store.dirty else len(found)  # type: ignore[attr-defined]
    await local.close()
