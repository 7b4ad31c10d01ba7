"""Publish and take records that nobody else has to do with, and note how long they took: `bystander.py ADDRESS TOPIC
RATE`. Helper of arrivals.py.

So many records a second, with acks=1, taken by the group of the topic's name. Says `ready` when the first one has come;
ends with its stdin, and writes for each record that came when it was published (us since 1970), and after how many us
it was confirmed and delivered, to stdout, as int64."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from array import array

import acklog
from acklog.client import Producer


def now_us() -> int:
    return time.time_ns() // 1000


class Bystander:
    """`confirmed` and `delivered`: after how many us, by when it was published."""

    def __init__(self) -> None:
        self.confirmed: dict[int, int] = {}
        self.delivered: dict[int, int] = {}

    async def publish(self, client: acklog.Client, topic: str, rate: float) -> None:
        due = time.monotonic()
        sent: set[asyncio.Task[None]] = set()
        async with client.producer(acks='1', linger=0) as producer:
            while True:
                due = max(due + 1 / rate, time.monotonic() - 0.001)
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                task = asyncio.create_task(self._publish_one(producer, topic))
                sent.add(task)
                task.add_done_callback(sent.discard)

    async def _publish_one(self, producer: Producer, topic: str) -> None:
        at = now_us()
        await producer.publish(topic, b'%d' % at)
        self.confirmed[at] = now_us() - at

    async def take(self, client: acklog.Client, topic: str) -> None:
        async with client.subscribe(topic, [topic]) as subscription:
            while True:
                records = await subscription.poll(5.0)
                now = now_us()
                for record in records:
                    at = int(record.value or b'0')
                    self.delivered[at] = now - at
                subscription.accept(records)
                if records and len(self.delivered) == len(records):
                    os.write(1, b'ready\n')

    async def run(self, address: str, topic: str, rate: float) -> None:
        async with acklog.connect(address) as client:
            tasks = [asyncio.create_task(self.take(client, topic))]
            tasks.append(asyncio.create_task(self.publish(client, topic, rate)))
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def main() -> None:
    address, topic, rate = sys.argv[1:4]
    bystander = Bystander()
    asyncio.run(bystander.run(address, topic, float(rate)))
    notes = array('q')
    for at, took in bystander.delivered.items():
        if at in bystander.confirmed:
            notes.extend((at, bystander.confirmed[at], took))
    sys.stdout.buffer.write(notes.tobytes())


if __name__ == '__main__':
    main()
