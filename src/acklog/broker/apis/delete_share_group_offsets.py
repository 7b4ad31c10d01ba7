"""DeleteShareGroupOffsets (92), v0: a group forgets what it has taken and signed off of topics (KIP-932).

- The group must exist and have no members: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
- A topic that the group has nothing of is UNKNOWN_TOPIC_OR_PARTITION, as one that does not exist.
- Taken up again, a topic begins where `share.auto.offset.reset` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.eager import Pace
from acklog.broker.refusals import check_group_name, no_topic
from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        check_group_name(request.group_id)
        broker.authorize(caller, 'DELETE', 'GROUP', request.group_id)
        group = broker.groups.empty(request.group_id)
    except Refused as refused:
        return {'error_code': refused.code, 'error_message': refused.message, 'responses': []}
    responses, pace = [], Pace()
    for name in dict.fromkeys(topic.topic_name for topic in request.topics):
        await pace.keep()
        responses.append(await _topic(broker, caller, group, name))
    return {'error_code': 0, 'responses': responses}


async def _topic(broker: Broker, caller: Caller, group: Group, name: str) -> dict[str, Any]:
    topic = broker.catalog.topics.get(name)
    try:
        broker.authorize(caller, 'READ', 'TOPIC', name)
        if topic is None:
            raise no_topic(name)
        ended = [await broker.deliveries.delete_partition(group, topic.id_bytes, i) for i in range(topic.partitions)]
        if not any(ended):
            words = f'group {group.name!r} has nothing of topic {name!r}'
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    except AcklogError as error:
        code, message = answer_to(error)
        return {'topic_name': name, 'error_code': code, 'error_message': message}
    return {'topic_name': name, 'topic_id': topic.id, 'error_code': 0}


API = Api(92, 'DeleteShareGroupOffsets', (0, 0), handle)
