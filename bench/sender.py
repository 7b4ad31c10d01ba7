"""Publish the time, so many times a second: `sender.py ADDRESS TOPIC COUNT RATE`. Helper of measures/end_to_end.py.

One record is sent at once; the rest after a line on stdin."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer

from acklog.testing.stock_client import QUIET


def main() -> None:
    address, topic, count, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    producer = Producer({'bootstrap.servers': address, 'linger.ms': 0, 'acks': '1', **QUIET})
    producer.produce(topic, b'%d' % time.monotonic_ns())
    producer.flush(30)
    sys.stdin.readline()
    begun = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        producer.produce(topic, b'%d' % time.monotonic_ns())
        producer.poll(0)
    producer.flush(30)


if __name__ == '__main__':
    main()
