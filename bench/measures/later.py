"""200,000 records that are published for later, each for an instant of its own within 4 s, taken by a member that
waits: how fast they are published, and how late they come."""

from __future__ import annotations

import asyncio
import random
import time

from arrivals import Taker, lateness
from stock import Target

import acklog
from acklog.wire.deliver_at import NAME, text

RECORDS = 200_000
SPREAD_MS = 4000


def measure(target: Target) -> dict[str, float]:
    return asyncio.run(_measure(target, target.records(RECORDS)))


async def _measure(target: Target, count: int) -> dict[str, float]:
    topic = target.topic(1, {'acklog.deliver.at.enable': 'true'})
    first = time.time_ns() // 1_000_000 + 3000 + count // 25
    dues = [first + random.randint(0, SPREAD_MS) for _ in range(count)]
    records = [acklog.NewRecord(None, b'x' * 100, [(NAME, text(due))]) for due in dues]
    with Taker(target, topic, count) as taker:
        async with acklog.connect(target.address) as client:
            begun = time.monotonic()
            published = await client.publish_all(topic, records)
            seconds = time.monotonic() - begun
            if time.time_ns() // 1_000_000 >= first:
                raise RuntimeError('they fell due before all were published')
        cpu = target.cpu_seconds()
        by_offset = [due for _, due in sorted(zip((place.offset for place in published), dues, strict=True))]
        figures = lateness('later', taker.arrivals(), by_offset)
        cpu = target.cpu_seconds() - cpu
        return {'later_rate': count / seconds, 'later_cpu': cpu / count * 1e6, **figures}
