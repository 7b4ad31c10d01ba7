"""How long one publish takes until it is confirmed, one after the other: acks=all and acks=1.

acklog's acks=all waits for the disk, Kafka's does not; so the disk's own fdatasync is measured beside it
(bench/disk.py).
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer
from stock import Target, percentile

from acklog.testing.stock_client import QUIET

RECORDS, WARM_UP = 5_000, 300


def measure(target: Target) -> dict[str, float]:
    figures: dict[str, float] = {}
    for acks in ('all', '1'):
        times = times_of(target, acks, target.records(RECORDS))
        figures[f'sync_{acks}_p50'] = percentile(times, 50) * 1e6
        figures[f'sync_{acks}_p99'] = percentile(times, 99) * 1e6
    return figures


def times_of(target: Target, acks: str, count: int, warm_up: int = WARM_UP) -> list[float]:
    """Seconds that each of `count` publishes takes, after some that do not count."""
    topic = target.topic(1)
    producer = Producer({'bootstrap.servers': target.address, 'linger.ms': 0, 'acks': acks, **QUIET})
    confirmed: list[Any] = []
    times = []
    for _ in range(warm_up + count):
        confirmed.clear()
        begun = time.perf_counter()
        producer.produce(topic, b'x' * 100, on_delivery=lambda error, _: confirmed.append(error))
        while not confirmed:
            producer.poll(1.0)
        times.append(time.perf_counter() - begun)
        if confirmed[0] is not None:
            raise RuntimeError(f'not confirmed: {confirmed[0]}')
    return times[warm_up:]
