"""A publisher in a process of its own: the stock client's idempotent producer, acks=all, and a diary.

    python -m acklog.testing.publisher --address HOST:PORT --topic T --diary FILE --first N --records M --rate R

It publishes the records numbered from N on, R in a second (0: as fast as it goes), until it has published M of them or
its stdin is closed (M 0: only then), and ends when each of them is confirmed or given up. So it ends also when its
parent does.
"""

from __future__ import annotations

import argparse
import select
import sys
import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from acklog.testing.diary import Diary
from acklog.testing.stock_client import QUIET, content, errors_to

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

TURN_S = 0.02
AT_ONCE = 500  # records in a turn, where nothing slows it down


class Publisher:
    """Publishes, and writes down what is confirmed: at most one line per partition and turn."""

    def __init__(self, options: argparse.Namespace) -> None:
        from confluent_kafka import Producer

        self._diary = Diary(options.diary)
        self._topic, self._size = options.topic, options.size
        self._confirmed: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._failed: list[int] = []
        self.next, self._last = options.first, options.first + options.records - 1 if options.records else None
        self._producer = Producer(
            {
                'bootstrap.servers': options.address,
                'enable.idempotence': True,
                'acks': 'all',
                'linger.ms': options.linger_ms,
                'message.timeout.ms': 120_000,
                'retry.backoff.ms': 20,
                'retry.backoff.max.ms': 200,
                **QUIET,
                **errors_to(lambda words: self._diary.write('trouble', words=words)),
            }
        )

    @property
    def finished(self) -> bool:
        return self._last is not None and self.next > self._last

    def publish(self, count: int) -> None:
        """Hand up to `count` more records to the client; fewer when its queue is full."""
        for _ in range(count):
            if self.finished:
                return
            record = self.next
            try:
                self._producer.produce(
                    self._topic, content(record, self._size), on_delivery=partial(self._delivered, record)
                )
            except BufferError:
                return
            self.next += 1

    def turn(self, wait_s: float) -> None:
        """Let the client report what was confirmed, and write it down."""
        self._producer.poll(wait_s)
        self._note()

    def finish(self) -> None:
        """Wait until nothing is left unanswered."""
        while self._producer.flush(0.1):
            self._note()
        self._note()
        self._diary.write('finished')

    def _delivered(self, record: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(record)
        else:
            self._confirmed[message.partition() or 0].append((record, message.offset() or 0))

    def _note(self) -> None:
        for partition, pairs in self._confirmed.items():
            records, offsets = zip(*pairs, strict=True)
            self._diary.write('confirmed', partition=partition, records=records, offsets=offsets)
        self._confirmed.clear()
        if self._failed:
            self._diary.write('failed', records=self._failed)
            self._failed = []


def main() -> None:
    options = _arguments()
    publisher = Publisher(options)
    begun = time.monotonic()
    while not publisher.finished and not select.select([sys.stdin], [], [], 0)[0]:
        turn_ends = time.monotonic() + TURN_S
        if options.rate:
            due = int((turn_ends - begun) * options.rate) - (publisher.next - options.first)
            publisher.publish(due)
            publisher.turn(0.0)
            time.sleep(max(0.0, turn_ends - time.monotonic()))
        else:
            publisher.publish(AT_ONCE)
            publisher.turn(0.0)
    publisher.finish()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='acklog.testing.publisher')
    parser.add_argument('--address', required=True)
    parser.add_argument('--topic', required=True)
    parser.add_argument('--diary', required=True)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--records', type=int, default=0)
    parser.add_argument('--rate', type=float, default=0.0)
    parser.add_argument('--size', type=int, default=100)
    parser.add_argument('--linger-ms', type=int, default=5)
    return parser.parse_args()


if __name__ == '__main__':
    main()
