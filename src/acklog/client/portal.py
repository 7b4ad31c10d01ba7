"""An event loop in a thread of its own, for synchronous code; and methods that are an asynchronous class's own methods,
waited for.

    class BlockingAdmin(Face[Admin]):
        create_topic = Blocking(Admin.create_topic)

So the synchronous face has the parameters, types and words of the asynchronous one, and no code of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from acklog.client.errors import ClientClosed

P = ParamSpec('P')
R = TypeVar('R')
T = TypeVar('T')


class Portal:
    """The loop. Its thread ends with the program, whatever it is doing then."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name='acklog client', daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run it in the loop and return its result; an interruption of the waiting thread cancels it."""
        if self.stopped:
            coroutine.close()
            raise ClientClosed('the client was closed')
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], R]) -> R:
        """Call a function between two turns of the loop and return its result."""

        async def call() -> R:
            return function()

        return self.run(call())

    def soon(self, function: Callable[[], None]) -> None:
        """Call a function in the loop, without waiting for it."""
        if self.stopped:
            raise ClientClosed('the client was closed')
        self._loop.call_soon_threadsafe(function)

    @property
    def stopped(self) -> bool:
        return self._loop.is_closed()

    def stop(self) -> None:
        """The end: what still runs is cancelled."""
        if not self.stopped:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())


class Face(Generic[T]):
    """An asynchronous object, seen from another thread. `inner` is used in the portal's loop only."""

    def __init__(self, inner: T, portal: Portal) -> None:
        self.inner, self.portal = inner, portal


class Blocking(Generic[T, P, R]):
    """A method that runs one of the inner object's in the loop and returns its result."""

    def __init__(self, method: Callable[Concatenate[T, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, face: None, owner: type[Face[T]]) -> Blocking[T, P, R]: ...

    @overload
    def __get__(self, face: Face[T], owner: type[Face[T]]) -> Callable[P, R]: ...

    def __get__(self, face: Face[T] | None, owner: type[Face[T]]) -> Blocking[T, P, R] | Callable[P, R]:
        if face is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return face.portal.run(self._method(face.inner, *args, **kwargs))

        call.__doc__ = self.__doc__
        return call
