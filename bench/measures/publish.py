"""Publish a million records of 100 bytes and of 1 kB, acks=all and acks=1; and what that costs the server.

Kafka answers acks=all before anything is on disk; acklog after its fdatasync.
"""

from __future__ import annotations

import time

from stock import Target, own_cpu_seconds, publish

RECORDS = 1_000_000


def measure(target: Target) -> dict[str, float]:
    figures: dict[str, float] = {}
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
