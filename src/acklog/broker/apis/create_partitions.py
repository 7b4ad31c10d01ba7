"""CreatePartitions (37), v0-v3: more partitions for a topic that exists.

Each topic is judged by itself. `validate_only` judges only. The timeout is not looked at: the answer comes when it is
done.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.assignments import check_brokers
from acklog.broker.apis.create_topics import MOST_AT_ONCE
from acklog.broker.catalog.catalog import Topic
from acklog.broker.catalog.topics import add_partitions
from acklog.broker.eager import Pace
from acklog.broker.refusals import no_topic, not_more_partitions
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    times = Counter(entry.name for entry in request.topics)
    answers: dict[str, dict[str, Any]] = {}
    pace = Pace()
    for entry in request.topics:
        await pace.keep()
        answer: dict[str, Any] = {'name': entry.name, 'error_code': ErrorCode.NONE, 'error_message': None}
        try:
            if times[entry.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, 'Duplicate topic name.')
            topic = _judge(broker, caller, entry)
            if not request.validate_only and not await add_partitions(broker, topic, entry.count):
                raise no_topic(entry.name)
        except (Refused, LogError) as error:
            answer['error_code'], answer['error_message'] = answer_to(error)
        answers[entry.name] = answer
    return {'results': list(answers.values())}


def _judge(broker: Broker, caller: Caller, entry: Any) -> Topic:
    """The topic to be extended. Raises Refused."""
    topic = broker.catalog.topics.get(entry.name)
    if topic is None:
        raise no_topic(entry.name)
    broker.authorize(caller, 'ALTER', 'TOPIC', entry.name)
    more = entry.count - topic.partitions
    if more <= 0:
        raise not_more_partitions(topic, entry.count)
    if more > MOST_AT_ONCE:
        message = f'Excessively large number of additional partitions per request: {MOST_AT_ONCE} are allowed.'
        raise Refused(ErrorCode.POLICY_VIOLATION, message)
    if entry.assignments is not None:
        if len(entry.assignments) != more:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f'Attempted to add {more} additional partition(s), but only {len(entry.assignments)} assignment(s) '
                'were specified.',
            )
        for assignment in entry.assignments:
            check_brokers(broker, assignment.broker_ids)
    return topic


API = Api(37, 'CreatePartitions', (0, 3), handle)
