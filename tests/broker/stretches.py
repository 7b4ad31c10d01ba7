"""How much is done at one go: what the loop does between two of its turns, counted in calls of functions, which are the
same on every machine."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from acklog.broker.eager import Eager

T = TypeVar('T')


async def longest(coroutine: Coroutine[Any, Any, T]) -> tuple[T, int]:
    """(result, most calls at one go) of what runs as a request does."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    calls = most = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        if event in ('call', 'c_call'):
            calls += 1

    def done(result: T | None, error: BaseException | None) -> None:
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(result)  # type: ignore[arg-type]

    def turn() -> None:
        nonlocal calls, most
        most, calls = max(most, calls), 0
        if not ended.done():
            loop.call_soon(turn)

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # what other tests left behind may have much to say when it is collected
    sys.setprofile(count)
    try:
        Eager(coroutine, done)
        turn()
        result = await ended
        await asyncio.sleep(0)  # until the last turn is counted too
    finally:
        sys.setprofile(before)
        gc.enable()
    return result, most
