"""Take and accept records with the own client, and note when each came: `taker.py ADDRESS TOPIC COUNT`. Helper of
arrivals.py.

The group has the topic's name, and the topic one partition. Says `ready` when it is a member; ends when it has taken so
many records, and writes an offset and a time (us since 1970) for each to stdout, as int64."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from array import array

import acklog

AT_ONCE = 2000  # records: at 50,000 a second the default, 500, would be 10 ms of them


async def take(address: str, topic: str, count: int) -> array[int]:
    came = array('q')
    async with acklog.connect(address) as client, client.subscribe(topic, [topic], max_records=AT_ONCE) as subscription:
        records = await subscription.poll(0.3)
        os.write(1, b'ready\n')
        while True:
            now = time.time_ns() // 1000
            for record in records:
                came.extend((record.offset, now))
            subscription.accept(records)
            if len(came) >= 2 * count:
                await subscription.flush()
                return came
            records = await subscription.poll(5.0)


def main() -> None:
    address, topic, count = sys.argv[1:4]
    sys.stdout.buffer.write(asyncio.run(take(address, topic, int(count))).tobytes())


if __name__ == '__main__':
    main()
