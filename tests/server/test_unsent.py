"""Which readers have to go when answers that nobody takes are too many."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from acklog.server.unsent import Unsent


@dataclass
class Reader:
    name: str
    unsent: int
    waiting: float  # s
    taken: int  # bytes in that time

    def seconds_waiting(self, now: float) -> float:
        return self.waiting

    def seconds_left(self, now: float) -> float:
        return self.unsent * self.waiting / max(self.taken, 1)


FAST = Reader('fast', 50, 2, 5000)
SLOW = Reader('slow', 50, 2, 10)
DEAF = Reader('deaf', 30, 2, 0)
NEW = Reader('new', 500, 0.1, 0)
IDLE = Reader('idle', 0, 0, 0)


@pytest.mark.parametrize(
    ('total', 'gone'),
    [
        (1000, []),
        (1001, ['deaf']),
        (1030, ['deaf']),
        (1031, ['deaf', 'slow']),
        (1081, ['deaf', 'slow', 'fast']),
        (5000, ['deaf', 'slow', 'fast']),  # who only just began to wait may still be quick
    ],
)
def test_the_slowest_go_until_the_others_fit(total: int, gone: list[str]) -> None:
    account = Unsent(1000)
    account.total = total
    assert account.too_much == (total > 1000)
    assert [reader.name for reader in account.slowest([FAST, SLOW, DEAF, NEW, IDLE], 0.0)] == gone
