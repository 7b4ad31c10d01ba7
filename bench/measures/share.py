"""Take and sign off a million records of 100 bytes in a share group: implicit accept, explicit accept, and accept and
reject by turns, so that no two acknowledgements next to each other are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer
from stock import Target, consume, own_cpu_seconds, publish

RECORDS, ALTERNATING = 1_000_000, 200_000
ACCEPT, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.REJECT


def accept(consumer: ShareConsumer, messages: Any) -> None:
    for message in messages:
        consumer.acknowledge(message, ACCEPT)


def accept_and_reject(consumer: ShareConsumer, messages: Any) -> None:
    for index, message in enumerate(messages):
        consumer.acknowledge(message, REJECT if index & 1 else ACCEPT)


Way = Callable[[ShareConsumer, Any], None]
WAYS: tuple[tuple[str, int, Way | None], ...] = (
    ('implicit', RECORDS, None),
    ('explicit', RECORDS, accept),
    ('alternating', ALTERNATING, accept_and_reject),
)


def measure(target: Target) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, full, acknowledge in WAYS:
        count, topic = target.records(full), target.topic()
        publish(target, topic, count, 100)
        own, cpu = own_cpu_seconds(), target.cpu_seconds()
        figures[f'share_{name}'] = consume(target, topic, count, acknowledge)
        figures[f'share_cpu_{name}'] = (target.cpu_seconds() - cpu) / count * 1e6
        if acknowledge is None:
            figures['share_client'] = (own_cpu_seconds() - own) / count * 1e6
    return figures
