"""What the broker knows of time: a clock to read and a timer to ask for calls. The server has the only real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Scheduled(Protocol):
    """A call that has been asked for."""

    def cancel(self) -> None:
        """It will not come any more; nothing happens if it has come already."""
        ...


class Timer(Protocol):
    """Calls back at a time."""

    def at(self, when: int, callback: Callable[[], None]) -> Scheduled:
        """Call `callback` once when the clock shows `when` (ms) or later, as soon after it as can be."""
        ...


Clock = Callable[[], int]  # ms since 1970; never less than before, but for `Broker.clock_stepped`
