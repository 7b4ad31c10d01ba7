"""Publish a million records of 100 bytes and of 1 kB, acks=all and acks=1; and what that costs the server.

Kafka answers acks=all before anything is on disk; acklog after its fdatasync. What the client's own calls come to when
nothing is sent is measured beside it: no server makes it faster than that.
"""

from __future__ import annotations

import time

from confluent_kafka import Producer
from stock import Target, own_cpu_seconds, publish

from acklog.testing.stock_client import QUIET

RECORDS = 1_000_000


def measure(target: Target) -> dict[str, float]:
    figures = {'publish_calls': calls_per_second(target.records(RECORDS))}
    for size, label in ((100, '100b'), (1000, '1kb')):
        for acks in ('all', '1'):
            count, topic = target.records(RECORDS), target.topic()
            own, cpu, begun = own_cpu_seconds(), target.cpu_seconds(), time.perf_counter()
            publish(target, topic, count, size, acks=acks)
            figures[f'publish_{label}_{acks}'] = count / (time.perf_counter() - begun)
            figures[f'publish_cpu_{label}_{acks}'] = (target.cpu_seconds() - cpu) / count * 1e6
            if (label, acks) == ('100b', '1'):
                figures['publish_client'] = (own_cpu_seconds() - own) / count * 1e6
    return figures


def calls_per_second(count: int) -> float:
    """Produce calls of the stock client, of 100 bytes each, to a server that is not there."""
    nowhere = {'bootstrap.servers': '127.0.0.1:1', 'log_level': 0}
    queue = {'queue.buffering.max.messages': count + 1, 'queue.buffering.max.kbytes': 2_000_000}
    producer = Producer({**QUIET, **nowhere, **queue})
    value, begun = b'x' * 100, time.perf_counter()
    for _ in range(count):
        producer.produce('nowhere', value)
    seconds = time.perf_counter() - begun
    producer.purge()
    producer.flush(1)
    return count / seconds
