"""Topics at work: the catalog's topics joined to the logs of their partitions.

Strategy: the catalog decides. A topic is created in it first, then its logs are opened (clients are told to wait
meanwhile); a topic is deleted in it first, then its logs go. So at the start logs that belong to no topic are
left-overs and removed, and logs that are missing are made.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.broker.catalog.catalog import NewTopic, Topic
from acklog.broker.configs import log_config
from acklog.broker.eager import Pace, concurrently
from acklog.broker.partition import Partition
from acklog.errors import LogError
from acklog.log.seam import LogConfig
from acklog.wire.error_words import INTERNAL

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

logger = logging.getLogger('acklog.topics')

IN_ONE_WRITE = 100  # topics that are created together: a few milliseconds
AT_A_TIME = 32  # logs that are removed together: they share what the disk has to sync


async def open_partitions(broker: Broker) -> None:
    """At the start: remove logs of topics that do not exist, open those of all that do. Raises LogError."""
    topics = list(broker.catalog.topics.values())
    known = {topic.log_name(index) for topic in topics for index in range(topic.partitions)}
    for name in list(broker.opener.names()):
        if name not in known and not name.startswith(INTERNAL):
            logger.info('removing the log %s: its topic was deleted', name)
            await (await broker.opener.open(name, LogConfig())).delete()
    pace = Pace()
    for topic in topics:
        await _open(broker, topic, pace)


async def create_topics(broker: Broker, topics: Sequence[NewTopic]) -> list[Topic | Refused | LogError]:
    """Valid new topics, many with one write to the catalog; each is a topic, ready for use, or why it was refused, or
    why the catalog could not be written, or a log not be opened."""
    created: list[Topic | Refused | LogError] = []
    pace = Pace()
    for at in range(0, len(topics), IN_ONE_WRITE):
        some = topics[at : at + IN_ONE_WRITE]
        try:
            found = await broker.catalog.create_topics(some)
            for topic in found:
                if isinstance(topic, Topic):
                    await _open(broker, topic, pace)
        except LogError as error:
            created += [error] * len(some)
        else:
            created += found
    broker.groups.topics_changed()
    broker.dead_letters.try_again()
    return created


async def delete_topic(broker: Broker, topic: Topic) -> bool:
    """Durable when it returns; whoever waits for records of it is answered. False if it does not exist any more."""
    if not await broker.catalog.delete_topic(topic):
        return False
    keys = [(topic.id_bytes, index) for index in range(topic.partitions)]
    partitions = [found for key in keys if (found := broker.partitions.pop(key, None)) is not None]
    for at in range(0, len(partitions), AT_A_TIME):
        for outcome in await concurrently([_remove(broker, each) for each in partitions[at : at + AT_A_TIME]]):
            if outcome is not None:
                raise outcome
    broker.groups.topics_changed()
    return True


async def _remove(broker: Broker, partition: Partition) -> None:
    broker.scheduled.forget(partition)
    broker.deliveries.partition_deleted(partition)
    try:
        await partition.close_deleted()
    except LogError as error:  # its files are removed at the next start
        logger.warning('the files of %s-%d could not be removed: %s', partition.topic_name, partition.index, error)


async def add_partitions(broker: Broker, topic: Topic, count: int) -> bool:
    """Have `count` partitions. False if the topic does not exist any more. Raises Refused, LogError."""
    before = topic.partitions
    if not await broker.catalog.add_partitions(topic, count):
        return False
    await _open(broker, topic, Pace())
    await broker.deliveries.topic_has_grown(topic, before)
    broker.groups.topics_changed()
    return True


def reconfigure(broker: Broker, topic: Topic) -> None:
    """Let the logs of a topic know that its configs, or defaults of them, have changed."""
    config = log_config(topic)
    for index in range(topic.partitions):
        partition = broker.partition(topic.id_bytes, index)
        if partition is not None:
            partition.log.configure(config)
    broker.scheduled.configure(topic)
    broker.dead_letters.try_again()


async def _open(broker: Broker, topic: Topic, pace: Pace) -> None:
    """Open the partitions of a topic that are not open yet."""
    async with topic.opening:
        for index in range(topic.partitions):
            key = (topic.id_bytes, index)
            if key in broker.partitions:
                continue
            await pace.keep()
            log = await broker.opener.open(topic.log_name(index), log_config(topic))
            if broker.catalog.topics_by_id.get(topic.id_bytes) is not topic:
                await log.delete()  # the topic was deleted meanwhile
                return
            broker.partitions[key] = Partition(topic.name, topic.id_bytes, index, log)
        broker.scheduled.configure(topic)
