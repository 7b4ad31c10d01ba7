"""Torn tails are cut, damage is reported; after a power loss there is a prefix with all that was answered."""

from __future__ import annotations

import errno
import random

import pytest
from tests.log.slow_disk import LOG
from tests.log.worlds import SYNCED, WRITTEN, LocalWorld, batch, contents, put

from acklog.errors import Damaged
from acklog.log.seam import Appended, LogConfig


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


@pytest.mark.parametrize('start', [2, 3])
async def test_what_producers_had_sent_below_the_start_is_known_after_a_power_loss(
    local: LocalWorld, start: int
) -> None:
    """Though nobody had asked for it to be on disk: the start is."""
    log = await local.open()
    for sequence in range(3):
        await put(log, 'x', producer=(7, 0, sequence))
    assert await log.truncate_before(start) == start
    await local.power_loss()
    log = await local.open()
    assert (log.start, log.end) == (start, 3)
    assert await put(log, 'x', producer=(7, 0, 1)) == Appended(1, 1, -1, True)


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
