"""Configs of the server about topics: creating them, and what they have where they set nothing."""

from __future__ import annotations

from acklog.broker.configs.checks import cleanup_policy, not_one_replica
from acklog.broker.configs.definitions import Definition, Kind

DAY = 24 * 3_600_000
FOREVER = (1 << 63) - 1

TOPICS = (
    Definition(
        name='auto.create.topics.enable',
        kind=Kind.BOOLEAN,
        default=True,
        dynamic=True,
        words='Whether asking for the metadata of a topic that does not exist creates it.',
    ),
    Definition(
        name='num.partitions',
        kind=Kind.INT,
        default=4,
        low=1,
        high=10_000,
        dynamic=True,
        words='Partitions of a topic where its creation does not say (Kafka: 1).',
    ),
    Definition(
        name='default.replication.factor',
        kind=Kind.INT,
        default=1,
        low=1,
        high=1,
        words='Replicas of a partition; there is one node, so one.',
    ),
    Definition(
        name='delete.topic.enable',
        kind=Kind.BOOLEAN,
        default=True,
        dynamic=True,
        words='Whether topics can be deleted.',
    ),
    Definition(
        name='acklog.max.partitions',
        kind=Kind.INT,
        default=20_000,
        low=1,
        high=1_000_000,
        dynamic=True,
        words='Partitions of all topics together; creating more is refused with POLICY_VIOLATION.',
    ),
    Definition(
        name='acklog.max.groups',
        kind=Kind.INT,
        default=10_000,
        low=1,
        high=1_000_000,
        dynamic=True,
        words='Groups, and names of groups with configs of their own; more are refused.',
    ),
    Definition(
        name='max.request.partition.size.limit',
        kind=Kind.INT,
        default=2000,
        low=1,
        words='Most partitions in one answer to DescribeTopicPartitions (KIP-966).',
    ),
)

LOGS = (
    Definition(
        name='log.retention.ms',
        kind=Kind.LONG,
        default=7 * DAY,
        low=-1,
        dynamic=True,
        words='Default of `retention.ms` of a topic.',
    ),
    Definition(
        name='log.retention.bytes',
        kind=Kind.LONG,
        default=-1,
        low=-1,
        dynamic=True,
        words='Default of `retention.bytes` of a topic.',
    ),
    Definition(
        name='acklog.owed.retention.ms',
        kind=Kind.LONG,
        default=7 * DAY,
        low=-1,
        dynamic=True,
        words='Default of `acklog.owed.retention.ms` of a topic.',
    ),
    Definition(
        name='acklog.owed.retention.bytes',
        kind=Kind.LONG,
        default=-1,
        low=-1,
        dynamic=True,
        words='Default of `acklog.owed.retention.bytes` of a topic.',
    ),
    Definition(
        name='log.retention.check.interval.ms',
        kind=Kind.LONG,
        default=300_000,
        low=10,
        words='Time between two looks at what retention lets go.',
    ),
    Definition(
        name='log.segment.bytes',
        kind=Kind.INT,
        default=1 << 30,
        low=1 << 20,
        dynamic=True,
        words='Default of `segment.bytes` of a topic.',
    ),
    Definition(
        name='log.roll.ms',
        kind=Kind.LONG,
        default=7 * DAY,
        low=1,
        dynamic=True,
        words='Default of `segment.ms` of a topic.',
    ),
    Definition(
        name='log.cleanup.policy',
        kind=Kind.LIST,
        default=('delete',),
        check=cleanup_policy,
        accepts='`delete`, or empty',
        dynamic=True,
        words='Default of `cleanup.policy` of a topic.',
    ),
    Definition(
        name='log.index.interval.bytes',
        kind=Kind.INT,
        default=4096,
        low=0,
        dynamic=True,
        words='Default of `index.interval.bytes` of a topic.',
    ),
    Definition(
        name='log.message.timestamp.type',
        kind=Kind.STRING,
        default='CreateTime',
        choices=('CreateTime', 'LogAppendTime'),
        dynamic=True,
        words='Default of `message.timestamp.type` of a topic.',
    ),
    Definition(
        name='log.message.timestamp.before.max.ms',
        kind=Kind.LONG,
        default=FOREVER,
        low=0,
        dynamic=True,
        words='Default of `message.timestamp.before.max.ms` of a topic.',
    ),
    Definition(
        name='log.message.timestamp.after.max.ms',
        kind=Kind.LONG,
        default=3_600_000,
        low=0,
        dynamic=True,
        words='Default of `message.timestamp.after.max.ms` of a topic.',
    ),
    Definition(
        name='message.max.bytes',
        kind=Kind.INT,
        default=1_048_588,
        low=0,
        dynamic=True,
        words='Default of `max.message.bytes` of a topic.',
    ),
    Definition(
        name='min.insync.replicas',
        kind=Kind.INT,
        default=1,
        check=not_one_replica,
        accepts='`1`',
        words='Replicas that must have a record before acks=all is answered; there is one.',
    ),
)
