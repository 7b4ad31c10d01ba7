"""Every tenth of 300,000 records is held to the end while the rest is settled, by the own client; then those too."""

from __future__ import annotations

import asyncio
import gc
import os
import time

from stock import Target, publish

import acklog
from acklog.testing import usage

RECORDS, EVERY = 300_000, 10


def measure(target: Target) -> dict[str, float]:
    return asyncio.run(_measure(target, target.records(RECORDS)))


async def _measure(target: Target, count: int) -> dict[str, float]:
    topic = target.topic()
    publish(target, topic, count, 100)
    gc.collect()
    own, server = usage.resident_bytes(os.getpid()), usage.resident_bytes(target.pid)
    held = []
    got = 0
    async with acklog.connect(target.address) as client:
        async with client.subscribe(topic, [topic], max_records=5000, max_unsettled=None) as subscription:
            begun = time.perf_counter()
            async for record in subscription:
                got += 1
                if got % EVERY:
                    record.accept()
                else:
                    held.append(record)
                if got == count:
                    break
            await subscription.flush()
            taken = time.perf_counter() - begun
            own, server = usage.resident_bytes(os.getpid()) - own, usage.resident_bytes(target.pid) - server
            begun = time.perf_counter()
            subscription.accept(held)
            await subscription.flush()
            settled = time.perf_counter() - begun
        left = sum(part.lag or 0 for part in await client.admin.lag(topic))
    if left:
        raise RuntimeError(f'{left} records are left')
    return {
        'held_rate': count / taken,
        'held_mb': server / 1e6,
        'held_client_mb': own / 1e6,
        'held_settled': len(held) / settled,
    }
