"""Not measured: some of everything, so that no server is measured before its code has run once."""

from __future__ import annotations

from stock import Target, consume, publish

RECORDS = 200_000


def measure(target: Target) -> dict[str, float]:
    topic, count = target.topic(), target.records(RECORDS)
    publish(target, topic, count, 100)
    consume(target, topic, count, None)
    return {}
