"""The only clock and the only timer of the server.

The clock is wall time at start plus monotonic time since. When the wall clock is set, this one is too, in one step that
everybody who goes by it is told of (rule 11 of docs/design.md): the timer looks before it makes calls, and every
second. The timer is one heap of calls and one alarm (see `alarm`) at the earliest of them.

What counts as a step is where the two clocks differ by `STEP_NS` or more. (An NTP daemon that slews the wall clock
slews Linux's monotonic one with it, so that such differences do not add up.) While the machine is suspended Linux's
monotonic clock stands still: that is a step too, so locks and delays last as long as the machine is awake.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable

from acklog.server.alarm import open_alarm

CUT_MS = 1  # what a `Clock` shows is too little by up to so much
STEP_NS = 2_000_000
LOOK_MS = 1000
REST_MS = 500  # between two steps: a clock that is set without end must not be all that the server does
UNSURE_NS = 500_000  # the clocks were read so far apart: another look will tell


class Clock:
    """Milliseconds since 1970 by `clock()`. `wall_ns`: the clock that it goes by, in ns."""

    __slots__ = ('_base_ns', '_wall_ns')

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._wall_ns = wall_ns
        self._base_ns = wall_ns() - time.monotonic_ns()

    def __call__(self) -> int:
        return (self._base_ns + time.monotonic_ns()) // 1_000_000

    def not_below(self, ms: int) -> None:
        """What was journalled has happened: go on from there if the wall clock was behind it at start."""
        self._base_ns = max(self._base_ns, ms * 1_000_000 - time.monotonic_ns())

    def astray(self) -> int:
        """By how many ms the wall clock is ahead of this one, below 0 if it is behind; 0 for next to nothing."""
        before = time.monotonic_ns()
        wall = self._wall_ns()
        after = time.monotonic_ns()
        ahead = wall - before - self._base_ns
        return 0 if abs(ahead) < STEP_NS or after - before > UNSURE_NS else ahead // 1_000_000

    def step(self, by: int) -> None:
        """Go on from `by` ms further ahead or, below 0, back."""
        self._base_ns += by * 1_000_000

    def seconds_until(self, ms: int) -> float:
        """From now until the clock shows `ms`; negative if it is past that."""
        return (ms * 1_000_000 - self._base_ns - time.monotonic_ns()) / 1e9


LAST = 253_402_300_799_999  # ms since 1970: the end of the year 9999


class MovableClock(Clock):
    """A clock that goes on by itself and can be moved ahead, for tests. Whoever moves it tells the timers: `moved`."""

    __slots__ = ('_moved_ns',)

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._moved_ns = 0
        super().__init__(lambda: wall_ns() + self._moved_ns)

    def move(self, ms: int) -> None:
        """Ahead by so many milliseconds, 0 or more: as if they had passed. Raises ValueError for less, and past the
        year 9999."""
        if ms < 0:
            raise ValueError(f'time does not go back, not by {-ms} ms either')
        if self() + ms > LAST:
            raise ValueError(f'{ms} ms on it is past the year 9999')
        self._moved_ns += ms * 1_000_000
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
