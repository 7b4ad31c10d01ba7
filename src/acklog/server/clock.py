"""The only clock and the only timer of the server.

The clock is wall time at start plus monotonic time since: it never decreases and does not follow a stepped wall clock
(rule 11 of docs/design.md). The timer is one heap of calls and one call of the event loop at the earliest of them.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable


class Clock:
    """Milliseconds since 1970 by `clock()`."""

    __slots__ = ('_base_ns',)

    def __init__(self) -> None:
        self._base_ns = time.time_ns() - time.monotonic_ns()

    def __call__(self) -> int:
        return (self._base_ns + time.monotonic_ns()) // 1_000_000

    def not_below(self, ms: int) -> None:
        """What was journalled has happened: go on from there if the wall clock was behind it at start."""
        self._base_ns = max(self._base_ns, ms * 1_000_000 - time.monotonic_ns())

    def seconds_until(self, ms: int) -> float:
        """From now until the clock shows `ms`; negative if it is past that."""
        return (ms * 1_000_000 - self._base_ns - time.monotonic_ns()) / 1e9


class MovableClock(Clock):
    """A clock that goes on by itself and can be moved ahead, for tests. Whoever moves it tells the timers: `moved`."""

    __slots__ = ()

    def move(self, ms: int) -> None:
        """Ahead by so many milliseconds, 0 or more. Raises ValueError for less: a clock never goes back."""
        if ms < 0:
            raise ValueError(f'a clock does not go back, not by {-ms} ms either')
        self._base_ns += ms * 1_000_000


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
        self._clock = clock
        self._loop = loop
        self._heap: list[Call] = []
        self._order = 0
        self._cancelled = 0  # of those in the heap, at most
        self._armed: tuple[int, asyncio.TimerHandle] | None = None
        self._running = False  # calls are being made; the next time is looked for after them

    def at(self, when: int, callback: Callable[[], None]) -> Call:
        """Call `callback` once when the clock shows `when` (ms) or later."""
        self._order += 1
        call = Call(when, self._order, callback, self)
        heapq.heappush(self._heap, call)
        if not self._running and (self._armed is None or when < self._armed[0]):
            self._arm(when)
        return call

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
        if self._armed is not None:
            self._armed[1].cancel()
        self._run()

    def stop(self) -> None:
        """No more calls."""
        self._heap.clear()
        if self._armed is not None:
            self._armed[1].cancel()
            self._armed = None

    def _arm(self, when: int) -> None:
        if self._armed is not None:
            self._armed[1].cancel()
        handle = self._loop.call_at(self._loop.time() + max(0.0, self._clock.seconds_until(when)), self._run)
        self._armed = (when, handle)

    def _run(self) -> None:
        self._armed, self._running = None, True
        now = self._clock()
        heap = self._heap
        try:
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
