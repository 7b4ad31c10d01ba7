"""Redrive 100,000 dead records over HTTP: until all have come to a member that waits, at once and at a rate; and
whether any comes before the rate allows it."""

from __future__ import annotations

import asyncio
import time

from arrivals import Taker, take_all
from stock import Target, publish

import acklog
from acklog.client.http import HttpClient, path_of

RECORDS, AT_ONCE = 100_000, 5000
PART = 4  # of a second: how long it takes at the rate


def measure(target: Target) -> dict[str, float]:
    count = target.records(RECORDS)
    topic = target.topic(1)
    publish(target, topic, count, 100)
    at_once = _redrive(target, topic, count, None)
    publish(target, topic, count, 100)
    rate = count / PART
    begun, *times = _redrive(target, topic, count, rate)
    early = max(number / rate - (at - begun) / 1e6 for number, at in enumerate(times)) * 1000
    return {
        'redrive_seconds': (at_once[-1] - at_once[0]) / 1e6,
        'redrive_rated_seconds': (times[-1] - begun) / 1e6,
        'redrive_rated_early': max(early, 0.0),
    }


def _redrive(target: Target, topic: str, count: int, rate: float | None) -> list[int]:
    """When it was asked for, and when each record came; us."""
    rejected = asyncio.run(_reject(target, topic, count))
    http = HttpClient(target.http)
    with Taker(target, topic, count) as taker:
        begun = time.time_ns() // 1000
        body = {'topic': topic} | ({} if rate is None else {'rate': rate})
        changed = http.post(path_of('groups', topic, 'dead', 'redrive'), body)
        came = taker.arrivals()
    if changed['records'] != count or {arrival.offset for arrival in came} != rejected:
        raise RuntimeError(f'{changed} of {count} dead records were redriven, {len(came)} came')
    return [begun, *(arrival.at for arrival in came)]


async def _reject(target: Target, topic: str, count: int) -> set[int]:
    async with (
        acklog.connect(target.address) as client,
        client.subscribe(topic, [topic], max_records=AT_ONCE, max_unsettled=None) as subscription,
    ):
        held = await take_all(subscription, count)
        for record in held:
            record.reject(reason='nobody can process it')
        await subscription.flush()
    return {record.offset for record in held}
