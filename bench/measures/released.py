"""Release 200,000 records, each until an instant of its own within 1 to 5 s, and take them again: how fast they are
released, how late they come to a member that waits, and what that does to the server's memory and to others.

The own client releases, and another member of the group takes; a bystander publishes and takes 200 records a second.
"""

from __future__ import annotations

import asyncio
import random
import time

from arrivals import Bystander, Taker, disturbance, lateness, take_all
from stock import Target, percentile, publish

import acklog
from acklog.testing import usage
from acklog.testing.stock_client import configure_group

RECORDS, AT_ONCE = 200_000, 500
SHORTEST_MS, LONGEST_MS = 1000, 5000
BYSTANDER_RATE, UNDISTURBED_S = 200, 2.0


def measure(target: Target) -> dict[str, float]:
    return asyncio.run(_measure(target, target.records(RECORDS)))


async def _measure(target: Target, count: int) -> dict[str, float]:
    topic = target.topic(1)
    configure_group(target.address, topic, {'share.partition.max.record.locks': str(count)})
    publish(target, topic, count, 100)
    dues = [0] * count
    with Bystander(target, BYSTANDER_RATE) as bystander:
        async with (
            acklog.connect(target.address) as client,
            client.subscribe(topic, [topic], max_records=5000, max_unsettled=None) as subscription,
        ):
            held = await take_all(subscription, count)
            with Taker(target, topic, count) as taker:
                begin = time.time_ns() // 1000
                await asyncio.sleep(UNDISTURBED_S)
                cpu = target.cpu_seconds()
                begun = time.time_ns() // 1000
                for at in range(0, count, AT_ONCE):
                    now = time.time_ns() // 1_000_000
                    for record in held[at : at + AT_ONCE]:
                        due = dues[record.offset] = now + random.randint(SHORTEST_MS, LONGEST_MS)
                        record.release(at=due)
                    await subscription.flush()
                released = time.time_ns() // 1000
                memory = usage.resident_bytes(target.pid) / 1e6
                arrivals = await asyncio.to_thread(taker.arrivals)
                cpu = target.cpu_seconds() - cpu
        passings = bystander.passings()
    alone = [at / 1000 - dues[offset] for offset, at in arrivals if dues[offset] * 1000 > released]
    end = max(at for _, at in arrivals)
    return {
        'released_rate': count / (released - begun) * 1e6,
        'released_mb': memory,
        'released_cpu': cpu / count * 1e6,
        **lateness('released', arrivals, dues),
        'released_alone_p99': percentile(alone, 99),
        **disturbance('beside_nothing', passings, begin, begun),
        **disturbance('beside_releasing', passings, begun, released),
        **disturbance('beside_redelivery', passings, max(released, min(dues) * 1000), end),
    }
