"""The topic that a group's dead letters go to: which it is, and whether it may be (KIP-1191, as Apache Kafka 4.4).

A group names it (`errors.deadletterqueue.topic.name`); its name begins as `errors.deadletterqueue.topic.name.prefix` of
the server says; it says itself that it takes dead letters (`errors.deadletterqueue.group.enable`). One that does not
exist is made where `errors.deadletterqueue.auto.create.topics.enable` of the server allows it.

Kafka looks at this when a record dies. Here what can be seen then is refused already when a group names the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.broker.catalog.catalog import NewTopic, Topic
from acklog.broker.catalog.topics import create_topics
from acklog.broker.configs import Settings
from acklog.broker.refusals import check_new_topic_name
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group

NAME = 'errors.deadletterqueue.topic.name'
COPY = 'errors.deadletterqueue.copy.record.enable'
ENABLE = 'errors.deadletterqueue.group.enable'
PREFIX = 'errors.deadletterqueue.topic.name.prefix'
AUTO_CREATE = 'errors.deadletterqueue.auto.create.topics.enable'


def check_name(broker: Broker, group: str, configs: Mapping[str, str]) -> None:
    """Refuse a topic that the group's new configs name for its dead letters and that may not be. Raises Refused."""
    name = configs.get(NAME, '')
    if not name or name == broker.catalog.group_configs.get(group, {}).get(NAME):
        return  # one that was named before may have become wrong since; that shows where it is written to
    try:
        _check(broker.settings, name, broker.catalog.topics.get(name))
    except Refused as refused:
        message = f'Invalid value {name} for configuration {NAME}: {refused}'
        raise Refused(ErrorCode.INVALID_CONFIG, message) from None


async def dead_letter_topic(broker: Broker, group: Group) -> Topic:
    """The group's topic for dead letters, made if need be. Raises Refused with why it cannot be used, LogError."""
    name = group.text(NAME)
    topic = broker.catalog.topics.get(name)
    _check(broker.settings, name, topic)
    if topic is not None:
        return topic
    if not broker.settings.flag(AUTO_CREATE):
        message = f'the topic {name} does not exist, and {AUTO_CREATE} is off'
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    new = NewTopic(name, broker.settings.integer('num.partitions'), {ENABLE: 'true'})
    [made] = await create_topics(broker, [new])
    if isinstance(made, Exception):
        raise made
    return made


def _check(settings: Settings, name: str, topic: Topic | None) -> None:
    check_new_topic_name(name)
    prefix = settings.text(PREFIX)
    if not name.startswith(prefix):
        raise Refused(ErrorCode.INVALID_CONFIG, f'the name {name} does not begin with {prefix!r} ({PREFIX})')
    if topic is not None and not topic.flag(ENABLE):
        raise Refused(ErrorCode.INVALID_CONFIG, f'the topic {name} takes no dead letters: {ENABLE} is not true there')
