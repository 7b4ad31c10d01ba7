"""The only clock of the server.

It is wall time at start plus monotonic time since. When the wall clock is set, this one is too, in one step that
everybody who goes by it is told of (rule 11 of docs/design.md); the timer looks for that (`timer`).

What counts as a step is where the two clocks differ by `STEP_NS` or more. (An NTP daemon that slews the wall clock
slews Linux's monotonic one with it, so that such differences do not add up.) While the machine is suspended Linux's
monotonic clock stands still: that is a step too, so locks and delays last as long as the machine is awake.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LAST = 253_402_300_799_999  # ms since 1970: the end of the year 9999
CUT_MS = 1  # what a `Clock` shows is too little by up to so much
STEP_NS = 2_000_000
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
