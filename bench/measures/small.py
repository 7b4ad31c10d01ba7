"""Where batching does not help: one record per batch, and one record per poll (max.poll.records=1)."""

from __future__ import annotations

import time

from stock import Target, consume, first_batch, member, publish

PUBLISHED, POLLED = 100_000, 5_000
ONE_RECORD_BATCHES = {'batch.num.messages': 1, 'linger.ms': 0, 'acks': '1', 'max.in.flight': 1000}


def measure(target: Target) -> dict[str, float]:
    count, topic = target.records(PUBLISHED), target.topic(1)
    cpu, begun = target.cpu_seconds(), time.perf_counter()
    publish(target, topic, count, 100, **ONE_RECORD_BATCHES)
    published = time.perf_counter() - begun
    cpu = target.cpu_seconds() - cpu
    return {
        'one_record_publish': count / published,
        'one_record_cpu': cpu / count * 1e6,
        'one_record_share': consume(target, topic, count, None),
        'poll_one': _poll_one(target),
    }


def _poll_one(target: Target) -> float:
    count, topic = target.records(POLLED), target.topic(1)
    publish(target, topic, count, 100, **ONE_RECORD_BATCHES)
    with member(target, topic, **{'max.poll.records': 1}) as consumer:
        first = got = len(first_batch(consumer))
        begun, deadline = time.perf_counter(), time.monotonic() + 120
        while got < count and time.monotonic() < deadline:
            got += len(consumer.poll(1.0))
        return (got - first) / (time.perf_counter() - begun)
