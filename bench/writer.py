"""Fill partitions, say `written`, and write on: `writer.py ADDRESS COUNT SIZE PARTITIONS`. Helper of
measures/recovery.py."""

from __future__ import annotations

import sys

from confluent_kafka import Producer
from stock import Target, publish

from acklog.testing.stock_client import QUIET


def main() -> None:
    address, count, size, partitions = sys.argv[1], *map(int, sys.argv[2:5])
    target = Target(address, 0, 1.0)
    topic = target.topic(partitions)
    publish(target, topic, count, size)
    producer = Producer({'bootstrap.servers': address, **QUIET})
    said = False
    number = 0
    while True:
        try:
            producer.produce(topic, b'x' * size)
        except BufferError:
            producer.poll(0.01)
        number += 1
        if number > 20_000 and not said:
            print('written', flush=True)
            said = True


if __name__ == '__main__':
    main()
