"""A group's configs in the form in which share partitions use them."""

from __future__ import annotations

from acklog.broker.configs import Readable, thresholds
from acklog.broker.configs.checks import BY_DURATION, duration_ms
from acklog.broker.configs.thresholds import Threshold
from acklog.core import backoff
from acklog.core.share_partition import ShareConfig


def share_config(group: Readable, cut_ms: int, topic: str = '') -> ShareConfig:
    """What core is told about how records of `topic` are delivered. A topic is not its own dead-letter topic. `cut_ms`:
    see `Broker.open`."""
    limit, waiting_max = group.integer('share.delivery.count.limit'), group.integer('acklog.waiting.max.ms')
    return ShareConfig(
        lock_ms=group.integer('share.record.lock.duration.ms'),
        attempts_limit=None if limit < 0 else limit,
        max_in_flight=group.integer('share.partition.max.record.locks'),
        backoff=backoff.parse(group.text('acklog.retry.backoff')),
        dead_letter_topic=group.text('errors.deadletterqueue.topic.name') not in ('', topic),
        waiting_max_ms=None if waiting_max < 0 else waiting_max,
        cut_ms=cut_ms,
    )


def offset_reset(group: Readable) -> str | int:
    """Where the group begins on a new partition: 'earliest', 'latest', or so many ms ago (KIP-932)."""
    text = group.text('share.auto.offset.reset')
    if not text.startswith(BY_DURATION):
        return text
    ago = duration_ms(text.removeprefix(BY_DURATION))
    assert ago is not None, text
    return ago


def pause_threshold(group: Readable) -> Threshold | None:
    """When so much dies that the group is paused; None: never."""
    return thresholds.parse(group.text('acklog.dead.pause.threshold'))


def read_committed(group: Readable) -> bool:
    """Whether records of aborted transactions are left out."""
    return group.text('share.isolation.level') == 'read_committed'
