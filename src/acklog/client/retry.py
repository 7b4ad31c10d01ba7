"""How long to wait before trying again: from 50 ms on, doubling up to a second, with jitter so that clients spread."""

from __future__ import annotations

import asyncio
import random

FIRST = 0.05
LONGEST = 1.0


class Backoff:
    """The waits of one sequence of attempts; `reset` after a success."""

    def __init__(self) -> None:
        self._attempts = 0

    def reset(self) -> None:
        self._attempts = 0

    def next(self) -> float:
        """Seconds to wait before the next attempt."""
        wait = min(LONGEST, FIRST * (1 << min(self._attempts, 10)))
        self._attempts += 1
        return wait * random.uniform(0.8, 1.2)

    async def wait(self) -> None:
        """Wait that long."""
        await asyncio.sleep(self.next())
