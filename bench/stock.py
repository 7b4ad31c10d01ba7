"""What the measurements do with the stock client (confluent-kafka), the same against every server."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer, ShareConsumer

from acklog.testing import usage
from acklog.testing.stock_client import QUIET, configure_group, create_topic

PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Target:
    """A running server, as a client process sees it."""

    address: str
    pid: int
    scale: float  # 1, or less in a quick run
    http: str = ''  # where HTTP is, as http://HOST:PORT; '' for nowhere

    def records(self, full: int) -> int:
        return max(1, int(full * self.scale))

    def topic(self, partitions: int = PARTITIONS, configs: Mapping[str, str] | None = None) -> str:
        """A new topic, and a group of the same name that begins at its first record."""
        name = f'bench-{uuid.uuid4().hex[:8]}'
        create_topic(self.address, name, partitions, configs)
        configure_group(self.address, name, {'share.auto.offset.reset': 'earliest'})
        return name

    def cpu_seconds(self) -> float:
        return usage.cpu_seconds(self.pid)


def publish(target: Target, topic: str, count: int, size: int, **config: Any) -> None:
    """Publish `count` records of `size` bytes and wait until all are confirmed. Raises RuntimeError if one is not."""
    producer = Producer(
        {
            'bootstrap.servers': target.address,
            'queue.buffering.max.messages': 1_000_000,
            'queue.buffering.max.kbytes': 2_000_000,
            **QUIET,
            **config,
        }
    )
    failed: list[Any] = []

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    value = b'x' * size
    # Only the last record has a callback: a million calls into Python would measure Python.
    for _ in range(count - 1):
        try:
            producer.produce(topic, value)
        except BufferError:
            producer.poll(0.05)
            producer.produce(topic, value)
    producer.produce(topic, value, on_delivery=on_delivery)
    if producer.flush(120) or failed:
        raise RuntimeError(f'not all records were confirmed: {failed}')


@contextmanager
def member(target: Target, topic: str, **config: Any) -> Iterator[ShareConsumer]:
    """A subscriber of `topic` in the group of the same name."""
    consumer = ShareConsumer({'bootstrap.servers': target.address, 'group.id': topic, **QUIET, **config})
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def first_batch(consumer: ShareConsumer, timeout_s: float = 60.0) -> list[Any]:
    """Poll until something comes."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        messages = consumer.poll(1.0)
        if len(messages):
            return list(messages)
    raise RuntimeError('nothing came')


def consume(target: Target, topic: str, count: int, acknowledge: Callable[[ShareConsumer, Any], None] | None) -> float:
    """Take and settle `count` records; returns records per second, the time until the first batch left out.

    `acknowledge` gets each batch in explicit mode; None: implicit mode, where the next poll accepts the last one's."""
    mode = {'share.acknowledgement.mode': 'implicit' if acknowledge is None else 'explicit'}
    with member(target, topic, **mode) as consumer:
        messages = first_batch(consumer)
        begun = time.perf_counter()
        first = got = len(messages)
        deadline = time.monotonic() + 300
        while True:
            if acknowledge is not None:
                acknowledge(consumer, messages)
            if got >= count or time.monotonic() > deadline:
                break
            messages = consumer.poll(1.0)
            got += len(messages)
        consumer.commit_sync(60.0)
        seconds = time.perf_counter() - begun
    if got < count:
        raise RuntimeError(f'{got} of {count} records came')
    return (got - first) / seconds if got > first else got / seconds


def own_cpu_seconds() -> float:
    """Of this process."""
    used = os.times()
    return used.user + used.system


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
