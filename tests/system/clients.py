"""What the tests here do with stock clients, as input and answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaException, Message, Producer, ShareConsumer

from acklog.testing.stock_client import QUIET, configure_group, create_topic

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


def set_up(address: str, name: str, partitions: int = 1, **group_configs: object) -> None:
    """A topic, and a group of the same name that begins at its first record. Configs with `_` for `.`."""
    create_topic(address, name, partitions)
    configs = {key.replace('_', '.'): str(value) for key, value in group_configs.items()}
    configure_group(address, name, {'share.auto.offset.reset': 'earliest', **configs})


def publish(address: str, topic: str, values: Iterable[bytes], **config: Any) -> list[tuple[int, int]]:
    """Publish and wait for all confirmations; returns (partition, offset) of each value."""
    places: dict[int, tuple[int, int]] = {}
    errors = []
    producer = Producer({'bootstrap.servers': address, **QUIET, **config})

    def confirm(index: int) -> Callable[[Any, Message], None]:
        def confirmed(error: Any, message: Message) -> None:
            if error is not None:
                errors.append(error)
            places[index] = (message.partition() or 0, message.offset() or 0)

        return confirmed

    for index, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value, on_delivery=confirm(index))
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(30) == 0
    assert not errors
    return [places[index] for index in sorted(places)]


@contextmanager
def member(address: str, name: str, *, explicit: bool = True, **config: Any) -> Iterator[ShareConsumer]:
    """A share consumer of group and topic `name`; closed at the end."""
    mode = 'explicit' if explicit else 'implicit'
    options = {'bootstrap.servers': address, 'group.id': name, 'share.acknowledgement.mode': mode, **QUIET}
    consumer = ShareConsumer({**options, **{key.replace('_', '.'): value for key, value in config.items()}})
    consumer.subscribe([name])
    try:
        yield consumer
    finally:
        consumer.close()


def take(consumer: ShareConsumer, at_least: int = 1, timeout_s: float = 20.0) -> list[Message]:
    """Poll once, until a poll brings something; with `at_least` over 1 only for consumers that need not acknowledge
    between polls."""
    got: list[Message] = []
    deadline = time.monotonic() + timeout_s
    while len(got) < at_least and time.monotonic() < deadline:
        for message in consumer.poll(0.5):
            assert message.error() is None, message.error()
            got.append(message)
    return got


def settle(
    consumer: ShareConsumer, messages: Iterable[Message], kind: AcknowledgeType = ACCEPT
) -> list[KafkaException]:
    """Acknowledge and wait for the answer; returns the errors of partitions."""
    for message in messages:
        consumer.acknowledge(message, kind)
    return [error for error in consumer.commit_sync(20.0).values() if error is not None]


def values(messages: Iterable[Message]) -> list[bytes]:
    return [message.value() or b'' for message in messages]


def nothing_comes(consumer: ShareConsumer, seconds: float = 1.0) -> bool:
    """Whether polls bring nothing for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if len(consumer.poll(0.2)):
            return False
    return True
