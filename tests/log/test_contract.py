"""What every Log does, whatever it is made of."""

from __future__ import annotations

import asyncio

import pytest
from tests.log.worlds import NOW, SYNCED, WRITTEN, World, batch, contents, offsets, put

from acklog.errors import Closed, OutOfOrderSequence, OutOfRange, StaleProducerEpoch
from acklog.log.seam import Appended, LogConfig
from acklog.wire.record_batch import check, crc_fits, read_header, spans

SMALL = 10_000_000  # ms


async def test_offsets_are_those_of_records(world: World) -> None:
    log = await world.open()
    assert (log.start, log.end, log.visible_end, log.stable_end, log.size) == (0, 0, 0, 0, 0)
    assert await put(log, 'a', 'b', 'c') == Appended(0, 2, -1)
    assert await put(log, 'd') == Appended(3, 3, -1)
    assert (log.start, log.end, log.visible_end, log.stable_end) == (0, 4, 4, 4)
    assert await contents(log) == ['a', 'b', 'c', 'd']


async def test_batches_are_stored_as_sent_but_for_offset_and_leader_epoch(world: World) -> None:
    log = await world.open()
    await put(log, 'x')
    sent = batch('a', 'b')
    await log.append(bytes(sent), NOW, WRITTEN)
    stored = (await log.read(1, 1 << 20)).data
    assert bytes(stored[:8]) == (1).to_bytes(8, 'big')
    assert read_header(stored).leader_epoch == log.epoch
    assert bytes(stored[16:]) == bytes(sent[16:])


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview, lambda data: memoryview(bytes(data))])
async def test_several_batches_in_one_append(world: World, kind: type) -> None:
    log = await world.open()
    assert await log.append(kind(batch('a', 'b') + batch('c')), NOW, WRITTEN) == Appended(0, 2, -1)
    assert await contents(log) == ['a', 'b', 'c']
    assert [span.first for span in spans((await log.read(0, 1 << 20)).data)] == [0, 2]


async def test_appends_are_stored_in_the_order_of_the_calls(world: World) -> None:
    log = await world.open()
    results = await asyncio.gather(*(put(log, str(n), durability=[WRITTEN, SYNCED][n % 2]) for n in range(50)))
    assert [each.first for each in results] == list(range(50))
    assert await contents(log) == [str(n) for n in range(50)]


async def test_a_read_begins_with_the_batch_that_holds_the_offset(world: World) -> None:
    log = await world.open()
    await put(log, 'a', 'b', 'c')
    await put(log, 'd', 'e')
    assert await offsets(log, 1) == [0, 1, 2, 3, 4]
    assert await offsets(log, 3) == [3, 4]


async def test_a_read_brings_whole_batches_that_fit_but_at_least_one(world: World) -> None:
    log = await world.open()
    for number in range(4):
        await put(log, f'{number}' * 100)
    size = log.size // 4
    assert await offsets(log, 0, 1) == [0]
    assert await offsets(log, 0, size) == [0]
    assert await offsets(log, 1, 2 * size + size // 2) == [1, 2]
    assert await offsets(log, 1, 3 * size) == [1, 2, 3]


async def test_a_read_ends_with_the_batch_that_reaches_up_to(world: World) -> None:
    log = await world.open()
    await put(log, 'a', 'b')
    await put(log, 'c', 'd')
    assert await offsets(log, 0, up_to=4) == [0, 1, 2, 3]
    assert await offsets(log, 0, up_to=3) == [0, 1, 2, 3]
    assert await offsets(log, 0, up_to=2) == [0, 1]
    assert await offsets(log, 0, up_to=1) == [0, 1]
    assert await offsets(log, 0, up_to=0) == []
    assert await offsets(log, 3, up_to=3) == []
    assert await offsets(log, 0, up_to=99) == [0, 1, 2, 3]


async def test_out_of_range(world: World) -> None:
    log = await world.open()
    await put(log, 'a', 'b')
    assert await offsets(log, 2) == []
    with pytest.raises(OutOfRange) as caught:
        await log.read(3, 100)
    assert (caught.value.offset, caught.value.start, caught.value.end) == (3, 0, 2)
    assert await log.truncate_before(1) == 1
    with pytest.raises(OutOfRange) as caught:
        await log.read(0, 100)
    assert (caught.value.start, caught.value.end) == (1, 2)


async def test_reading_on_and_on_brings_every_record_once(world: World) -> None:
    log = await world.open(config=LogConfig(segment_bytes=2000, index_interval_bytes=200))
    values = [f'{n}-{"x" * (n % 70)}' for n in range(300)]
    for at in range(0, 300, 3):
        await put(log, *values[at : at + 3])
    for max_bytes in (1, 500, 1999, 1 << 20):
        assert await contents(log, max_bytes=max_bytes) == values
    for offset in range(0, 300, 7):
        assert (await offsets(log, offset))[0] == offset - offset % 3


async def test_listeners_hear_when_the_visible_end_moves(world: World) -> None:
    log = await world.open()
    seen: list[int] = []
    log.listen(lambda: seen.append(log.visible_end))
    await put(log, 'a')
    await put(log, 'b', 'c')
    await asyncio.sleep(0)
    assert seen[-1] == 3
    assert len(seen) == 2


async def test_log_append_time(world: World) -> None:
    log = await world.open(config=LogConfig(log_append_time=True))
    assert await log.append(batch('a', at=5) + batch('b', at=6), NOW, WRITTEN) == Appended(0, 1, NOW)
    data = (await log.read(0, 1 << 20)).data
    for span in spans(data):
        assert crc_fits(data, span.position, span.size)
        assert read_header(data, span.position).max_timestamp == NOW
        assert span.attributes & 8
    assert await log.offset_at(NOW) == (0, NOW)


async def test_offset_by_timestamp(world: World) -> None:
    log = await world.open(config=LogConfig(segment_bytes=1500, index_interval_bytes=100))
    for number in range(60):
        await put(log, f'{number}' * 5, now=NOW + 10 * number)
    assert await log.offset_at(0) == (0, NOW)
    assert await log.offset_at(NOW + 1) == (1, NOW + 10)
    for number in range(60):
        assert await log.offset_at(NOW + 10 * number) == (number, NOW + 10 * number)
    assert await log.offset_at(NOW + 591) is None
    await log.truncate_before(7)
    assert await log.offset_at(0) == (7, NOW + 70)


async def test_timestamps_out_of_order(world: World) -> None:
    log = await world.open(config=LogConfig(index_interval_bytes=100))
    times = [5, 9, 2, 7, 30, 1, 30, 31, 3]
    for time in times:
        await put(log, 'x' * 50, now=NOW + time)
    for wanted in range(33):
        expected = next(((n, NOW + t) for n, t in enumerate(times) if t >= wanted), None)
        assert await log.offset_at(NOW + wanted) == expected


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


async def test_truncate_before(world: World) -> None:
    log = await world.open(config=LogConfig(segment_bytes=300))
    for number in range(20):
        await put(log, f'{number}' * 30)
    size = log.size
    assert await log.truncate_before(13) == 13
    assert await log.truncate_before(4) == 13
    assert (log.start, log.end) == (13, 20)
    assert log.size < size // 2
    assert await contents(log) == [f'{n}' * 30 for n in range(13, 20)]
    with pytest.raises(OutOfRange):
        await log.truncate_before(21)
    assert await log.truncate_before(20) == 20
    assert (log.start, log.end, log.size) == (20, 20, 0)
    assert await put(log, 'more') == Appended(20, 20, -1)
    assert await contents(log) == ['more']


async def test_retention_by_size(world: World) -> None:
    config = LogConfig(segment_bytes=400, retention_bytes=1000, retention_ms=-1)
    log = await world.open(config=config)
    for number in range(20):
        await put(log, f'{number:02}' * 20)
    before = log.size
    assert await log.retain(NOW, keep_from=0) == 0
    start = await log.retain(NOW, keep_from=None)
    assert log.start == start > 0
    assert 1000 <= log.size < 1400 < before
    assert await contents(log) == [f'{n:02}' * 20 for n in range(start, 20)]


async def test_retention_by_time(world: World) -> None:
    config = LogConfig(segment_bytes=400, retention_ms=1000)
    log = await world.open(config=config)
    for number in range(20):
        await put(log, f'{number:02}' * 20, now=NOW + 100 * number)
    assert await log.retain(NOW + 1000, keep_from=None) == 0
    start = await log.retain(NOW + 2000, keep_from=None)
    assert 0 < start <= 11
    assert await log.retain(NOW + 2500, keep_from=start) == start
    assert await log.retain(NOW + 10_000, keep_from=None) == 20
    assert (log.start, log.end, log.size) == (20, 20, 0)
    assert await put(log, 'more') == Appended(20, 20, -1)


async def test_a_producers_clock_ahead_keeps_nothing_longer(world: World) -> None:
    log = await world.open(config=LogConfig(retention_ms=1000))
    await log.append(batch('from the future', at=NOW * 2), NOW, WRITTEN)
    assert await log.retain(NOW + 1001, keep_from=None) == 1


async def test_a_segment_is_rolled_by_age(world: World) -> None:
    config = LogConfig(segment_ms=1000, retention_bytes=0, retention_ms=-1)
    log = await world.open(config=config)
    await put(log, 'a', now=NOW)
    await put(log, 'b', now=NOW + 999)
    assert await log.retain(NOW + 999, keep_from=None) == 0
    await put(log, 'c', now=NOW + 1000)
    assert await log.retain(NOW + 1000, keep_from=None) == 2
    assert await log.retain(NOW + 2000, keep_from=None) == 3


async def test_config_may_change(world: World) -> None:
    log = await world.open(config=LogConfig(retention_ms=-1))
    await put(log, 'a')
    assert await log.retain(NOW + SMALL, keep_from=None) == 0
    log.configure(LogConfig(retention_ms=1000))
    assert await log.retain(NOW + SMALL, keep_from=None) == 1


async def test_idle_producers_are_forgotten(world: World) -> None:
    log = await world.open(config=LogConfig(retention_ms=-1))
    day = 24 * 3_600_000
    await put(log, 'a', producer=(7, 0, 0), now=NOW)
    await put(log, 'b', producer=(8, 0, 0), now=NOW + day)
    await log.retain(NOW + day + 1, keep_from=None)
    assert await put(log, 'c', producer=(7, 0, 5), now=NOW + day) == Appended(2, 2, -1)
    with pytest.raises(OutOfOrderSequence):
        await put(log, 'd', producer=(8, 0, 5), now=NOW + day)


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


async def test_closed(world: World) -> None:
    log = await world.open()
    await put(log, 'a')
    await log.close()
    await log.close()
    with pytest.raises(Closed):
        await put(log, 'b')
    with pytest.raises(Closed):
        await log.read(0, 100)
    with pytest.raises(Closed):
        await log.truncate_before(1)
    with pytest.raises(Closed):
        await log.retain(NOW, None)
    with pytest.raises(Closed):
        await log.offset_at(0)
    with pytest.raises(Closed):
        await log.flush()
    again = await world.open()
    assert await contents(again) == ['a']


async def test_closing_finishes_or_refuses_what_waits(world: World) -> None:
    log = await world.open()
    waiting = [asyncio.ensure_future(put(log, str(n), durability=SYNCED)) for n in range(5)]
    await asyncio.sleep(0)
    await log.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    stored = [each for each in results if isinstance(each, Appended)]
    assert all(isinstance(each, Appended | Closed) for each in results)
    assert len(await contents(await world.open())) >= len(stored)


async def test_deleted(world: World) -> None:
    log, other = await world.open(), await world.open('other')
    await put(log, 'a', producer=(7, 0, 0))
    await put(other, 'x')
    assert set(world.names()) == {'log', 'other'}
    waiting = asyncio.ensure_future(put(log, 'b', durability=SYNCED))
    await asyncio.sleep(0)
    await log.delete()
    result = (await asyncio.gather(waiting, return_exceptions=True))[0]
    assert isinstance(result, Closed | Appended)
    with pytest.raises(Closed):
        await put(log, 'c')
    with pytest.raises(Closed):
        await log.read(0, 100)
    assert set(world.names()) == {'other'}
    await world.kill()
    assert set(world.names()) == {'other'}
    log = await world.open()
    assert (log.start, log.end, log.size) == (0, 0, 0)
    assert await put(log, 'new', producer=(7, 0, 9)) == Appended(0, 0, -1)


async def test_opening_twice_gives_the_same_log(world: World) -> None:
    assert await world.open() is await world.open()


async def test_internal_logs(world: World) -> None:
    log = await world.open('__catalog', internal=True)
    await put(log, 'a', durability=SYNCED)
    await world.kill()
    assert await contents(await world.open('__catalog', internal=True)) == ['a']


async def test_a_cancelled_append_disturbs_nobody(world: World) -> None:
    log = await world.open()
    tasks = [asyncio.ensure_future(put(log, str(n), durability=[WRITTEN, SYNCED][n % 2])) for n in range(10)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if number % 3:
            assert isinstance(result, Appended)
    found = await contents(log)
    assert {str(n) for n in range(10) if n % 3} <= set(found)
    assert check((await log.read(0, 1 << 20)).data, 1 << 20)
