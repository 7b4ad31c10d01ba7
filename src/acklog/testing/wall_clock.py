"""Whether the wall clock was set while something was measured by it."""

from __future__ import annotations

import time

NOTICEABLE_S = 0.005


class WallClock:
    """Looks when it is made, and again when it is asked."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def set_by_s(self) -> float:
        """By how many seconds it was set since; below 0: back; 0.0 for less than can be told from noise."""
        by = time.time() - time.monotonic() - self._ahead
        return by if abs(by) >= NOTICEABLE_S else 0.0
