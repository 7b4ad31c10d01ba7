"""What of every Log is there again after a clean close, a kill, a power loss."""

from __future__ import annotations

import pytest
from tests.log.worlds import NOW, SYNCED, World, contents, put

from acklog.errors import OutOfOrderSequence, StaleProducerEpoch
from acklog.log.seam import Appended, LogConfig
from acklog.wire.record_batch import read_header


@pytest.mark.parametrize('end', ['restart', 'kill'])
async def test_everything_is_there_again(world: World, end: str) -> None:
    config = LogConfig(segment_bytes=700, index_interval_bytes=100, retention_ms=-1)
    log = await world.open(config=config)
    for number in range(40):
        await put(log, f'{number:02}' * 10, now=NOW + number, producer=(7, 1, number))
    await log.truncate_before(5)
    size = log.size
    await getattr(world, end)()
    log = await world.open(config=config)
    assert (log.start, log.end, log.visible_end, log.size) == (5, 40, 40, size)
    assert await contents(log) == [f'{n:02}' * 10 for n in range(5, 40)]
    assert await log.offset_at(NOW + 30) == (30, NOW + 30)
    assert await put(log, '39' * 10, producer=(7, 1, 39)) == Appended(39, 39, -1, True)
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'x', producer=(7, 1, 41))
    with pytest.raises(StaleProducerEpoch):
        await put(log, 'x', producer=(7, 0, 40))
    assert await put(log, 'y', producer=(7, 1, 40)) == Appended(40, 40, -1)


async def test_the_leader_epoch_goes_up_after_an_unclean_end_only(world: World) -> None:
    first = (await world.open()).epoch
    await world.restart()
    assert (await world.open()).epoch == first
    await world.kill()
    assert (await world.open()).epoch == first + 1
    await world.kill()
    log = await world.open()
    assert log.epoch == first + 2
    await put(log, 'a')
    assert read_header((await log.read(0, 100)).data).leader_epoch == first + 2


async def test_what_was_synced_survives_a_power_loss(world: World) -> None:
    if not world.powers_down:
        pytest.skip('real files: the machine stays up')
    log, other = await world.open(), await world.open('other')
    await put(log, 'a', durability=SYNCED)
    await put(log, 'b', durability=SYNCED, producer=(7, 0, 0))
    await put(other, 'x')
    await other.flush()
    await put(log, 'c', producer=(7, 0, 1))
    await world.power_loss()
    log, other = await world.open(), await world.open('other')
    assert await contents(log) == ['a', 'b']
    assert await contents(other) == ['x']
    assert await put(log, 'b', producer=(7, 0, 0)) == Appended(1, 1, -1, True)
    assert await put(log, 'c', producer=(7, 0, 1), durability=SYNCED) == Appended(2, 2, -1)
    await world.power_loss()
    assert await contents(await world.open()) == ['a', 'b', 'c']


async def test_the_start_survives_a_power_loss(world: World) -> None:
    if not world.powers_down:
        pytest.skip('real files: the machine stays up')
    log = await world.open()
    for value in 'abcde':
        await put(log, value, durability=SYNCED)
    await put(log, 'f')
    assert await log.truncate_before(3) == 3
    await world.power_loss()
    log = await world.open()
    assert log.start == 3
    assert (await contents(log))[:2] == ['d', 'e']


async def test_a_start_above_what_survived_a_power_loss(world: World) -> None:
    if not world.powers_down:
        pytest.skip('real files: the machine stays up')
    log = await world.open()
    await put(log, 'a', durability=SYNCED)
    await put(log, 'b', 'c', 'd')
    await log.truncate_before(3)
    await world.power_loss()
    log = await world.open()
    assert log.start == 3
    assert log.end in (3, 4)  # those cut off are not given to other records
    assert (await put(log, 'e')).first == log.end - 1
