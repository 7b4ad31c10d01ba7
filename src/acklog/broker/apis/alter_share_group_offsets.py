"""AlterShareGroupOffsets (91), v0: where a group begins on partitions, in a new epoch of its state (KIP-932).

- A group with members is refused (NON_EMPTY_GROUP); one that does not exist is made.
- An offset below the log's start means its start, as after retention. One above its end is refused with
  OFFSET_OUT_OF_RANGE: records that come in between would pass the group by unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.refusals import check_group_name, no_partition, no_topic, past_end
from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group, Topic


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        check_group_name(request.group_id)
        broker.authorize(caller, 'READ', 'GROUP', request.group_id)
        await broker.groups.ensure(request.group_id)
        group = broker.groups.empty(request.group_id)
    except AcklogError as error:
        code, message = answer_to(error)
        return {'error_code': code, 'error_message': message, 'responses': []}
    return {'error_code': 0, 'responses': [await _topic(broker, caller, group, topic) for topic in request.topics]}


async def _topic(broker: Broker, caller: Caller, group: Group, asked: Any) -> dict[str, Any]:
    topic = broker.catalog.topics.get(asked.topic_name)
    partitions = []
    for partition in asked.partitions:
        code, message = ErrorCode.NONE, None
        try:
            broker.authorize(caller, 'READ', 'TOPIC', asked.topic_name)
            if topic is None:
                raise no_topic(asked.topic_name)
            await _seek(broker, group, topic, partition.partition_index, partition.start_offset)
        except AcklogError as error:
            code, message = answer_to(error)
        partitions.append({'partition_index': partition.partition_index, 'error_code': code, 'error_message': message})
    return {
        'topic_name': asked.topic_name,
        'topic_id': None if topic is None else topic.id,
        'partitions': partitions,
    }


async def _seek(broker: Broker, group: Group, topic: Topic, index: int, offset: int) -> None:
    partition = broker.partition(topic.id_bytes, index)
    if partition is None:
        raise no_partition(topic, index)
    if offset < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f'{offset} is no offset')
    if offset > partition.log.visible_end:
        raise past_end(partition, offset)
    target = max(offset, partition.log.start)
    delivery = await broker.deliveries.get(group, topic.id_bytes, index, start=target)
    await delivery.seek(target)


API = Api(91, 'AlterShareGroupOffsets', (0, 0), handle)
