"""Two clients at a time: one alone is the limit before either server is. Each is a process of its own.

Publishing a million records of 100 bytes (acks=all, acks=1), and taking a million in one share group by implicit
acceptance.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.context import SpawnProcess
from typing import Any

from stock import Target, first_batch, member, publish

CLIENTS, RECORDS = 2, 1_000_000
LIMIT_S = 300.0


def measure(target: Target) -> dict[str, float]:
    count = target.records(RECORDS)
    figures = {}
    for acks in ('all', '1'):
        figures[f'pair_publish_{acks}'] = _rate(_publish, target, target.topic(), count, acks)
    topic = target.topic()
    publish(target, topic, count, 100)
    figures['pair_share'] = _rate(_consume, target, topic, count)
    return figures


def _rate(client: Any, target: Target, topic: str, count: int, *more: Any) -> float:
    """Records per second of `CLIENTS` processes that run `client`, from when all are ready."""
    context = multiprocessing.get_context('spawn')
    ready, taken, ended = context.Barrier(CLIENTS + 1), context.Value('q', 0), context.Value('d', 0.0)
    clients: list[SpawnProcess] = [
        context.Process(target=client, args=(target, topic, count, ready, taken, ended, *more)) for _ in range(CLIENTS)
    ]
    for each in clients:
        each.start()
    try:
        ready.wait(60)
        begun, before = time.monotonic(), taken.value
        for each in clients:
            each.join(LIMIT_S)
        if any(each.exitcode != 0 for each in clients) or taken.value < count:
            raise RuntimeError(f'{taken.value} of {count} records')
        return (int(taken.value) - before) / (ended.value - begun)
    finally:
        for each in clients:
            each.kill()


def _publish(target: Target, topic: str, count: int, ready: Any, taken: Any, ended: Any, acks: str) -> None:
    publish(target, topic, 1000, 100, acks=acks)
    ready.wait()
    publish(target, topic, count // CLIENTS, 100, acks=acks)
    with taken.get_lock():
        taken.value += count // CLIENTS
        ended.value = time.monotonic()  # the later one's stays


def _consume(target: Target, topic: str, count: int, ready: Any, taken: Any, ended: Any) -> None:
    with member(target, topic, **{'share.acknowledgement.mode': 'implicit'}) as consumer:
        got = len(first_batch(consumer))
        ready.wait()
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if got:
                with taken.get_lock():
                    taken.value += got
                    ended.value = time.monotonic()  # who waits for more when all is taken does not count
            if taken.value >= count:
                break
            got = len(consumer.poll(0.2))
        consumer.commit_sync(60.0)
