"""The share partition against its targets, without log, journal or sockets: `python bench/share_partition.py`.

Times are medians of many calls in microseconds, each for fresh records; memory is what the process grew by.
"""

from __future__ import annotations

import gc
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pyroaring import BitMap64

from acklog.broker.journal import event_codec
from acklog.core.backoff import Backoff
from acklog.core.due_times import DueTimes
from acklog.core.share_partition import Ack, Acquired, ShareConfig, SharePartition

MILLION = 1_000_000
NOW = 1_000_000
PAGE = 4096


class Row(NamedTuple):
    what: str
    figure: float
    unit: str
    target: str


def with_available(count: int = MILLION, backoff: Backoff | None = None) -> SharePartition:
    """All of them were taken once and returned."""
    partition = SharePartition(ShareConfig(max_in_flight=2 * count, backoff=backoff or Backoff()))
    take(partition, count)
    partition.left(NOW, 'm')
    partition.take_events()
    return partition


def take(partition: SharePartition, count: int) -> Acquired:
    reservation = partition.reserve(NOW, 'm', count, True, 1 << 40)
    assert reservation is not None
    first = partition.end if reservation.tail is not None else reservation.offsets.min()
    return partition.acquire(NOW, reservation, [(first, first + count - 1, False)])


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e6


def cycles(partition: SharePartition, count: int, rounds: int, kind: str) -> tuple[float, float]:
    """Median microseconds of taking `count` records and of acknowledging them in that way."""
    takes, acknowledgements = [], []
    for _ in range(rounds):
        got: list[Acquired] = []
        takes.append(timed(lambda got=got: got.append(take(partition, count))))  # type: ignore[misc]
        first, last, _ = got[0].ranges[0]
        if kind == 'range':
            acks = [(first, last, Ack.ACCEPT)]
        elif kind == 'alternating':
            acks = [(o, o, Ack.ACCEPT if o % 2 else Ack.REJECT) for o in range(first, last + 1)]
        elif kind == 'bytes':
            acks = [(first, last, bytes(1 + 2 * (o % 2) for o in range(first, last + 1)))]
        else:
            acks = [(o, o, Ack.RELEASE, NOW + 3_600_000 + o * 7919 % MILLION) for o in range(first, last + 1)]
        acknowledgements.append(timed(lambda acks=acks: partition.acknowledge(NOW, 'm', acks)))  # type: ignore[misc]
        partition.take_events()
    return median(takes), median(acknowledgements)


def resident() -> int:
    """Bytes of memory that this process has now; 0 where that cannot be read."""
    gc.collect()
    statm = Path('/proc/self/statm')
    return int(statm.read_text().split()[1]) * PAGE if statm.exists() else 0


def times() -> Iterator[Row]:
    taking, accepting = cycles(with_available(), 500, 1500, 'range')
    yield Row('acquire 500 of a million available (reserve, acquire)', taking, 'us', '5')
    yield Row('accept 500 in one range', accepting, 'us', '5')
    _, alternating = cycles(with_available(), 500, 1000, 'alternating')
    yield Row('500 alternating accept and reject', alternating, 'us', '100')
    _, in_bytes = cycles(with_available(), 500, 1000, 'bytes')
    yield Row('500 alternating, one type for each in one range', in_bytes, 'us', '100')
    _, releasing = cycles(with_available(), 500, 500, 'release')
    yield Row('500 released, each until a time of its own', releasing, 'us', '-')
    taking, accepting = cycles(with_available(), 1, 20_000, 'range')
    yield Row('acquire one record', taking, 'us', '10')
    yield Row('accept one record', accepting, 'us', '10')


def holes() -> Iterator[Row]:
    before = resident()
    partition = with_available(2 * MILLION)
    take(partition, 2 * MILLION)
    alternating = bytes(1 + o % 2 for o in range(2 * MILLION))
    partition.acknowledge(NOW, 'm', [(0, 2 * MILLION - 1, alternating)])  # half done, half available again
    partition.take_events()
    assert partition.status.counts().available == MILLION
    events = list(partition.snapshot())
    available = [event for event in events if getattr(event, 'place', '') == 'available']
    yield Row('a million holes: the set in the snapshot', len(event_codec.encode(available)) / 1000, 'kB', '300')
    yield Row(
        'a million holes, twice delivered, failed once, left once: all',
        len(event_codec.encode(events)) / 1000,
        'kB',
        '-',
    )
    del events, available, alternating
    yield Row('the same in memory', (resident() - before) / MILLION, 'MB', 'a few')


def waiting() -> Iterator[Row]:
    before = resident()
    partition = with_available(backoff=Backoff((3_600_000,), 100))
    take(partition, MILLION)
    partition.state.events.clear()
    held = partition.state.locks.held['m'].copy()
    began = time.perf_counter()
    for first in range(0, MILLION, 500):
        partition.acknowledge(NOW, 'm', [(first, first + 499, Ack.RELEASE)])
        partition.state.events.clear()
    seconds = time.perf_counter() - began
    assert len(held) == partition.status.counts().waiting == MILLION
    del held
    yield Row('a million waiting, each until a time of its own: memory', (resident() - before) / MILLION, 'MB', '100')
    yield Row('released with jitter in batches of 500', MILLION / seconds / 1000, 'k/s', '150')
    yield Row('next deadline', median(timed(partition.next_deadline) for _ in range(1000)), 'us', '-')
    yield Row('acquire 500 beside them', cycles(partition, 500, 1500, 'range')[0], 'us', 'as above')
    data = event_codec.encode(partition.snapshot())
    yield Row('their snapshot', len(data) / MILLION, 'MB', '-')
    began = time.perf_counter()
    restored = SharePartition(partition.config)
    for event in event_codec.decode(data):
        restored.fold(event)
    yield Row('decoded and folded', (time.perf_counter() - began) * 1000, 'ms', '-')
    deadline = partition.next_deadline()
    assert deadline is not None and deadline == restored.next_deadline()
    yield Row('all of them fall due', timed(lambda: partition.advance(NOW + 2 * 3_600_000)) / 1000, 'ms', '-')


def put_each() -> Iterator[Row]:
    queue = DueTimes()
    batches = [
        (BitMap64(range(first, first + 500)), array('q', [NOW + o * 7919 % MILLION for o in range(first, first + 500)]))
        for first in range(0, MILLION, 500)
    ]
    began = time.perf_counter()
    for offsets, dues in batches:
        queue.put(offsets, dues)
    yield Row('put to waiting in batches of 500', MILLION / (time.perf_counter() - began) / 1000, 'k/s', '150')


def idle() -> Iterator[Row]:
    before = resident()
    partitions = [SharePartition(ShareConfig(), start) for start in range(10_000)]
    yield Row('an idle share partition', (resident() - before) / len(partitions) / 1000, 'kB', '10')


def show(part: Callable[[], Iterator[Row]]) -> None:
    for row in part():
        sys.stdout.write(f'{row.what:68}{row.figure:10.1f} {row.unit:4} target {row.target}\n')
        sys.stdout.flush()


def main() -> None:
    for part in (times, idle, holes, waiting, put_each):  # each in a process of its own, so that memory is its own
        process = get_context('spawn').Process(target=show, args=(part,))
        process.start()
        process.join()


if __name__ == '__main__':
    main()
