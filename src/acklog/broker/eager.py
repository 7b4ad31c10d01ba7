"""Runs coroutines at once, without a task.

Most requests never have to wait: the local log answers from memory or the page cache. A task costs a turn of the loop
and several microseconds before its first step; here a coroutine runs up to its first unfinished future right away,
and goes on from that future's callback. What runs so has no current task: it must not use `asyncio.timeout` and the
like, which the broker, having no clock, does not do anyway.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar('T')

RECORDS_AT_A_TIME = 500  # of a batch, looked at or passed over before others have their turn: about a millisecond
AT_A_TIME = 50  # small pieces of work, of 10 to 300 us each, before others have their turn


class Eager(Generic[T]):
    """One coroutine under way. `done(result, error)` is called once, perhaps before `__init__` returns."""

    __slots__ = ('_coroutine', '_done')

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        self._coroutine = coroutine
        self._done = done
        self._step(None)

    def _step(self, _: object) -> None:
        try:
            awaited = self._coroutine.send(None)
        except StopIteration as stop:
            self._done(stop.value, None)
            return
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._done(None, error)
            return
        if awaited is None:  # a bare yield, as asyncio.sleep(0) makes it
            asyncio.get_running_loop().call_soon(self._step, None)
        else:
            awaited._asyncio_future_blocking = False  # what a task does to say that it has seen the future
            awaited.add_done_callback(self._step)


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Let the loop do what else there is: for work that would hold it up. Does under a task as well."""
    yield


class Pace:
    """For who has many small things to do: `keep` comes before each, and lets others have their turn now and then."""

    __slots__ = ('_done',)

    def __init__(self) -> None:
        self._done = 0

    async def keep(self) -> None:
        self._done += 1
        if self._done % AT_A_TIME == 0:
            await turn()


async def concurrently(
    coroutines: Sequence[Coroutine[Any, Any, T]], begun: Callable[[], None] | None = None
) -> list[T | BaseException]:
    """Start all, in order, with turns for others, and wait for all: the result or the error of each, in the same order.

    `begun` is called when all have been started."""
    results: list[Any] = [None] * len(coroutines)
    left = len(coroutines)
    waiter: asyncio.Future[None] | None = None

    def start(index: int) -> None:
        def done(result: T | None, error: BaseException | None) -> None:
            nonlocal left
            results[index] = result if error is None else error
            left -= 1
            if left == 0 and waiter is not None and not waiter.done():
                waiter.set_result(None)

        Eager(coroutines[index], done)

    started = 0
    try:
        for index in range(len(coroutines)):
            if index and index % AT_A_TIME == 0:
                await turn()
            started += 1
            start(index)
    finally:
        for never in coroutines[started:]:  # whoever waits for them was cancelled
            never.close()
        if begun is not None:
            begun()
    if left:
        waiter = asyncio.get_running_loop().create_future()
        await waiter
    return results
