"""What every Log does for idempotent producers: a repeat is told from what is new, over restarts too."""

from __future__ import annotations

import asyncio

import pytest
from tests.log.worlds import NOW, SYNCED, WRITTEN, World, batch, contents, put

from acklog.errors import OutOfOrderSequence, StaleProducerEpoch
from acklog.log.seam import Appended, LogConfig


async def test_idempotent_producer(world: World) -> None:
    log = await world.open()
    assert await put(log, 'a', 'b', producer=(7, 0, 0)) == Appended(0, 1, -1)
    assert await put(log, 'c', producer=(7, 0, 2)) == Appended(2, 2, -1)
    assert await put(log, 'a', 'b', producer=(7, 0, 0)) == Appended(0, 1, -1, True)
    assert await put(log, 'c', producer=(7, 0, 2), durability=SYNCED) == Appended(2, 2, -1, True)
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'e', producer=(7, 0, 4))
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'a', producer=(7, 0, 0))
    assert await put(log, 'x', producer=(8, 0, 0)) == Appended(3, 3, -1)
    assert await put(log, 'd', producer=(7, 0, 3)) == Appended(4, 4, -1)
    assert await contents(log) == ['a', 'b', 'c', 'x', 'd']


async def test_the_last_five_batches_of_a_producer_are_remembered(world: World) -> None:
    log = await world.open()
    for sequence in range(7):
        await put(log, str(sequence), producer=(7, 0, sequence))
    for sequence in range(2, 7):
        assert await put(log, 'again', producer=(7, 0, sequence)) == Appended(sequence, sequence, -1, True)
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'again', producer=(7, 0, 1))


async def test_producer_epochs(world: World) -> None:
    log = await world.open()
    await put(log, 'a', producer=(7, 3, 0))
    with pytest.raises(StaleProducerEpoch):
        await put(log, 'b', producer=(7, 2, 1))
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'b', producer=(7, 4, 1))
    assert await put(log, 'b', producer=(7, 4, 0)) == Appended(1, 1, -1)
    with pytest.raises(StaleProducerEpoch):
        await put(log, 'b', producer=(7, 3, 1))
    assert await contents(log) == ['a', 'b']


async def test_sequences_wrap_to_zero(world: World) -> None:
    log = await world.open()
    last = (1 << 31) - 1
    await put(log, 'a', 'b', producer=(7, 0, last - 2))
    await put(log, 'c', 'd', producer=(7, 0, last))
    assert await put(log, 'e', producer=(7, 0, 1)) == Appended(4, 4, -1)
    assert await put(log, 'c', 'd', producer=(7, 0, last)) == Appended(2, 3, -1, True)


async def test_repeats_within_one_turn(world: World) -> None:
    log = await world.open()
    results = await asyncio.gather(
        put(log, 'a', producer=(7, 0, 0)),
        put(log, 'a', producer=(7, 0, 0), durability=SYNCED),
        put(log, 'b', producer=(7, 0, 1)),
    )
    assert results == [Appended(0, 0, -1), Appended(0, 0, -1, True), Appended(1, 1, -1)]


async def test_several_batches_of_a_producer_at_once(world: World) -> None:
    log = await world.open()
    two = batch('a', producer=(7, 0, 0)) + batch('b', producer=(7, 0, 1))
    assert await log.append(two, NOW, WRITTEN) == Appended(0, 1, -1)
    assert await log.append(two, NOW, WRITTEN) == Appended(0, 1, -1, True)
    with pytest.raises(OutOfOrderSequence):
        await log.append(batch('c', producer=(7, 0, 2)) + batch('e', producer=(7, 0, 4)), NOW, WRITTEN)
    with pytest.raises(OutOfOrderSequence):
        await log.append(batch('b', producer=(7, 0, 1)) + batch('c', producer=(7, 0, 2)), NOW, WRITTEN)
    assert await put(log, 'c', producer=(7, 0, 2)) == Appended(2, 2, -1)


async def test_idle_producers_are_forgotten(world: World) -> None:
    log = await world.open(config=LogConfig(retention_ms=-1))
    day = 24 * 3_600_000
    await put(log, 'a', producer=(7, 0, 0), now=NOW)
    await put(log, 'b', producer=(8, 0, 0), now=NOW + day)
    await log.retain(NOW + day + 1, keep_from=None)
    assert await put(log, 'c', producer=(7, 0, 5), now=NOW + day) == Appended(2, 2, -1)
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'd', producer=(8, 0, 5), now=NOW + day)


@pytest.mark.parametrize('end', ['restart', 'kill', 'power_loss'])
async def test_producers_outlive_retention_and_restarts(world: World, end: str) -> None:
    if end == 'power_loss' and not world.powers_down:
        pytest.skip('real files: the machine stays up')
    config = LogConfig(segment_bytes=700, retention_ms=-1)
    log = await world.open(config=config)
    await put(log, 'a', producer=(7, 0, 0))
    await put(log, 'b', producer=(7, 0, 1), durability=SYNCED)
    assert await log.truncate_before(2) == 2
    assert log.size == 0
    for _ in range(2):
        await getattr(world, end)()
        log = await world.open(config=config)
        assert (log.start, log.end) == (2, 2)
        assert await put(log, 'b', producer=(7, 0, 1)) == Appended(1, 1, -1, True)
        with pytest.raises(OutOfOrderSequence):
            await put(log, 'd', producer=(7, 0, 3))
