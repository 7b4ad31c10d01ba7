"""All figures of the benchmark: what they are called, their unit, which way is better, and what they are to reach.

A goal is a ratio to Kafka's median of the same run (`times`), or a number (`at most`); some refer to the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Figure(NamedTuple):
    """One row of the table."""

    name: str
    label: str
    unit: str
    better: Literal['more', 'less']
    times: float | None = None  # goal: so many times better than Kafka
    at_most: float | None = None  # goal: a bound by itself
    above_fdatasync: float | None = None  # goal: at most the disk's fdatasync p50 and so much


RATE, CPU, US, MS, S, MB = 'records/s', 'CPU s per 1 M', 'us', 'ms', 's', 'MB'

FIGURES = (
    Figure('publish_100b_all', 'publish, 100 B, acks=all', RATE, 'more', times=1.6),
    Figure('publish_100b_1', 'publish, 100 B, acks=1', RATE, 'more', times=1.6),
    Figure('publish_1kb_all', 'publish, 1 kB, acks=all', RATE, 'more', times=1.6),
    Figure('publish_1kb_1', 'publish, 1 kB, acks=1', RATE, 'more', times=1.6),
    Figure('share_implicit', 'share-consume, implicit accept', RATE, 'more', times=3),
    Figure('share_explicit', 'share-consume, explicit accept', RATE, 'more', times=2),
    Figure('share_alternating', 'share-consume, accept and reject by turns', RATE, 'more', times=10),
    Figure('pair_publish_all', 'two publishers, 100 B, acks=all', RATE, 'more'),
    Figure('pair_publish_1', 'two publishers, 100 B, acks=1', RATE, 'more'),
    Figure('pair_share', 'two share consumers, implicit accept', RATE, 'more'),
    Figure('poll_one', 'share-consume, max.poll.records=1', RATE, 'more'),
    Figure('one_record_publish', 'one-record batches, publish, acks=1', RATE, 'more'),
    Figure('one_record_share', 'one-record batches, share-consume', RATE, 'more'),
    Figure('sync_all_p50', 'synchronous publish, acks=all, p50', US, 'less', above_fdatasync=150),
    Figure('sync_all_p99', 'synchronous publish, acks=all, p99', US, 'less'),
    Figure('sync_1_p50', 'synchronous publish, acks=1, p50', US, 'less', times=1),
    Figure('sync_1_p99', 'synchronous publish, acks=1, p99', US, 'less'),
    Figure('fdatasync_p50', "the disk's fdatasync, p50", US, 'less'),
    Figure('fdatasync_p99', "the disk's fdatasync, p99", US, 'less'),
    Figure('loopback_p50', 'a few bytes to a process and back, p50', US, 'less'),
    Figure('loopback_p99', 'a few bytes to a process and back, p99', US, 'less'),
    Figure('end_to_end_p50', 'publish to delivery at 1,000/s, p50', US, 'less', at_most=200),
    Figure('end_to_end_p99', 'publish to delivery at 1,000/s, p99', US, 'less'),
    Figure('start', 'start to first answer', S, 'less', at_most=0.4),
    Figure('recovery', 'the same after kill -9, 1 GB in 100 partitions', S, 'less', at_most=0.5),
    Figure('new_member', "a new member's first record", S, 'less', at_most=0.3),
    Figure('takeover_p50', 'takeover from a killed member, p50', MS, 'less', at_most=5),
    Figure('takeover_max', 'takeover from a killed member, slowest', MS, 'less'),
    Figure('publish_cpu_100b_all', 'server CPU: publish, 100 B, acks=all', CPU, 'less', times=10),
    Figure('publish_cpu_100b_1', 'server CPU: publish, 100 B, acks=1', CPU, 'less', times=10),
    Figure('publish_cpu_1kb_all', 'server CPU: publish, 1 kB, acks=all', CPU, 'less'),
    Figure('publish_cpu_1kb_1', 'server CPU: publish, 1 kB, acks=1', CPU, 'less'),
    Figure('share_cpu_implicit', 'server CPU: share, implicit', CPU, 'less', times=10),
    Figure('share_cpu_explicit', 'server CPU: share, explicit', CPU, 'less', times=10),
    Figure('share_cpu_alternating', 'server CPU: share, accept and reject', CPU, 'less', times=10),
    Figure('one_record_cpu', 'server CPU: publish, one-record batches', CPU, 'less'),
    Figure('publish_client', "the client's own CPU: publish, 100 B, acks=1", CPU, 'less'),
    Figure('share_client', "the client's own CPU: share, implicit", CPU, 'less'),
    Figure('idle_mb', 'resident memory, idle', MB, 'less', at_most=50),
    Figure('after_mb', 'resident memory, after all of this', MB, 'less'),
    Figure('many_start', '10,000 partitions: start to first answer', S, 'less', at_most=3),
    Figure('many_mb', '10,000 partitions: resident memory, idle', MB, 'less', at_most=300),
    Figure('many_idle_cpu', '10,000 partitions: CPU, idle', '%', 'less', at_most=1),
)

BY_NAME: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES}
