"""What may happen to logs in memory: other tasks that run first, and failures, at random from a seed or on demand."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field

from acklog.errors import Failed, Full, LogError, OutcomeUnknown


class _Pause:
    """Lets every other task of the loop run once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass(slots=True)
class Trouble:
    """What may happen to the logs of a directory. `delay`: largest number of times that other tasks run first;
    `failure_rate`: share of appends that fail at random, with one of `failures`; `on_demand`: what becomes of the next
    appends to a log (None: they go well)."""

    seed: int = 0
    delay: int = 0
    failure_rate: float = 0.0
    failures: tuple[type[LogError], ...] = (Full, Failed, OutcomeUnknown)
    on_demand: dict[str, list[type[LogError] | None]] = field(default_factory=dict)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def failure(self, name: str) -> type[LogError] | None:
        """How the next append to this log fails, if it does."""
        for key in (name, ''):
            waiting = self.on_demand.get(key)
            if waiting:
                return waiting.pop(0)
        if self.failure_rate and self.random.random() < self.failure_rate:
            return self.random.choice(self.failures)
        return None

    async def pause(self) -> None:
        if self.delay:
            for _ in range(self.random.randint(0, self.delay)):
                await _Pause()
