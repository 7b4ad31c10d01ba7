"""Callers that come back with the next call while the log is still answering the last one."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.log.slow_disk import soon
from tests.log.worlds import NOW, SYNCED, WRITTEN, LocalWorld, batch, contents

from acklog.errors import Failed, LogError
from acklog.log.local import LocalLog
from acklog.log.seam import Appended, LogConfig


class AtOnce:
    """Runs a coroutine up to its end within the calls that it waits for, as the broker does."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.coroutine = coroutine
        self.error: BaseException | None = None
        self.done = asyncio.get_running_loop().create_future()
        self.step()

    def step(self, _: object = None) -> None:
        try:
            awaited = self.coroutine.send(None)
        except StopIteration:
            self.done.set_result(None)
        except LogError as error:
            self.error = error
            self.done.set_result(None)
        else:
            awaited._asyncio_future_blocking = False
            awaited.add_done_callback(self.step)


@pytest.mark.parametrize('at_once', [False, True])
@pytest.mark.parametrize('durability', [WRITTEN, SYNCED])
async def test_appending_from_within_the_answer(local: LocalWorld, at_once: bool, durability: Any) -> None:
    log = await local.open(config=LogConfig(segment_bytes=400, index_interval_bytes=1))
    assert isinstance(log, LocalLog)
    told: dict[int, str] = {}

    async def append(name: str) -> None:
        for number in range(20):
            value = f'{name}{number}'.ljust(50 + 7 * number, '.')
            result = await log.append(batch(value), NOW, durability, at_once=at_once)
            assert isinstance(result, Appended)
            told[result.first] = value

    runs = [AtOnce(append(name)) for name in 'abcdef']
    await asyncio.gather(*(run.done for run in runs))
    expected = [told[offset] for offset in range(120)]
    assert await contents(log) == expected
    assert sorted(value.split('.')[0] for value in expected) == sorted(f'{a}{n}' for a in 'abcdef' for n in range(20))
    await local.kill()
    assert await contents(await local.open(config=LogConfig(segment_bytes=400))) == expected


async def test_appending_when_the_log_has_grown(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=300))
    runs: list[AtOnce] = []

    async def answer(number: int) -> None:
        await log.append(batch(f'answer {number}'.ljust(80)), NOW, WRITTEN)

    def grown() -> None:
        if log.visible_end < 30:
            runs.append(AtOnce(answer(log.visible_end)))

    log.listen(grown)
    await asyncio.gather(*(log.append(batch(f'{n}'.ljust(90)), NOW, WRITTEN) for n in range(5)))
    at = 0
    while at < len(runs):
        await runs[at].done
        at += 1
    found = await contents(log)
    assert len(found) == log.end == 30
    await local.kill()
    assert await contents(await local.open()) == found


async def test_a_failure_within_the_answer(local: LocalWorld) -> None:
    """The first append is written; what its caller appends then is not, and breaks the log."""
    log = await local.open()
    await log.append(batch('0'), NOW, WRITTEN)  # later ones of the same millisecond go out together
    local.files.fail('pwritev', errno.EIO, '*.log', after=1)
    results: list[object] = []

    async def twice() -> None:
        results.append(await log.append(batch('a'), NOW, WRITTEN))
        results.append(await log.append(batch('b'), NOW, WRITTEN, at_once=True))

    async def synced() -> None:
        results.append(await log.append(batch('s'), NOW, SYNCED))

    runs = [AtOnce(twice()), AtOnce(synced())]
    await asyncio.gather(*(run.done for run in runs))
    assert results == [Appended(1, 1, -1)]
    assert [type(run.error) for run in runs] == [Failed, Failed]
    assert isinstance(log, LocalLog)
    await soon(lambda: not log.store.sync_failed)
    assert await contents(log) == ['0', 'a', 's']


async def test_closing_from_within_the_answer(local: LocalWorld) -> None:
    log = await local.open()
    closing: list[asyncio.Future[None]] = []
    log.listen(lambda: closing.append(asyncio.ensure_future(log.close())))
    results = await asyncio.gather(*(log.append(batch(f'{n}'), NOW, WRITTEN) for n in range(3)))
    assert [each.first for each in results] == [0, 1, 2]
    await asyncio.gather(*closing)
    assert await contents(await local.open()) == ['0', '1', '2']
