"""The steps of the clock that the journal may not tell of yet.

A step happens to all share partitions, to those that are being folded anew too, and cannot be taken back. So each is
remembered with where the journal tells of it: whoever has read the journal up to somewhere learns here what is missing,
and what a turn that got lost should have told is told by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

from acklog.broker.journal import event_codec
from acklog.broker.journal.format import EVERY, Kind, entry
from acklog.core.events import ClockStepped

MOST = 1000  # that are remembered beside those to be told: by far more than there are while the journal is read


@dataclass(slots=True, eq=False)
class _Step:
    event: ClockStepped
    position: int | None = None  # of the batch that tells of it; None: it is still to be told


class Steps:
    """In order."""

    __slots__ = ('_steps', '_untold')

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._untold = 0  # so many of the last ones are still to be told

    def add(self, event: ClockStepped) -> bytes:
        """It has happened. Returns its entry."""
        self._steps.append(_Step(event))
        self._untold += 1
        while len(self._steps) > MOST and self._steps[0].position is not None:
            del self._steps[0]
        return _entry(event)

    def told(self, position: int) -> None:
        """The batch at `position` tells of all that were still to be told."""
        if self._untold:  # hardly ever, and this is asked with each batch
            for step in self._steps[-self._untold :]:
                step.position = position
            self._untold = 0

    def lost(self, position: int) -> None:
        """There is no batch at `position`."""
        for step in self._steps:
            if step.position == position:
                step.position = None
                self._untold += 1

    def to_tell(self) -> list[bytes]:
        """The entries of those that are still to be told."""
        return [_entry(step.event) for step in self._steps if step.position is None]

    def since(self, offset: int) -> list[ClockStepped]:
        """Those that the journal does not tell of below `offset`."""
        return [step.event for step in self._steps if step.position is None or step.position >= offset]


def _entry(event: ClockStepped) -> bytes:
    return entry(EVERY, Kind.STEP, event_codec.encode([event]))
