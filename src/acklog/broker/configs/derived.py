"""What other layers are told of a topic's or group's configs: the log's, the share partition's."""

from __future__ import annotations

from acklog.broker.configs.checks import BY_DURATION, duration_ms
from acklog.broker.configs.values import Configured
from acklog.core import backoff
from acklog.core.share_partition import ShareConfig
from acklog.log.seam import LogConfig


def log_config(topic: Configured) -> LogConfig:
    """How the logs of a topic's partitions are kept. An empty cleanup.policy keeps everything."""
    keeps = 'delete' not in topic.items('cleanup.policy')
    return LogConfig(
        segment_bytes=topic.integer('segment.bytes'),
        segment_ms=topic.integer('segment.ms'),
        retention_bytes=-1 if keeps else max(topic.integer('retention.bytes'), -1),
        retention_ms=-1 if keeps else topic.integer('retention.ms'),
        log_append_time=topic.text('message.timestamp.type') == 'LogAppendTime',
        index_interval_bytes=topic.integer('index.interval.bytes'),
        max_batch_bytes=topic.integer('max.message.bytes'),
    )


def share_config(group: Configured) -> ShareConfig:
    """How the share partitions of a group decide."""
    limit = group.integer('share.delivery.count.limit')
    return ShareConfig(
        lock_ms=group.integer('share.record.lock.duration.ms'),
        attempts_limit=None if limit < 0 else limit,
        max_in_flight=group.integer('share.partition.max.record.locks'),
        backoff=backoff.parse(group.text('acklog.retry.backoff')),
    )


def offset_reset(group: Configured) -> str | int:
    """Where a group begins on a partition: 'earliest', 'latest', or so many ms ago."""
    text = group.text('share.auto.offset.reset')
    if not text.startswith(BY_DURATION):
        return text
    ago = duration_ms(text.removeprefix(BY_DURATION))
    assert ago is not None, text
    return ago
