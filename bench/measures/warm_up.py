"""A server that has just been started: its first synchronous publishes, and its first million records, which are
published, taken and signed off.

It comes before all other measurements, so that no server is measured there before its code has run for a while: a JVM
compiles what runs often, and needs some seconds of work until it has.
"""

from __future__ import annotations

import time

from stock import Target, consume, percentile, publish

from measures.sync_latency import times_of

RECORDS, ONE_BY_ONE = 1_000_000, 2_000


def measure(target: Target) -> dict[str, float]:
    one_by_one = times_of(target, '1', target.records(ONE_BY_ONE), warm_up=0)
    topic, count = target.topic(), target.records(RECORDS)
    cpu, begun = target.cpu_seconds(), time.perf_counter()
    publish(target, topic, count, 100)
    published, cpu_published = time.perf_counter() - begun, target.cpu_seconds()
    share = consume(target, topic, count, None)
    return {
        'first_sync_p50': percentile(one_by_one, 50) * 1e6,
        'first_publish': count / published,
        'first_share': share,
        'first_publish_cpu': (cpu_published - cpu) / count * 1e6,
        'first_share_cpu': (target.cpu_seconds() - cpu_published) / count * 1e6,
    }
