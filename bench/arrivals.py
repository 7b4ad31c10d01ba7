"""When records come: what the measurements of redelivery share.

Who takes, and who is asked whether it is disturbed meanwhile, are processes of their own (taker.py, bystander.py), so
that whoever releases or publishes here does not delay what is measured. Instants are us since 1970; the server's clock
begins as the wall clock and the two do not drift apart, so early is early.
"""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeVar

from stock import Target, percentile

import acklog

HERE = Path(__file__).parent
LIMIT_S = 120
Process = TypeVar('Process', bound='_Process')


class Arrival(NamedTuple):
    offset: int
    at: int


class Passing(NamedTuple):
    """A bystander's record: published at, confirmed and delivered after so many us."""

    at: int
    confirmed: int
    delivered: int


class _Process:
    """Says `ready`, and in the end what it has noted."""

    def __init__(self, script: str, *arguments: object) -> None:
        command = [sys.executable, str(HERE / script), *map(str, arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self: Process) -> Process:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b'ready\n':
            self._process.kill()
            raise RuntimeError(f'{self._process.args!r} did not get ready')
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def _notes(self) -> array[int]:
        try:
            written, _ = self._process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f'{self._process.args!r} did not end') from None
        return array('q', written)


class Taker(_Process):
    """A member that waits for `count` records."""

    def __init__(self, target: Target, topic: str, count: int) -> None:
        super().__init__('taker.py', target.address, topic, count)

    def arrivals(self) -> list[Arrival]:
        """All of them, in the order in which they came; waits for the last."""
        notes = self._notes()
        return [Arrival(*pair) for pair in zip(notes[::2], notes[1::2], strict=True)]


class Bystander(_Process):
    """Another topic and group with `rate` records a second."""

    def __init__(self, target: Target, rate: float) -> None:
        super().__init__('bystander.py', target.address, target.topic(1), rate)

    def passings(self) -> list[Passing]:
        """All of its records; ends it."""
        notes = self._notes()
        return [Passing(*each) for each in zip(notes[::3], notes[1::3], notes[2::3], strict=True)]


async def take_all(subscription: acklog.Subscription, count: int) -> list[acklog.Received]:
    """`count` records, not settled."""
    held: list[acklog.Received] = []
    while len(held) < count:
        records = await subscription.poll(5.0)
        if not records:
            raise RuntimeError(f'{len(held)} of {count} records came')
        held += records
    return held


def lateness(name: str, arrivals: Sequence[Arrival], dues: Sequence[int]) -> dict[str, float]:
    """Figures about how late records came, and how many came early; `dues`: ms, by offset."""
    late = [(at - dues[offset] * 1000) / 1000 for offset, at in arrivals]
    return {
        f'{name}_p50': percentile(late, 50),
        f'{name}_p99': percentile(late, 99),
        f'{name}_max': max(late),
        f'{name}_early': sum(each < 0 for each in late),
        f'{name}_due': busiest(dues),
    }


def busiest(dues: Sequence[int]) -> float:
    """The most that fell due a second, over a tenth of one."""
    return max(Counter(due // 100 for due in dues).values()) * 10


def disturbance(name: str, passings: Sequence[Passing], begin: int, end: int) -> dict[str, float]:
    """Figures about a bystander's records that were published in that time."""
    some = [each for each in passings if begin <= each.at <= end]
    if not some:
        return {}
    delivered = [each.delivered / 1000 for each in some]
    return {
        f'{name}_p50': percentile(delivered, 50),
        f'{name}_p99': percentile(delivered, 99),
        f'{name}_publish_p99': percentile([each.confirmed / 1000 for each in some], 99),
    }
