"""What the share partition itself costs, without log, journal or sockets: `python bench/core.py`.

Each line: processor time of the best of many runs, in microseconds for one call, with what a call is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from acklog.broker.journal import event_codec
from acklog.core.backoff import parse
from acklog.core.share_partition import Ack, ShareConfig, SharePartition

BATCH = 500
MILLION = 1_000_000


def ready(config: ShareConfig | None = None) -> SharePartition:
    return SharePartition(config or ShareConfig(max_in_flight=2 * MILLION, attempts_limit=None))


def take(partition: SharePartition, now: int, first: int, count: int = BATCH, size: int = BATCH) -> None:
    reservation = partition.reserve(now, 'member', count, False, first + count)
    assert reservation is not None
    batches = [(at, at + size - 1, False) for at in range(first, first + count, size)]
    partition.acquire(now, reservation, batches)


def take_and_accept(alternating: int) -> Callable[[], None]:
    partition, now, at = ready(), 1000, 0

    def call() -> None:
        nonlocal at
        take(partition, now, at)
        if alternating:
            partition.acknowledge(now, 'member', [(at + i, at + i, Ack.ACCEPT) for i in range(BATCH)])
        else:
            partition.acknowledge(now, 'member', [(at, at + BATCH - 1, Ack.ACCEPT)])
        event_codec.encode(partition.take_events())
        at += BATCH

    return call


def one_record() -> Callable[[], None]:
    partition, now, at = ready(), 1000, 0

    def call() -> None:
        nonlocal at
        take(partition, now, at, 1, 1)
        partition.acknowledge(now, 'member', [(at, at, Ack.ACCEPT)])
        event_codec.encode(partition.take_events())
        at += 1

    return call


def one_record_refused() -> Callable[[], None]:
    partition, now, at = ready(), 1000, 0

    def call() -> None:
        nonlocal at
        take(partition, now, at, 1, 1)
        partition.acknowledge(now, 'member', [(at, at, Ack.REJECT)])
        event_codec.encode(partition.take_events())
        at += 1

    return call


def released_with_times() -> Callable[[], None]:
    partition, now, at = ready(), 1000, 0

    def call() -> None:
        nonlocal at
        take(partition, now, at)
        acks = [(at + i, at + i, Ack.RELEASE, now + 3_600_000 + (at + i) * 7919 % 4000) for i in range(BATCH)]
        partition.acknowledge(now, 'member', acks)
        event_codec.encode(partition.take_events())
        at += BATCH

    return call


def used_up() -> Callable[[], None]:
    partition, now, at = ready(ShareConfig(attempts_limit=1, max_in_flight=2 * MILLION)), 1000, 0

    def call() -> None:
        nonlocal at
        take(partition, now, at)
        partition.acknowledge(now, 'member', [(at, at + BATCH - 1, Ack.RELEASE)])
        event_codec.encode(partition.take_events())
        at += BATCH

    return call


def with_a_million_waiting() -> Callable[[], None]:
    partition, now, at = ready(ShareConfig(max_in_flight=2 * MILLION, backoff=parse('fixed:1h~50%'))), 1000, 0
    take(partition, now, 0, MILLION, 1000)
    partition.lost(now, 'member')
    at = MILLION

    def call() -> None:
        nonlocal at
        take(partition, now, at)
        partition.acknowledge(now, 'member', [(at, at + BATCH - 1, Ack.ACCEPT)])
        event_codec.encode(partition.take_events())
        at += BATCH

    return call


MEASURES: list[tuple[str, Callable[[], Callable[[], None]], int]] = [
    ('take 1, accept it', one_record, 2000),
    ('take 1, reject it', one_record_refused, 2000),
    (f'take {BATCH}, accept them as one range', lambda: take_and_accept(0), 500),
    (f'take {BATCH}, accept each', lambda: take_and_accept(1), 200),
    (f'take {BATCH}, release each with a time of its own', released_with_times, 100),
    (f'take {BATCH}, which die', used_up, 300),
    (f'take {BATCH}, accept them, a million waiting', with_a_million_waiting, 300),
]


def main() -> None:
    for name, make, calls in MEASURES:
        call, best = make(), float('inf')
        for _ in range(20):
            began = time.process_time()
            for _ in range(calls // 4):
                call()
            best = min(best, (time.process_time() - began) / (calls // 4))
        sys.stdout.write(f'{best * 1e6:9.1f} us  {name}\n')


if __name__ == '__main__':
    main()
