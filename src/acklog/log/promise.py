"""A result to come, for those who cannot wait a turn of the loop for each of the steps that lead to an answer.

Strategy: asyncio's futures call their waiters in the next turn; where several stand behind each other (bytes written,
journal written, request answered) these turns are most of a fast request's time. A promise calls them within
`set_result`. So whoever settles one does it last, when its own state is as it should be: the waiters may come back with
the next call before `set_result` returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar('T')


class Promise(Generic[T]):
    """Awaited like a future, by `acklog.broker.eager` within `set_result`, by tasks in the next turn, as they must."""

    __slots__ = ('_asyncio_future_blocking', '_callbacks', '_done', '_error', '_loop', '_result')

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False  # by this asyncio knows what can be awaited
        self._loop = loop
        self._callbacks: list[tuple[Callable[[Any], object], Context | None]] = []
        self._done = False
        self._result: T | None = None
        self._error: BaseException | None = None

    def set_result(self, result: T) -> None:
        """Once; the waiters go on before it returns."""
        self._done, self._result = True, result
        callbacks, self._callbacks = self._callbacks, []
        for callback, context in callbacks:
            if context is not None:
                self._loop.call_soon(callback, self, context=context)
                continue
            try:
                callback(self)
            except Exception as error:  # a bug of one waiter; the others know nothing of it
                self._loop.call_exception_handler({'message': 'a waiter failed', 'exception': error})

    def set_exception(self, error: BaseException) -> None:
        """Instead of a result; the waiters go on in the next turn: what failed is put in order first."""
        self._done, self._error = True, error
        callbacks, self._callbacks = self._callbacks, []
        for callback, context in callbacks:
            self._loop.call_soon(callback, self, context=context)

    def cancel(self, msg: object = None) -> bool:
        """False: what others wait for as well is not ended by one of them; a task that is cancelled ends with it."""
        return False

    def done(self) -> bool:
        return self._done

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context | None = None) -> None:
        """With a `context`, as tasks give one, it is called by the loop; without, within `set_result`."""
        self._callbacks.append((callback, context))

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()
