"""How a topic's configs look to the logs of its partitions."""

from __future__ import annotations

from acklog.broker.configs.values import Readable
from acklog.log.seam import LogConfig


def log_config(topic: Readable) -> LogConfig:
    """How the logs of a topic's partitions are kept. An empty cleanup.policy keeps everything."""
    keeps = 'delete' not in topic.items('cleanup.policy')
    return LogConfig(
        segment_bytes=topic.integer('segment.bytes'),
        segment_ms=topic.integer('segment.ms'),
        retention_bytes=-1 if keeps else max(topic.integer('retention.bytes'), -1),
        retention_ms=-1 if keeps else topic.integer('retention.ms'),
        owed_retention_bytes=topic.integer('acklog.owed.retention.bytes'),
        owed_retention_ms=topic.integer('acklog.owed.retention.ms'),
        log_append_time=topic.text('message.timestamp.type') == 'LogAppendTime',
        index_interval_bytes=topic.integer('index.interval.bytes'),
    )
