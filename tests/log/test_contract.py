"""What every Log does, whatever it is made of: appending, reading, listening, closing. Producers, retention and what is
there after a restart are files of their own."""

from __future__ import annotations

import asyncio

import pytest
from tests.log.worlds import NOW, SYNCED, WRITTEN, World, batch, contents, offsets, put

from acklog.errors import Closed, OutOfRange
from acklog.log.seam import Appended, LogConfig
from acklog.wire.record_batch import check, crc_fits, read_header, spans


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
