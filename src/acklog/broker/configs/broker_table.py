"""Every config of the server: Kafka's names where Kafka has them, `acklog.` where it does not.

Static ones come from defaults, file, environment and command line (`acklog.server.config`); dynamic ones can also be
changed through IncrementalAlterConfigs on the BROKER resource and then win.
"""

from __future__ import annotations

from acklog.broker.configs.checks import backoff_text, cleanup_policy, not_one_replica
from acklog.broker.configs.definitions import Definition, Kind, Table

DAY = 24 * 3_600_000
FOREVER = (1 << 63) - 1

_PROCESS = (
    Definition(name='data', kind=Kind.STRING, default='./acklog-data', words='Directory of everything durable.'),
    Definition(
        name='listen',
        kind=Kind.STRING,
        default='127.0.0.1:9092',
        words='HOST:PORT of the Kafka listener; port 0 picks a free one and prints it.',
    ),
    Definition(
        name='advertise',
        kind=Kind.STRING,
        default='',
        words='HOST:PORT that clients are told to connect to; empty: the same as `listen`. A must where `listen` is a '
        'wildcard address.',
    ),
    Definition(
        name='log.level',
        kind=Kind.STRING,
        default='info',
        choices=('debug', 'info', 'warning', 'error'),
        words='Least severe messages that are written to stderr.',
    ),
    Definition(
        name='log.format',
        kind=Kind.STRING,
        default='text',
        choices=('text', 'json'),
        words='Form of the messages on stderr: for people, or one JSON object a line.',
    ),
    Definition(
        name='node.id', kind=Kind.INT, default=0, low=0, high=0, words='Id of this node; there is one node, number 0.'
    ),
)

_TOPICS = (
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

_LOG = (
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

_LIMITS = (
    Definition(
        name='max.connections',
        kind=Kind.INT,
        default=10_000,
        low=1,
        dynamic=True,
        words='Connections at a time; further ones are closed at once.',
    ),
    Definition(
        name='max.connections.per.ip',
        kind=Kind.INT,
        default=(1 << 31) - 1,
        low=1,
        dynamic=True,
        words='Connections at a time from one address.',
    ),
    Definition(
        name='connections.max.idle.ms',
        kind=Kind.LONG,
        default=600_000,
        low=-1,
        words='A connection without a request for so long is closed; -1: never.',
    ),
    Definition(
        name='socket.request.max.bytes',
        kind=Kind.INT,
        default=100 << 20,
        low=1024,
        words='Bytes of one request; a larger one closes its connection.',
    ),
    Definition(
        name='queued.max.request.bytes',
        kind=Kind.LONG,
        default=512 << 20,
        low=1 << 20,
        dynamic=True,
        words='Bytes of all requests together that are being received or worked on; while there are more, no further '
        'ones are read (Kafka: without limit).',
    ),
    Definition(
        name='acklog.connection.queued.bytes',
        kind=Kind.LONG,
        default=64 << 20,
        low=64 << 10,
        dynamic=True,
        words='Bytes of answers that wait for one connection to take them; while there are more, its next requests are '
        'not read.',
    ),
    Definition(
        name='fetch.max.bytes',
        kind=Kind.INT,
        default=55 << 20,
        low=1024,
        dynamic=True,
        words='Bytes of records in one answer to Fetch or ShareFetch, except that one whole batch always fits.',
    ),
    Definition(
        name='max.incremental.fetch.session.cache.slots',
        kind=Kind.INT,
        default=1000,
        low=0,
        words='Fetch sessions kept at a time (KIP-227).',
    ),
)

_GROUPS = (
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
        name='acklog.dead.retention.ms',
        kind=Kind.LONG,
        default=14 * DAY,
        low=-1,
        dynamic=True,
        words='Default of `acklog.dead.retention.ms` of a group.',
    ),
)

_STATE = (
    Definition(
        name='acklog.state.sync',
        kind=Kind.STRING,
        default='interval',
        choices=('interval', 'all'),
        dynamic=True,
        words='When the state of share partitions is forced to disk: `interval`: every '
        '`acklog.state.sync.interval.ms` (survives kill -9 always, power loss up to the last interval); `all`: before '
        'each answer.',
    ),
    Definition(
        name='acklog.state.sync.interval.ms',
        kind=Kind.INT,
        default=50,
        low=1,
        high=60_000,
        dynamic=True,
        words='Time between two such syncs.',
    ),
    Definition(
        name='acklog.disk.reserve.bytes',
        kind=Kind.LONG,
        default=64 << 20,
        low=0,
        words='Disk space kept back so that sign-offs and retention still work when the disk is full.',
    ),
    Definition(
        name='acklog.max.open.files',
        kind=Kind.INT,
        default=1000,
        low=16,
        words='Files of logs held open at a time; the least used are closed and opened again when needed.',
    ),
)

BROKER = Table('broker', (*_PROCESS, *_TOPICS, *_LOG, *_LIMITS, *_GROUPS, *_STATE))
