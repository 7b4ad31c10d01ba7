"""The only timer of the server: one heap of calls, and one alarm (see `alarm`) at the earliest of them.

It also finds out when the wall clock has been set: it looks before it makes calls, and every second.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from acklog.server.alarm import open_alarm
from acklog.server.clock import Clock

LOOK_MS = 1000
REST_MS = 500  # between two steps: a clock that is set without end must not be all that the server does
MANY = 1000  # cancelled calls that are not worth the while


class Call:
    """A call that has been asked for. Its callback is None once it has been made or cancelled."""

    __slots__ = ('_order', '_timer', 'callback', 'when')

    def __init__(self, when: int, order: int, callback: Callable[[], None], timer: LoopTimer) -> None:
        self.when = when
        self._order = order
        self._timer = timer
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timer.cancelled()

    def __lt__(self, other: Call) -> bool:
        return (self.when, self._order) < (other.when, other._order)


class LoopTimer:
    """Calls back at times of a `Clock`, in the order of the times, never early.

    Nearly all calls are cancelled long before their time (those that end a long poll): when more than half of the heap
    are, they are thrown out, so it holds at most twice what is still asked for."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = clock
        self._loop = loop
        self._heap: list[Call] = []
        self._order = 0
        self._cancelled = 0  # of those in the heap, at most
        self._alarm = open_alarm(loop, self._run)
        self._armed: int | None = None  # for when the alarm is set
        self._running = False  # calls are being made; the next time is looked for after them
        self._on_step: Callable[[int], None] | None = None
        self._rests_until = 0.0  # of the loop's time

    def at(self, when: int, callback: Callable[[], None]) -> Call:
        """Call `callback` once when the clock shows `when` (ms) or later."""
        self._order += 1
        call = Call(when, self._order, callback, self)
        heapq.heappush(self._heap, call)
        if not self._running and (self._armed is None or when < self._armed):
            self._arm(when)
        return call

    def look_out(self, on_step: Callable[[int], None]) -> None:
        """From now on tell `on_step` when the wall clock has been set, and by how much (ms). That sets the clock (its
        `step`) and moves what was asked of the timer along (`stepped`)."""
        self._on_step = on_step
        self.at(self.clock(), self._look_again)

    def _look_again(self) -> None:
        self.at(self.clock() + LOOK_MS, self._look_again)  # each time when calls are made it looks

    def _look(self) -> None:
        now = self._loop.time()
        if self._on_step is not None and now >= self._rests_until and (by := self.clock.astray()):
            self._rests_until = now + REST_MS / 1000
            self._on_step(by)
            self.at(self.clock() + REST_MS, _nothing)

    def stepped(self, by: int) -> None:
        """The clock was set by `by` ms. Calls are wanted as far from now as before."""
        for call in self._heap:
            call.when += by
        if self._armed is not None:
            self._armed += by

    def cancelled(self) -> None:
        """One of the calls in the heap is not to be made any more."""
        self._cancelled += 1
        if self._cancelled > MANY and self._cancelled * 2 > len(self._heap):
            self._heap[:] = [call for call in self._heap if call.callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def __len__(self) -> int:
        """How many calls it remembers, the cancelled ones among them."""
        return len(self._heap)

    def moved(self) -> None:
        """The clock was moved: make the calls that are due now."""
        self._alarm.clear()
        self._run()

    def stop(self) -> None:
        """No more calls."""
        self._heap.clear()
        self._armed = None
        self._alarm.close()

    def _arm(self, when: int) -> None:
        self._armed = when
        self._alarm.set(self.clock.seconds_until(when))

    def _run(self) -> None:
        self._armed, self._running = None, True
        heap = self._heap
        try:
            self._look()
            now = self.clock()
            while heap and (heap[0].callback is None or heap[0].when <= now):
                call = heapq.heappop(heap)
                callback, call.callback = call.callback, None
                if callback is None:
                    self._cancelled -= 1
                else:
                    callback()
        finally:  # a call that raises is a bug of its own and does not stop the others
            self._running = False
            if heap:
                self._arm(heap[0].when)


def _nothing() -> None:
    """To be called is enough: before it makes calls the timer looks."""
