"""`why` and `record` over HTTP, 100 questions a second, while the stock client publishes and takes at full speed: how
long an answer takes, and how much less is published and taken than in the seconds between, when nobody asks."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.context import SpawnProcess
from typing import Any

from stock import Target, member, percentile, publish

from acklog.client.http import HttpClient, path_of

RATE, WINDOWS, WINDOW_S = 100, 8, 2.0  # every second one without questions
AT_ONCE = 20_000
LIMIT_S = 60.0


def measure(target: Target) -> dict[str, float]:
    topic = target.topic()
    context = multiprocessing.get_context('spawn')
    counts = [context.Value('q', 0) for _ in range(2)]
    load: list[SpawnProcess] = [
        context.Process(target=work, args=(target, topic, counts[place])) for place, work in enumerate((_send, _take))
    ]
    for each in load:
        each.start()
    try:
        _wait_for(counts)
        times: dict[str, list[float]] = {'why': [], 'record': []}
        handled = {True: 0, False: 0}
        for window in range(max(2, int(WINDOWS * max(target.scale, 0.25)))):
            before, asks = sum(count.value for count in counts), window % 2 == 1
            if asks:
                _ask(HttpClient(target.http), topic, times)
            else:
                time.sleep(WINDOW_S)
            handled[asks] += sum(count.value for count in counts) - before
    finally:
        for each in load:
            each.kill()
            each.join()
    figures = {'questions_fall': 100 * (1 - handled[True] / handled[False])}
    for name, taken in times.items():
        figures[f'{name}_p50'], figures[f'{name}_p99'] = percentile(taken, 50), percentile(taken, 99)
    return figures


def _ask(http: HttpClient, topic: str, times: dict[str, list[float]]) -> None:
    paths = {'why': path_of('groups', topic, 'why')}
    begun = time.monotonic()
    for number in range(int(RATE * WINDOW_S)):
        time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        paths['record'] = path_of('topics', topic, 'partitions', number % 4, 'records', number * 7)
        name = 'why' if number % 2 else 'record'
        asked = time.perf_counter()
        http.get(paths[name])
        times[name].append((time.perf_counter() - asked) * 1000)
    time.sleep(max(0.0, begun + WINDOW_S - time.monotonic()))


def _wait_for(counts: list[Any]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not all(count.value > 2 * AT_ONCE for count in counts):
        if time.monotonic() > deadline:
            raise RuntimeError('nothing was published, or nothing came')
        time.sleep(0.05)


def _send(target: Target, topic: str, sent: Any) -> None:
    while True:
        publish(target, topic, AT_ONCE, 100)
        sent.value += AT_ONCE


def _take(target: Target, topic: str, taken: Any) -> None:
    with member(target, topic) as consumer:
        while True:
            taken.value += len(consumer.poll(1.0))
