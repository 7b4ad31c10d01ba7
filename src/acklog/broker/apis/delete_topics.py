"""DeleteTopics (20), v1-v6: by name, from v6 on also by id (KIP-516). Durable before the answer.

One that is wrong does not hinder the others; one that is named twice is refused (INVALID_REQUEST).
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.catalog.catalog import Topic
from acklog.broker.catalog.topics import delete_topic
from acklog.broker.eager import Pace
from acklog.broker.refusals import no_topic, no_topic_id
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

Key = tuple[str | None, uuid.UUID | None]


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    keys: list[Key]
    if version >= 6:
        keys = [(entry.name, entry.topic_id) for entry in request.topics]
    else:
        keys = [(name, None) for name in request.topic_names]
    answers, pace = [], Pace()
    times_asked, named = Counter(keys), Counter[str]()
    for key in times_asked:
        await pace.keep()
        if (topic := _find(broker, key)) is not None:
            named[topic.name] += 1
    for key, times in times_asked.items():
        await pace.keep()
        answer = {'name': key[0], 'topic_id': key[1], 'error_code': ErrorCode.NONE, 'error_message': None}
        try:
            if times > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, 'Duplicate topic name or id.')
            topic = _judge(broker, caller, key)
            if named[topic.name] > 1:
                message = 'The provided topic name maps to an ID that was already supplied.'
                raise Refused(ErrorCode.INVALID_REQUEST, message)
            answer |= {'name': topic.name, 'topic_id': topic.id}
            if not await delete_topic(broker, topic):
                raise _unknown(key)
        except (Refused, LogError) as error:
            answer['error_code'], answer['error_message'] = answer_to(error)
        answers.append(answer)
    return {'responses': answers}


def _find(broker: Broker, key: Key) -> Topic | None:
    name, topic_id = key
    if topic_id is not None:
        return broker.catalog.topics_by_id.get(topic_id.bytes)
    return broker.catalog.topics.get(name or '')


def _judge(broker: Broker, caller: Caller, key: Key) -> Topic:
    """The topic to be deleted. Raises Refused."""
    name, topic_id = key
    if name is not None and topic_id is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, 'You may not specify both topic name and topic id.')
    if name is None and topic_id is None:
        raise Refused(ErrorCode.INVALID_REQUEST, 'Neither topic name nor id were specified.')
    topic = _find(broker, key)
    if topic is None:
        raise _unknown(key)
    broker.authorize(caller, 'DELETE', 'TOPIC', topic.name)
    if not broker.settings.flag('delete.topic.enable'):
        raise Refused(ErrorCode.TOPIC_DELETION_DISABLED, 'Topic deletion is disabled (delete.topic.enable).')
    return topic


def _unknown(key: Key) -> Refused:
    if key[1] is not None:
        return no_topic_id()
    return no_topic(key[0] or '')


API = Api(20, 'DeleteTopics', (1, 6), handle)
