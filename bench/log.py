"""What the local log costs: python bench/log.py [DIRECTORY]

Appends of one-record batches, many in one turn of the loop and one after the other; large batches into the page cache;
the same with a sync; reads at the tail and all over. Microseconds are of our code and the system calls under it.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import tempfile
import time

from acklog.log.directory import DataDirectory
from acklog.log.seam import Durability, Log, LogConfig
from acklog.wire.record_batch import build

NOW = 1_700_000_000_000


def say(what: str, count: int, seconds: float, size: int = 0) -> None:
    rate = f'{size / seconds / 1e9:8.2f} GB/s' if size else f'{count / seconds:8.0f} /s'
    sys.stdout.write(f'{what:58} {seconds / count * 1e6:9.2f} us {rate}\n')


async def many_in_a_turn(log: Log, count: int, turn: int, durability: Durability, producer: int = -1) -> float:
    """Seconds for `count` appends of one record each, `turn` of them at a time."""
    spent = 0.0
    for first in range(0, count, turn):
        batches = [
            build(
                [(None, b'x' * 100)],
                timestamp=NOW,
                producer_id=producer,
                producer_epoch=min(producer, 0),
                base_sequence=first + n if producer >= 0 else -1,
            )
            for n in range(turn)
        ]
        calls = [log.append(each, NOW, durability) for each in batches]
        begin = time.perf_counter()
        await asyncio.gather(*calls)
        spent += time.perf_counter() - begin
    return spent


async def tasks_only(count: int, turn: int) -> float:
    """The same without a log: what the tasks and futures cost that wait."""
    loop = asyncio.get_running_loop()

    async def wait(future: asyncio.Future[None]) -> None:
        await future

    spent = 0.0
    for _ in range(0, count, turn):
        futures: list[asyncio.Future[None]] = []
        for _ in range(turn):
            futures.append(loop.create_future())
        calls = [wait(each) for each in futures]
        begin = time.perf_counter()
        loop.call_soon(lambda futures=futures: [each.set_result(None) for each in futures])
        await asyncio.gather(*calls)
        spent += time.perf_counter() - begin
    return spent


async def one_by_one(log: Log, count: int, durability: Durability) -> float:
    batches = [build([(None, b'x' * 100)], timestamp=NOW) for _ in range(count)]
    begin = time.perf_counter()
    for each in batches:
        await log.append(each, NOW, durability)
    return time.perf_counter() - begin


async def large(log: Log, count: int, durability: Durability, at_once: int) -> tuple[float, int]:
    batch = build([(None, os.urandom(1000)) for _ in range(500)], timestamp=NOW)
    copies = [bytearray(batch) for _ in range(at_once)]
    begin = time.perf_counter()
    for _ in range(count // at_once):
        await asyncio.gather(*(log.append(each, NOW, durability) for each in copies))
    return time.perf_counter() - begin, len(batch) * count


async def reads(log: Log, offsets: list[int], max_bytes: int) -> tuple[float, int]:
    size = 0
    begin = time.perf_counter()
    for offset in offsets:
        size += len((await log.read(offset, max_bytes)).data)
    return time.perf_counter() - begin, size


async def sequential(log: Log, max_bytes: int) -> tuple[float, int, int]:
    from acklog.wire.record_batch import spans

    offset = count = size = 0
    spent = 0.0
    while True:
        begin = time.perf_counter()
        data = (await log.read(offset, max_bytes)).data
        spent += time.perf_counter() - begin
        if not data:
            return spent, count, size
        offset = spans(data)[-1].last + 1
        count += 1
        size += len(data)


async def measure(path: str) -> None:
    directory = DataDirectory(path, reserve_bytes=0)
    written, synced = Durability.WRITTEN, Durability.SYNCED
    small = await directory.open('small', LogConfig())
    await many_in_a_turn(small, 2000, 100, written)
    base = await tasks_only(50_000, 100)
    say('100 tasks in a turn that wait for a future, no log', 50_000, base)
    spent = await many_in_a_turn(small, 50_000, 100, written)
    say('append, 1 record of 100 B, 100 in a turn, written', 50_000, spent)
    say('  of that the log', 50_000, spent - base)
    say('  idempotent', 50_000, await many_in_a_turn(small, 50_000, 100, written, 7) - base)
    say('  100 in a turn, synced', 20_000, await many_in_a_turn(small, 20_000, 100, synced))
    say('append, one after the other, written', 20_000, await one_by_one(small, 20_000, written))
    say('append, one after the other, synced', 500, await one_by_one(small, 500, synced))
    big = await directory.open('big', LogConfig())
    for at_once in (1, 8):
        spent, size = await large(big, 800, written, at_once)
        say(f'append, 0.5 MB batches, {at_once} in a turn, written', 800, spent, size)
    spent, size = await large(big, 400, synced, 8)
    say('append, 0.5 MB batches, 8 in a turn, synced', 400, spent, size)
    spent, count, size = await sequential(small, 1 << 20)
    say('read on, 1 MB of one-record batches', count, spent, size)
    spent, count, size = await sequential(big, 1 << 20)
    say('read on, 1 MB of 0.5 MB batches', count, spent, size)
    chance = random.Random(1)
    offsets = [chance.randrange(small.end) for _ in range(20_000)]
    spent, _ = await reads(small, offsets, 100)
    say('read anywhere, one record', 20_000, spent)
    spent, _ = await reads(small, [small.end - 1] * 20_000, 100)
    say('read the last record', 20_000, spent)
    await directory.close()


def main() -> None:
    path = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        asyncio.run(measure(f'{path}/data'))
    finally:
        shutil.rmtree(path)


if __name__ == '__main__':
    main()
