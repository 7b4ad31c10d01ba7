"""Long polls: somebody waits until one of several things happens, or until a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.time import Timer


class Waiter:
    """One long poll that is waiting, until `wake` is called for the first time."""

    __slots__ = ('_future', 'ended', 'source')

    def __init__(self) -> None:
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.source: ShareDelivery | None = None  # what woke it, where it is a share partition
        self.ended = False  # no use to wait again: its member has left, its connection is gone, or it is late

    def wake(self, source: ShareDelivery | None = None) -> bool:
        """True if it was asleep."""
        if self._future.done():
            return False
        self.source = source
        self._future.set_result(None)
        return True

    def end(self) -> None:
        """Wake it for the last time."""
        self.ended = True
        self.wake()

    async def wait(self, timer: Timer, until: int) -> None:
        """Sleep until woken, at most until `until` (ms), after which it has `ended`."""
        if self._future.done():
            return
        late = timer.at(until, self.end)
        try:
            await self._future
        finally:
            late.cancel()


class Waiters(dict[Waiter, None]):
    """Those who wait for the same, who has waited longest first. A dict: whether there is any is asked all the time."""

    __slots__ = ()

    def wake_one(self, source: ShareDelivery | None = None) -> None:
        """Wake the one that has waited longest; it can see what woke it. When it has taken its share it offers the rest
        to the next."""
        while self:
            waiter = next(iter(self))
            del self[waiter]
            if waiter.wake(source):
                return

    def wake_all(self) -> None:
        for waiter in list(self):
            waiter.wake()
        self.clear()
