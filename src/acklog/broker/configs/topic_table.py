"""Every config of a topic, with Kafka's names, types, defaults and ranges (KIP-226 and Kafka's topic configs).

Names that Kafka has and that mean nothing on an acklog node are kept where tools set them routinely
(`effective=False`); those that would promise something we do not do (tiered storage, compaction) are refused.
"""

from __future__ import annotations

from dataclasses import replace

from acklog.broker.configs.broker_table import BROKER
from acklog.broker.configs.definitions import Definition, Kind, Table
from acklog.broker.configs.topic_defaults import DAY, FOREVER


def _as_broker(broker: str, name: str, words: str) -> Definition:
    """A topic's config whose type, default and range are those of the broker's config `broker`."""
    return replace(BROKER[broker], name=name, words=words, broker=broker, dynamic=True)


def _kept(name: str, kind: Kind, default: bool | float, why: str, low: float | None = 0) -> Definition:
    """A config that is kept and shown, and changes nothing."""
    return Definition(name=name, kind=kind, default=default, low=low, words=why, effective=False, dynamic=True)


_OURS = (
    _as_broker(
        'log.cleanup.policy',
        'cleanup.policy',
        'What retention does: `delete` drops old segments, empty keeps everything. `compact` is refused until it '
        'exists.',
    ),
    _as_broker(
        'log.retention.ms', 'retention.ms', 'Age at which segments are dropped, in milliseconds; -1: without limit.'
    ),
    replace(
        _as_broker(
            'log.retention.bytes',
            'retention.bytes',
            'Size of a partition above which its oldest segments are dropped; negative: without limit.',
        ),
        low=None,
    ),
    _as_broker(
        'acklog.owed.retention.ms',
        'acklog.owed.retention.ms',
        'For how long beyond `retention.ms` a segment is kept because a group is owed records of it, in milliseconds; '
        'what waits for a time, is held, or was so within that time, stays longer. -1: without limit.',
    ),
    _as_broker(
        'acklog.owed.retention.bytes',
        'acklog.owed.retention.bytes',
        'How many bytes of a partition are kept beyond retention because groups are owed records of them; past it the '
        'oldest go, whatever they hold. -1: without limit.',
    ),
    _as_broker(
        'acklog.deliver.at.enable',
        'acklog.deliver.at.enable',
        'Whether the header `acklog-deliver-at` of a record, milliseconds since 1970 or an instant of ISO 8601, says '
        'from when on groups may get it. The server looks into the records of such a topic when they are published.',
    ),
    _as_broker('log.segment.bytes', 'segment.bytes', 'Size at which a new segment file is begun.'),
    _as_broker('log.roll.ms', 'segment.ms', 'Age at which a new segment file is begun, in milliseconds.'),
    _as_broker(
        'log.index.interval.bytes', 'index.interval.bytes', 'Bytes of records between two entries of the offset index.'
    ),
    _as_broker(
        'message.max.bytes', 'max.message.bytes', 'Largest record batch that is accepted, as sent (compressed).'
    ),
    _as_broker(
        'log.message.timestamp.type',
        'message.timestamp.type',
        "Whose time records carry: `CreateTime` the producer's, `LogAppendTime` the server's.",
    ),
    _as_broker(
        'log.message.timestamp.before.max.ms',
        'message.timestamp.before.max.ms',
        "How far in the past a record's CreateTime may lie (KIP-937).",
    ),
    _as_broker(
        'log.message.timestamp.after.max.ms',
        'message.timestamp.after.max.ms',
        "How far in the future a record's CreateTime may lie (KIP-937).",
    ),
    _as_broker(
        'min.insync.replicas',
        'min.insync.replicas',
        'Replicas that must have a record before acks=all is answered; there is one.',
    ),
    Definition(
        name='errors.deadletterqueue.group.enable',
        kind=Kind.BOOLEAN,
        default=False,
        dynamic=True,
        words='Whether share groups may have their dead letters written to this topic (KIP-1191).',
    ),
)

_COMPACTION = 'Concerns compaction, which does not exist yet.'
_PAGE_CACHE = 'A publish with acks=all is on disk before it is answered, and one fdatasync serves all that wait.'

_KEPT = (
    Definition(
        name='compression.type',
        kind=Kind.STRING,
        default='producer',
        choices=('uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer'),
        words='Batches are stored as the producer compressed them, whatever this says.',
        effective=False,
        dynamic=True,
    ),
    _kept('compression.gzip.level', Kind.INT, -1, 'The server does not compress.', -1),
    _kept('compression.lz4.level', Kind.INT, 9, 'The server does not compress.', 1),
    _kept('compression.zstd.level', Kind.INT, 3, 'The server does not compress.', -131072),
    _kept('delete.retention.ms', Kind.LONG, DAY, _COMPACTION),
    replace(_kept('min.cleanable.dirty.ratio', Kind.DOUBLE, 0.5, _COMPACTION), high=1),
    _kept('min.compaction.lag.ms', Kind.LONG, 0, _COMPACTION),
    _kept('max.compaction.lag.ms', Kind.LONG, FOREVER, _COMPACTION, 1),
    _kept('file.delete.delay.ms', Kind.LONG, 60_000, 'Files are removed at once; readers that have them open go on.'),
    _kept('flush.messages', Kind.LONG, FOREVER, _PAGE_CACHE, 1),
    _kept('flush.ms', Kind.LONG, FOREVER, _PAGE_CACHE),
    _kept('preallocate', Kind.BOOLEAN, False, 'Segment files grow as they are written.', None),
    _kept('segment.index.bytes', Kind.INT, 10 << 20, 'The index grows as needed.', 4),
    _kept('segment.jitter.ms', Kind.LONG, 0, 'Segments are begun when they are due.'),
    _kept('unclean.leader.election.enable', Kind.BOOLEAN, False, 'There is one replica.', None),
)

TOPIC = Table('topic', (*_OURS, *_KEPT))
