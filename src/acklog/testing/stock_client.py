"""The stock client, confluent-kafka, as the workers use it; and clear words where it is not installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message
    from confluent_kafka.admin import AdminClient

CURE = "it needs the stock client: `pip install 'confluent-kafka>=2.16'`"
RECORD_DIGITS = 19

# The client's own lines about lost connections would drown the report: the servers here are killed on purpose.
QUIET = {'log_level': 2, 'reconnect.backoff.ms': 20, 'reconnect.backoff.max.ms': 200}


class NoStockClient(Exception):
    """confluent-kafka is not installed, or is too old to have a ShareConsumer; the message says how to get it."""


def require() -> ModuleType:
    """The module confluent_kafka; raises NoStockClient."""
    if importlib.util.find_spec('confluent_kafka') is None:
        raise NoStockClient(CURE)
    import confluent_kafka

    if not hasattr(confluent_kafka, 'ShareConsumer'):
        raise NoStockClient(f'confluent-kafka {confluent_kafka.__version__} is too old; {CURE}')
    return confluent_kafka


def content(record: int, size: int) -> bytes:
    """The value that record number `record` is published with: its number, filled up to `size` bytes."""
    return b'%019d' % record + b'.' * (size - RECORD_DIGITS)


def record_of(message: Message, size: int) -> tuple[int, bool]:
    """The number of a delivered record, and whether its value is what was published."""
    value = message.value() or b''
    record = int(value[:RECORD_DIGITS]) if value[:RECORD_DIGITS].isdigit() else -1
    return record, value == content(record, size)


def admin(address: str) -> AdminClient:
    from confluent_kafka.admin import AdminClient

    return AdminClient({'bootstrap.servers': address, **QUIET})


def create_topic(address: str, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
    """Create it and wait until the server says that it is there."""
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # there, but not declared

    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    client = admin(address)  # kept until the answer is there: its requests end with it
    client.create_topics([new])[topic].result(30)


def configure_group(address: str, group: str, configs: Mapping[str, str]) -> None:
    """Set configs of a share group, which need not exist yet."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()]
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=entries)
    client = admin(address)
    for answer in client.incremental_alter_configs([resource]).values():
        answer.result(30)


def stored_places(address: str, topic: str, timeout_s: float = 60.0) -> set[tuple[int, int]]:
    """(partition, offset) of every record in the log, read by an assigned consumer from start to end."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {'bootstrap.servers': address, 'group.id': 'reads-the-log', 'enable.auto.commit': False, **QUIET}
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        ends = {index: consumer.get_watermark_offsets(TopicPartition(topic, index), 30)[1] for index in partitions}
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
        stored: set[tuple[int, int]] = set()
        wanted = sum(ends.values())
        deadline = time.monotonic() + timeout_s
        while len(stored) < wanted and time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.5):
                if message.error() is None:
                    stored.add((message.partition() or 0, message.offset() or 0))
        return stored
    finally:
        consumer.close()


def errors_to(report: Callable[[str], None]) -> dict[str, Callable[[KafkaError], None]]:
    """Client options that hand the client's errors to `report`, instead of to stderr."""
    return {'error_cb': lambda error: report(str(error))}
