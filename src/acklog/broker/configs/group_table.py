"""Every config of a group: Kafka's of share groups (KIP-932, KIP-1191, KIP-1222) with wider ranges, and ours."""

from __future__ import annotations

from dataclasses import replace

from acklog.broker.configs.broker_table import BROKER
from acklog.broker.configs.checks import check_endless, offset_reset
from acklog.broker.configs.definitions import Definition, Kind, Table, Value
from acklog.broker.configs.values import Readable
from acklog.errors import ConfigError


def _as_broker(broker: str, name: str, words: str) -> Definition:
    """A group's config whose type, default and range are those of the broker's config `broker`."""
    return replace(BROKER[broker], name=name, words=words, broker=broker, dynamic=True)


def _own(name: str, kind: Kind, default: Value, words: str) -> Definition:
    return Definition(name=name, kind=kind, default=default, words=words, dynamic=True)


GROUP = Table(
    'group',
    (
        replace(
            _own(
                'share.auto.offset.reset',
                Kind.STRING,
                'latest',
                'Where the group begins on a partition it has not read yet: `earliest`, `latest`, or '
                '`by_duration:PnDTnHnMn.nS`, so long ago.',
            ),
            check=offset_reset,
            accepts='`earliest`, `latest`, `by_duration:...`',
        ),
        _as_broker(
            'group.share.record.lock.duration.ms',
            'share.record.lock.duration.ms',
            'How long a member holds a record that it has taken, unless it renews.',
        ),
        _as_broker(
            'group.share.delivery.count.limit',
            'share.delivery.count.limit',
            'Failed deliveries after which a record goes dead; -1: without limit.',
        ),
        _as_broker(
            'group.share.partition.max.record.locks',
            'share.partition.max.record.locks',
            'Records of one partition that members of the group may hold at a time.',
        ),
        _as_broker(
            'group.share.heartbeat.interval.ms',
            'share.heartbeat.interval.ms',
            'Time between two heartbeats, told to the members.',
        ),
        _as_broker(
            'group.share.session.timeout.ms',
            'share.session.timeout.ms',
            'A member not heard of for so long is lost.',
        ),
        replace(
            _own(
                'share.isolation.level',
                Kind.STRING,
                'read_uncommitted',
                'Whether records of aborted transactions are delivered (`read_uncommitted`) or not (`read_committed`).',
            ),
            choices=('read_committed', 'read_uncommitted'),
        ),
        _own(
            'share.renew.acknowledge.enable',
            Kind.BOOLEAN,
            True,
            'Whether members may renew locks (KIP-1222).',
        ),
        replace(
            _as_broker(
                'acklog.retry.backoff',
                'acklog.retry.backoff',
                'How long a record waits after a failed delivery: `none`, `fixed:10s`, `exponential:1s..10m`, or a '
                'list `1s,10s,1m,10m`, of which the last repeats; `~20%` behind it adds jitter.',
            ),
            accepts='as it says; durations in `ms`, `s`, `m`, `h`, `d`',
        ),
        _as_broker(
            'acklog.waiting.max.ms',
            'acklog.waiting.max.ms',
            'How long a record whose delivery failed may wait for the next one, whatever backoff or subscriber say; '
            'then it dies. Not for what was published for later, or moved by an operator. -1: without limit.',
        ),
        _as_broker(
            'acklog.dead.retention.ms',
            'acklog.dead.retention.ms',
            'How long a dead record is kept, against retention too, so that it can be redriven; then it is done. -1: '
            'without limit.',
        ),
        replace(
            _as_broker(
                'acklog.dead.pause.threshold',
                'acklog.dead.pause.threshold',
                'When so large a share of the last so many records died, as in `50%/100`, the group is paused until '
                'somebody resumes it. Empty: never.',
            ),
            accepts='empty, or as it says',
        ),
        _own(
            'errors.deadletterqueue.topic.name',
            Kind.STRING,
            '',
            'Topic that dead letters are written to before a record is dead (KIP-1191): one that has '
            '`errors.deadletterqueue.group.enable`. Empty: none; dead records stay in their log only.',
        ),
        _own(
            'errors.deadletterqueue.copy.record.enable',
            Kind.BOOLEAN,
            False,
            'Whether dead letters have key, value and headers of the record, or only say where it is and why it died.',
        ),
    ),
)


def check_together(group: Readable) -> None:
    """Refuse a session timeout that a member would miss between two heartbeats, and records that would be delivered for
    ever without a pause. Raises ConfigError."""
    session, heartbeat = group.integer('share.session.timeout.ms'), group.integer('share.heartbeat.interval.ms')
    if session <= heartbeat:
        allowed = f'must be greater than share.heartbeat.interval.ms, which is {heartbeat}'
        raise ConfigError('share.session.timeout.ms', session, allowed)
    check_endless(group, 'share.delivery.count.limit')
