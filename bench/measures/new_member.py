"""From the start of a new share consumer to its first record, which is there already."""

from __future__ import annotations

import time

from stock import Target, member, publish

TIMES = 3


def measure(target: Target) -> dict[str, float]:
    seconds = []
    for _ in range(TIMES):
        topic = target.topic(1)
        publish(target, topic, 10, 100)
        begun = time.perf_counter()
        with member(target, topic) as consumer:
            while not len(consumer.poll(0.05)):
                if time.perf_counter() - begun > 60:
                    raise RuntimeError('nothing came')
            seconds.append(time.perf_counter() - begun)
    return {'new_member': sorted(seconds)[TIMES // 2]}
