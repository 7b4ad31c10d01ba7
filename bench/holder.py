"""A share consumer that takes records and never signs them off: `holder.py ADDRESS TOPIC`. Helper of
measures/takeover.py. Says `member` when it is one (it has then signed off a first record), and `holds` when it has got
more."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer, ShareConsumer

from acklog.testing.stock_client import QUIET


def main() -> None:
    address, topic = sys.argv[1], sys.argv[2]
    consumer = ShareConsumer(
        {'bootstrap.servers': address, 'group.id': topic, 'share.acknowledgement.mode': 'explicit', **QUIET}
    )
    consumer.subscribe([topic])
    producer = Producer({'bootstrap.servers': address, 'linger.ms': 0, **QUIET})
    while True:
        producer.produce(topic, b'is there anybody?')
        producer.flush(10)
        messages = consumer.poll(0.2)
        if len(messages):
            break
    for message in messages:
        consumer.acknowledge(message)
    consumer.commit_sync(10.0)
    while len(messages := consumer.poll(0.3)):  # what is left of its own questions
        for message in messages:
            consumer.acknowledge(message)
        consumer.commit_sync(10.0)
    print('member', flush=True)
    while not len(consumer.poll(1.0)):
        pass
    print('holds', flush=True)
    time.sleep(600)


if __name__ == '__main__':
    main()
