"""A million records that wait in one group: the stock client takes and releases them, and the group's backoff is an
hour. How fast that is, what memory they take, and how fast new records are taken beside them, and without them. And how
fast, and what memory, where each has an instant of its own, because the backoff has jitter."""

from __future__ import annotations

from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer
from stock import Target, consume, publish

from acklog.client.http import HttpClient, path_of
from acklog.testing import usage
from acklog.testing.stock_client import configure_group

RECORDS, BESIDE = 1_000_000, 300_000


def release(consumer: ShareConsumer, messages: Any) -> None:
    for message in messages:
        consumer.acknowledge(message, AcknowledgeType.RELEASE)


def measure(target: Target) -> dict[str, float]:
    count, beside, alone = target.records(RECORDS), target.records(BESIDE), target.topic()
    publish(target, alone, beside, 100)
    without = consume(target, alone, beside, None)
    topic, figures = _let_wait(target, count, 'fixed:1h', 'waiting')
    publish(target, topic, beside, 100)
    figures['waiting_take'] = consume(target, topic, beside, None)
    _, apart = _let_wait(target, count, 'fixed:1h~20%', 'apart')
    return {**figures, 'waiting_take_alone': without, **apart}


def _let_wait(target: Target, count: int, backoff: str, name: str) -> tuple[str, dict[str, float]]:
    topic = target.topic()
    configure_group(target.address, topic, {'acklog.retry.backoff': backoff})
    publish(target, topic, count, 100)
    before, cpu = usage.resident_bytes(target.pid), target.cpu_seconds()
    rate = consume(target, topic, count, release)
    cpu, memory = target.cpu_seconds() - cpu, usage.resident_bytes(target.pid)
    parts = HttpClient(target.http).get(path_of('groups', topic, 'status'))['partitions']
    if (waiting := sum(part['waiting'] for part in parts)) != count:
        raise RuntimeError(f'{waiting} of {count} records wait')
    return topic, {
        f'{name}_rate': rate,
        f'{name}_cpu': cpu / count * 1e6,
        f'{name}_mb': memory / 1e6,
        f'{name}_more_mb': (memory - before) / 1e6,
    }
