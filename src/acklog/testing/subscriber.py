"""A subscriber in a process of its own: the stock client's ShareConsumer, explicit acknowledgement, and a diary.

    python -m acklog.testing.subscriber --address HOST:PORT --topic T --group G --diary FILE

It takes records, works on each batch for a moment, gives some of them back (each at most at its first deliveries, so
that no record uses up its attempts), signs the others off and waits for the answer. It ends when its stdin is closed,
and so also when its parent ends.
"""

from __future__ import annotations

import argparse
import random
import select
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from acklog.testing.diary import Diary
from acklog.testing.stock_client import QUIET, errors_to, record_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaException, Message

POLL_S = 0.2
COMMIT_TIMEOUT_S = 20.0
INVALID_RECORD_STATE = 121


class Got(NamedTuple):
    """A delivered record."""

    record: int
    message: Message
    offset: int
    nth: int  # delivery count


class Subscriber:
    """Takes, works, settles, and writes each step down before or after it as the diary asks."""

    def __init__(self, options: argparse.Namespace) -> None:
        from confluent_kafka import ShareConsumer

        self._options = options
        self._diary = Diary(options.diary)
        self._random = random.Random(options.seed)
        self._consumer = ShareConsumer(
            {
                'bootstrap.servers': options.address,
                'group.id': options.group,
                'share.acknowledgement.mode': 'explicit',
                'max.poll.records': options.batch,
                **QUIET,
                **errors_to(lambda words: self._diary.write('trouble', words=words)),
            }
        )
        self._consumer.subscribe([options.topic])

    def turn(self) -> None:
        """One batch, from delivery to the answer to its acknowledgements."""
        got = self._take()
        if not got:
            return
        if self._options.work_ms:
            time.sleep(self._options.work_ms / 1000)
        accepts, releases = self._decide(got)
        for partition, batch in releases.items():
            self._diary.write('releasing', partition=partition, records=[g.record for g in batch])
        for partition, batch in accepts.items():
            records, counts = [g.record for g in batch], [g.nth for g in batch]
            self._diary.write('accepting', partition=partition, records=records, deliveries=counts)
        self._settle(accepts, releases)

    def close(self) -> None:
        """Leave the group; what is held goes back to it."""
        self._consumer.close()
        self._diary.write('finished')

    def _take(self) -> dict[int, list[Got]]:
        from confluent_kafka import KafkaException

        try:
            messages = self._consumer.poll(POLL_S)
        except KafkaException as error:
            self._diary.write('trouble', words=str(error))
            return {}
        now = time.monotonic()
        got: dict[int, list[Got]] = defaultdict(list)
        for message in messages:
            error_of_message = message.error()
            if error_of_message is not None:
                self._diary.write('trouble', words=str(error_of_message))
                continue
            record, intact = record_of(message, self._options.size)
            if not intact:
                self._diary.write('damaged', records=[record])
            batch = got[message.partition() or 0]
            batch.append(Got(record, message, message.offset() or 0, message.delivery_count() or 0))
        for partition, batch in got.items():
            records, offsets, counts = zip(*((g.record, g.offset, g.nth) for g in batch), strict=True)
            self._diary.write(
                'delivered', at=now, partition=partition, records=records, offsets=offsets, deliveries=counts
            )
        return got

    def _decide(self, got: dict[int, list[Got]]) -> tuple[dict[int, list[Got]], dict[int, list[Got]]]:
        accepts: dict[int, list[Got]] = defaultdict(list)
        releases: dict[int, list[Got]] = defaultdict(list)
        for partition, batch in got.items():
            for g in batch:
                give_back = g.nth <= 2 and self._random.random() < self._options.release
                (releases if give_back else accepts)[partition].append(g)
        return accepts, releases

    def _settle(self, accepts: dict[int, list[Got]], releases: dict[int, list[Got]]) -> None:
        from confluent_kafka import AcknowledgeType, KafkaException

        for kind, chosen in ((AcknowledgeType.ACCEPT, accepts), (AcknowledgeType.RELEASE, releases)):
            for batch in chosen.values():
                for g in batch:
                    self._consumer.acknowledge(g.message, kind)
        try:
            answers = self._consumer.commit_sync(COMMIT_TIMEOUT_S)
        except KafkaException as error:  # nothing is known about any of them: the diary says `accepting`, no more
            self._diary.write('trouble', words=f'commit: {error}')
            return
        for place, error_of_partition in answers.items():
            self._answered(error_of_partition, accepts[place.partition], releases[place.partition])

    def _answered(self, error: KafkaException | None, accepts: list[Got], releases: list[Got]) -> None:
        records, counts = [g.record for g in accepts], [g.nth for g in accepts]
        if error is None:
            self._diary.write('accepted', records=records, deliveries=counts)
            if releases:
                self._diary.write('released', records=[g.record for g in releases])
        elif error.args[0].code() == INVALID_RECORD_STATE:
            self._diary.write('refused', records=records, deliveries=counts)
        else:
            self._diary.write('trouble', words=f'commit: {error}')


def main() -> None:
    subscriber = Subscriber(_arguments())
    while not select.select([sys.stdin], [], [], 0)[0]:
        subscriber.turn()
    subscriber.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='acklog.testing.subscriber')
    parser.add_argument('--address', required=True)
    parser.add_argument('--topic', required=True)
    parser.add_argument('--group', required=True)
    parser.add_argument('--diary', required=True)
    parser.add_argument('--size', type=int, default=100)
    parser.add_argument('--batch', type=int, default=200, help='max.poll.records')
    parser.add_argument('--work-ms', type=float, default=0.0, help='how long it works on a batch')
    parser.add_argument('--release', type=float, default=0.0, help='part of the records that it gives back, 0 to 1')
    parser.add_argument('--seed', type=int, default=0)
    return parser.parse_args()


if __name__ == '__main__':
    main()
