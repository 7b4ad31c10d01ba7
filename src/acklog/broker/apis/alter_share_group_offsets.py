"""AlterShareGroupOffsets (91), v0: where a group begins on partitions, in a new epoch of its state (KIP-932).

- A group with members is refused (NON_EMPTY_GROUP); one that does not exist is made.
- An offset below the log's start means its start, as after retention. One above its end is refused with
  OFFSET_OUT_OF_RANGE: records that come in between would pass the group by unseen.
- A partition that is named more than once is moved once, to the last offset, and answered once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.eager import Pace
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
    wanted: dict[str, dict[int, int]] = {}
    pace = Pace()
    for entry in request.topics:
        offsets = wanted.setdefault(entry.topic_name, {})
        for partition in entry.partitions:
            await pace.keep()
            offsets[partition.partition_index] = partition.start_offset
    return {
        'error_code': 0,
        'responses': [await _topic(broker, caller, group, name, offsets, pace) for name, offsets in wanted.items()],
    }


async def _topic(
    broker: Broker, caller: Caller, group: Group, name: str, offsets: dict[int, int], pace: Pace
) -> dict[str, Any]:
    await pace.keep()
    topic = broker.catalog.topics.get(name)
    partitions = []
    for index, offset in offsets.items():
        await pace.keep()
        code, message = ErrorCode.NONE, None
        try:
            broker.authorize(caller, 'READ', 'TOPIC', name)
            if topic is None:
                raise no_topic(name)
            await _seek(broker, group, topic, index, offset)
        except AcklogError as error:
            code, message = answer_to(error)
        partitions.append({'partition_index': index, 'error_code': code, 'error_message': message})
    return {'topic_name': name, 'topic_id': None if topic is None else topic.id, 'partitions': partitions}


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
