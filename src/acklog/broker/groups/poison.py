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
    """What has become of a group's latest records: runs of settled and of dead ones, as many as the threshold says."""

    def __init__(self, threshold: Threshold) -> None:
        self.threshold = threshold
        self._runs: deque[tuple[int, bool]] = deque()  # how many, dead
        self._records = self._dead = 0

    def see(self, events: Sequence[ev.Event]) -> str | None:
        """Count what has happened; the reason for a pause when the threshold is reached by it."""
        died = False
        for event in events:
            if isinstance(event, ev.Settled):
                self._add(len(event.offsets), False)
            elif isinstance(event, ev.Died) or (isinstance(event, ev.GivenUp) and event.reason != GIVEN_UP):
                self._add(len(event.offsets), True)
                died = True
        percent, records = self.threshold
        if not died or self._records < records or self._dead * 100 < records * percent:
            return None
        reason = f'{self._dead} of the last {records} records died ({NAME}={percent}%/{records})'
        self._runs.clear()
        self._records = self._dead = 0
        return reason

    def _add(self, count: int, dead: bool) -> None:
        self._runs.append((count, dead))
        self._records += count
        self._dead += count * dead
        excess = self._records - self.threshold.records
        while excess > 0:
            oldest, was_dead = self._runs.popleft()
            gone = min(oldest, excess)
            if gone < oldest:
                self._runs.appendleft((oldest - gone, was_dead))
            excess -= gone
            self._records -= gone
            self._dead -= gone * was_dead
