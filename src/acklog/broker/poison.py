"""A group is paused when too many of its records die: a broken subscriber shall not empty a topic into its dead ones.

`acklog.dead.pause.threshold=50%/100`: when of the last 100 records that were settled half or more have died. What an
operator gave up does not count. After a resume the count begins anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from acklog.broker.configs.thresholds import NAME, Threshold
from acklog.core import events as ev
from acklog.core.failing import GIVEN_UP


class Watch:
    """What has become of a group's latest records. `full`: whether the threshold is reached."""

    def __init__(self, threshold: Threshold) -> None:
        self.threshold = threshold
        self._portions: deque[tuple[int, int]] = deque()  # settled, of them dead
        self._settled = self._dead = 0

    def see(self, events: Sequence[ev.Event]) -> str | None:
        """Count what has happened; the reason for a pause when the threshold is reached by it."""
        for event in events:
            if isinstance(event, ev.Settled):
                self._add(len(event.offsets), 0)
            elif isinstance(event, ev.Died) or (isinstance(event, ev.GivenUp) and event.reason != GIVEN_UP):
                self._add(len(event.offsets), len(event.offsets))
        percent, records = self.threshold
        if self._settled < records or not self._dead or self._dead * 100 < self._settled * percent:
            return None
        reason = f'{self._dead} of the last {self._settled} records died ({NAME}={percent}%/{records})'
        self._portions.clear()
        self._settled = self._dead = 0
        return reason

    def _add(self, settled: int, dead: int) -> None:
        self._portions.append((settled, dead))
        self._settled += settled
        self._dead += dead
        while self._settled - self._portions[0][0] >= self.threshold.records:
            old, old_dead = self._portions.popleft()
            self._settled -= old
            self._dead -= old_dead
