"""Configs of the server about groups: limits, and what they have where they set nothing."""

from __future__ import annotations

from acklog.broker.configs.checks import backoff_text, pause_threshold
from acklog.broker.configs.definitions import Definition, Kind
from acklog.broker.configs.topic_defaults import DAY

GROUPS = (
    Definition(
        name='group.share.record.lock.duration.ms',
        kind=Kind.INT,
        default=30_000,
        low=100,
        high=DAY,
        dynamic=True,
        words='Default of `share.record.lock.duration.ms` of a group (Kafka allows 15 s to 60 s).',
    ),
    Definition(
        name='group.share.heartbeat.interval.ms',
        kind=Kind.INT,
        default=5_000,
        low=100,
        high=60_000,
        dynamic=True,
        words='Default of `share.heartbeat.interval.ms` of a group (Kafka allows 5 s to 15 s).',
    ),
    Definition(
        name='group.share.session.timeout.ms',
        kind=Kind.INT,
        default=45_000,
        low=1_000,
        high=3_600_000,
        dynamic=True,
        words='Default of `share.session.timeout.ms` of a group (Kafka allows 45 s to 60 s).',
    ),
    Definition(
        name='group.share.delivery.count.limit',
        kind=Kind.INT,
        default=5,
        low=-1,
        high=32_767,
        check=lambda value: 'must be -1 (without limit) or from 1 to 32767' if value == 0 else None,
        accepts='`-1`, or `1` to `32767`',
        dynamic=True,
        words='Default of `share.delivery.count.limit` of a group (Kafka allows 2 to 10).',
    ),
    Definition(
        name='group.share.partition.max.record.locks',
        kind=Kind.INT,
        default=100_000,
        low=1,
        high=10_000_000,
        dynamic=True,
        words='Default of `share.partition.max.record.locks` of a group (Kafka: 2000, and allows 100 to 4000).',
    ),
    Definition(
        name='group.share.max.size',
        kind=Kind.INT,
        default=1_000,
        low=1,
        high=100_000,
        dynamic=True,
        words='Members of one share group (Kafka: 200).',
    ),
    Definition(
        name='group.share.max.share.sessions',
        kind=Kind.INT,
        default=10_000,
        low=1,
        high=1_000_000,
        dynamic=True,
        words='Share sessions of all groups together (Kafka: 2000).',
    ),
    Definition(
        name='acklog.retry.backoff',
        kind=Kind.STRING,
        default='none',
        check=backoff_text,
        accepts='as under Groups',
        dynamic=True,
        words='Default of `acklog.retry.backoff` of a group.',
    ),
    Definition(
        name='acklog.waiting.max.ms',
        kind=Kind.LONG,
        default=-1,
        low=-1,
        dynamic=True,
        words='Default of `acklog.waiting.max.ms` of a group.',
    ),
    Definition(
        name='acklog.dead.pause.threshold',
        kind=Kind.STRING,
        default='',
        check=pause_threshold,
        accepts='as under Groups',
        dynamic=True,
        words='Default of `acklog.dead.pause.threshold` of a group.',
    ),
    Definition(
        name='acklog.dead.retention.ms',
        kind=Kind.LONG,
        default=14 * DAY,
        low=-1,
        dynamic=True,
        words='Default of `acklog.dead.retention.ms` of a group.',
    ),
)
