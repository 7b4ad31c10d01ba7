"""100,000 records that are released until the same instant: whether they come in order, how long it takes until all
are there, and how long publishing takes others meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import time

from arrivals import Bystander, Taker, disturbance, take_all
from stock import Target, publish

import acklog

RECORDS, AT_ONCE = 100_000, 5000
BYSTANDER_RATE = 500


def measure(target: Target) -> dict[str, float]:
    return asyncio.run(_measure(target, target.records(RECORDS)))


async def _measure(target: Target, count: int) -> dict[str, float]:
    topic = target.topic(1)
    publish(target, topic, count, 100)
    due = time.time_ns() // 1_000_000 + 3000 + count // 20
    with Bystander(target, BYSTANDER_RATE) as bystander:
        async with (
            acklog.connect(target.address) as client,
            client.subscribe(topic, [topic], max_records=5000, max_unsettled=None) as subscription,
        ):
            held = await take_all(subscription, count)
            with Taker(target, topic, count) as taker:
                for at in range(0, count, AT_ONCE):
                    for record in held[at : at + AT_ONCE]:
                        record.release(at=due)
                    await subscription.flush()
                if time.time_ns() // 1_000_000 >= due:
                    raise RuntimeError('they fell due before all were released')
                arrivals = await asyncio.to_thread(taker.arrivals)
        passings = bystander.passings()
    end = arrivals[-1].at
    beside = disturbance('storm', passings, due * 1000 - 20_000, end)
    return {
        'storm_seconds': end / 1e6 - due / 1e3,
        'storm_early': sum(at < due * 1000 for _, at in arrivals),
        'storm_unordered': sum(one.offset > two.offset for one, two in itertools.pairwise(arrivals)),
        'storm_publish_p99': beside['storm_publish_p99'],
    }
