"""Names that a subscriber gives: what can never be there is not waited for."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from acklog.client.cluster import Cluster
from acklog.client.errors import refusal
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import group_fault, new_topic_fault, topic_fault

logger = logging.getLogger('acklog.client')


def check_names(group: str, topics: Sequence[str]) -> None:
    """Raises Refused (INVALID_GROUP_ID, INVALID_TOPIC_EXCEPTION) for names that no group or topic has;
    ValueError without a topic, TypeError for what is no name."""
    for kind, names in (('group', [group]), ('topic', topics)):
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f'the name of a {kind} is a str, not {name!r}')
    if not topics:
        raise ValueError('a subscription needs a topic')
    if fault := group_fault(group):
        raise refusal(ErrorCode.INVALID_GROUP_ID, f'group {group!r}', fault)
    for topic in topics:
        if fault := topic_fault(topic):
            raise refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f'topic {topic!r}', fault)


async def look_for_topics(cluster: Cluster, group: str, topics: Sequence[str], *, on_acklog: bool) -> None:
    """Say in the log which topics are not there yet. Raises Refused for those that acklog keeps for itself, where
    nobody can create them (on Kafka somebody may), and the connection's errors."""
    found = await cluster.refresh(topics)
    for topic in topics:
        if topic in found:
            continue
        if on_acklog and (fault := new_topic_fault(topic)):
            raise refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f'topic {topic!r}', fault)
        logger.warning('group %r: topic %r does not exist yet: waiting for it', group, topic)
