"""Prometheus metrics, as text (exposition format 0.0.4).

Strategy: everything is read off the state that is there when it is asked for; nothing is counted on the way of a
request. Series are per topic, per group, and per group and topic, never per partition; of pairs of group and topic
there are at most `MOST_PAIRS`, and how many are left out is a metric itself. Between groups the loop has its turn.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import acklog
from acklog.broker.api import Caller, Refused
from acklog.errors import LogError
from acklog.server.http.routes.insight import TopicLag, by_topic

if TYPE_CHECKING:
    from acklog.server.http.listener import HttpListener

MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
MOST_PAIRS = 10_000

Labels = tuple[tuple[str, str], ...]


class Metric(NamedTuple):
    """A metric with its samples."""

    name: str
    kind: str  # counter or gauge
    words: str
    samples: Sequence[tuple[Labels, float]]


async def exposition(listener: HttpListener, caller: Caller) -> bytes:
    """All metrics."""
    metrics = [*_process(), *_node(listener), *_topics(listener), *await _groups(listener, caller)]
    return ''.join(_lines(metrics)).encode()


def _lines(metrics: Sequence[Metric]) -> Iterator[str]:
    for metric in metrics:
        if metric.samples:
            yield f'# HELP {metric.name} {metric.words}\n# TYPE {metric.name} {metric.kind}\n'
            for labels, value in metric.samples:
                shown = ','.join(f'{name}="{_escaped(text)}"' for name, text in labels)
                yield f'{metric.name}{{{shown}}} {value:.17g}\n' if shown else f'{metric.name} {value:.17g}\n'


def _escaped(text: str) -> str:
    return text.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')


def _one(name: str, kind: str, words: str, value: float) -> Metric:
    return Metric(name, kind, words, [((), value)])


# -- the process and the node ------------------------------------------------------------------------------------------


def _process() -> Iterator[Metric]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    yield _one('process_cpu_seconds_total', 'counter', 'CPU time used, user and system.', cpu)
    if sys.platform == 'linux':
        pages = int(Path('/proc/self/statm').read_text().split()[1])
        memory = pages * os.sysconf('SC_PAGE_SIZE')
        yield _one('process_resident_memory_bytes', 'gauge', 'Memory in use.', memory)
        yield _one('process_open_fds', 'gauge', 'Open files and sockets.', len(os.listdir('/proc/self/fd')))


def _node(listener: HttpListener) -> Iterator[Metric]:
    catalog = listener.broker.catalog
    yield Metric('acklog_info', 'gauge', 'The version.', [((('version', acklog.__version__),), 1)])
    connections: list[tuple[Labels, float]] = [
        ((('listener', 'kafka'),), listener.kafka.open),
        ((('listener', 'http'),), len(listener.connections)),
    ]
    yield Metric('acklog_connections', 'gauge', 'Open connections.', connections)
    yield _one('acklog_request_bytes', 'gauge', 'Bytes of requests under way.', listener.kafka.budget.taken)
    yield _one(
        'acklog_unsent_answer_bytes', 'gauge', 'Bytes of answers not taken by clients.', listener.kafka.unsent.total
    )
    yield _one('acklog_topics', 'gauge', 'Topics.', len(catalog.topics))
    yield _one('acklog_partitions', 'gauge', 'Partitions of all topics.', catalog.partitions)
    yield _one('acklog_groups', 'gauge', 'Groups.', len(catalog.groups))


def _topics(listener: HttpListener) -> Iterator[Metric]:
    broker = listener.broker
    ends: list[tuple[Labels, float]] = []
    sizes: list[tuple[Labels, float]] = []
    for name in sorted(broker.catalog.topics):
        topic = broker.catalog.topics[name]
        indexes = range(topic.partitions)
        partitions = [each for index in indexes if (each := broker.partition(topic.id_bytes, index)) is not None]
        labels = (('topic', name),)
        ends.append((labels, sum(partition.log.visible_end for partition in partitions)))
        sizes.append((labels, sum(partition.log.size for partition in partitions)))
    yield Metric('acklog_topic_records_total', 'counter', 'Records appended, since the topic was made.', ends)
    yield Metric('acklog_topic_bytes', 'gauge', 'Bytes stored.', sizes)


# -- groups ------------------------------------------------------------------------------------------------------------

PAIR = (
    ('acklog_group_lag_records', 'Records not settled.'),
    ('acklog_group_available_records', 'Records that may be taken now.'),
    ('acklog_group_waiting_records', 'Records that wait for a time.'),
    ('acklog_group_acquired_records', 'Records that members hold.'),
    ('acklog_group_dying_records', 'Records whose dead letter is still to be written.'),
    ('acklog_group_dead_records', 'Dead records.'),
    ('acklog_group_oldest_unsettled_seconds', 'Age of the oldest record not settled.'),
)


async def _groups(listener: HttpListener, caller: Caller) -> list[Metric]:
    broker = listener.broker
    members: list[tuple[Labels, float]] = []
    paused: list[tuple[Labels, float]] = []
    overdue: list[tuple[Labels, float]] = []
    pairs: list[list[tuple[Labels, float]]] = [[] for _ in PAIR]
    left_out = 0
    for name in sorted(broker.catalog.groups):
        await asyncio.sleep(0)
        try:
            status = await broker.operations.status(caller, name)
        except (Refused, LogError):
            continue  # deleted meanwhile, or its state is being read anew
        labels = (('group', name),)
        members.append((labels, len(broker.groups.members.of(name))))
        paused.append((labels, status.paused is not None))
        overdue.append((labels, sum(partition.overdue_bytes for partition in status.partitions)))
        for topic in by_topic(status.partitions):
            if len(pairs[0]) >= MOST_PAIRS:
                left_out += 1
                continue
            for series, value in zip(pairs, _values(topic, broker.clock()), strict=True):
                series.append(((('group', name), ('topic', topic.topic)), value))
    return [
        Metric('acklog_group_members', 'gauge', 'Members.', members),
        Metric('acklog_group_paused', 'gauge', '1: nothing is delivered to it.', paused),
        Metric('acklog_group_overdue_bytes', 'gauge', 'Bytes kept beyond retention because it is owed them.', overdue),
        *(Metric(name, 'gauge', words, series) for (name, words), series in zip(PAIR, pairs, strict=True)),
        _one('acklog_metrics_left_out', 'gauge', 'Pairs of group and topic for which there are too many.', left_out),
    ]


def _values(topic: TopicLag, now: int) -> tuple[float, ...]:
    oldest = topic.oldest_unsettled_ms
    age = 0.0 if oldest is None else max(now - oldest, 0) / 1000
    return topic.lag, topic.available, topic.waiting, topic.acquired, topic.dying, topic.dead, age
