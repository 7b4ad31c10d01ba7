"""The account of all answers that clients have not taken yet.

Strategy: each connection adds what it has ready or waiting in its socket's buffer. Above the limit answers with records
become as small as the protocol lets them, so clients that read are served on while nobody adds much; and whoever would
need longest to take what it has asked for, at the pace it has shown, is closed until the sum is below the limit again.
So memory is bounded, and who reads slowly pays for it alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

PATIENCE_S = 1.0  # a reader is not called slow before


class Reader(Protocol):
    """A connection whose client has answers to take."""

    @property
    def unsent(self) -> int:
        """Bytes that wait for it."""
        ...

    def seconds_left(self, now: float) -> float:
        """How long it would take it to read these, at the pace since they began to wait; at most that of one byte in
        all the time."""
        ...

    def seconds_waiting(self, now: float) -> float:
        """For how long its client has not kept up."""
        ...


R = TypeVar('R', bound=Reader)


class Unsent:
    """`limit`, `total`: bytes."""

    __slots__ = ('limit', 'total')

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0

    @property
    def too_much(self) -> bool:
        return self.total > self.limit

    def slowest(self, readers: Iterable[R], now: float) -> list[R]:
        """Who has to go, so that the others fit: none while there is room, none that only just began to wait."""
        excess = self.total - self.limit
        if excess <= 0:
            return []
        slow = [reader for reader in readers if reader.seconds_waiting(now) >= PATIENCE_S]
        slow.sort(key=lambda reader: reader.seconds_left(now), reverse=True)
        chosen: list[R] = []
        for reader in slow:
            if excess <= 0:
                break
            chosen.append(reader)
            excess -= reader.unsent
        return chosen
