"""Configs of the server as a process: where it is, what it may hold, how it keeps state."""

from __future__ import annotations

from acklog.broker.configs import checks
from acklog.broker.configs.definitions import Definition, Kind

PROCESS = (
    Definition(
        name='data',
        kind=Kind.STRING,
        default='./acklog-data',
        check=checks.directory,
        words='Directory of everything durable.',
    ),
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
        words='HOST:PORT that clients are told to connect to, port 0 for that of `listen`; empty: the same as '
        '`listen`. A must where `listen` is a wildcard address.',
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

LIMITS = (
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
        name='acklog.queued.max.answer.bytes',
        kind=Kind.LONG,
        default=512 << 20,
        low=1 << 20,
        dynamic=True,
        words='Bytes of answers that wait for all connections together; while there are more, answers have as few '
        'records as can be, and the clients that are slowest in taking theirs are disconnected.',
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

STATE = (
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
