"""ShareGroupHeartbeat (76), v1: join a share group, go on, leave (KIP-932).

- Epoch 0 joins (again), -1 leaves, others go on. Members choose their ids. Topics are names; null: unchanged.
- The assignment is in the answer to epoch 0, and whenever the member may not know it: Kafka tells it with the second
  heartbeat only.
- Errors 25 and 110 make a client join anew, 14 to 16 make it try again; 42, 69 and -1 end it for good. So what cannot
  be written down is COORDINATOR_NOT_AVAILABLE, and a group that is gone UNKNOWN_MEMBER_ID, except to who leaves it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.refusals import check_member_name
from acklog.core.assignment import Assignment
from acklog.core.membership import JOIN_EPOCH, LEAVE_EPOCH
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import GROUP_RULE, LONGEST_TOPIC

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

MOST_TOPICS = 10_000  # that one member subscribes to


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        _check(request)
        broker.authorize(caller, 'READ', 'GROUP', request.group_id)
        if request.member_epoch == LEAVE_EPOCH:
            await broker.groups.members.leave(request.group_id, request.member_id)
            return {'error_code': 0, 'member_id': request.member_id, 'member_epoch': LEAVE_EPOCH}
        return await _go_on(broker, caller, request)
    except Refused as refused:
        return {'error_code': refused.code, 'error_message': refused.message}


def _check(request: Any) -> None:
    if not request.group_id:
        raise Refused(ErrorCode.INVALID_REQUEST, GROUP_RULE)
    check_member_name(request.member_id)
    if request.member_epoch < LEAVE_EPOCH:
        raise Refused(ErrorCode.INVALID_REQUEST, 'MemberEpoch is invalid.')
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise Refused(ErrorCode.INVALID_REQUEST, 'SubscribedTopicNames must be set by who joins.')
    if request.rack_id is not None and not 0 < len(request.rack_id) <= LONGEST_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f'RackId has 1 to {LONGEST_TOPIC} characters.')
    topics = request.subscribed_topic_names or ()
    if len(topics) > MOST_TOPICS or any(len(name) > LONGEST_TOPIC for name in topics):
        words = f'SubscribedTopicNames may be {MOST_TOPICS} names of up to {LONGEST_TOPIC} characters.'
        raise Refused(ErrorCode.INVALID_REQUEST, words)


async def _go_on(broker: Broker, caller: Caller, request: Any) -> dict[str, Any]:
    for name in request.subscribed_topic_names or ():
        broker.authorize(caller, 'DESCRIBE', 'TOPIC', name)
    name = request.group_id
    beat = await broker.groups.members.heartbeat(
        caller, name, request.member_id, request.member_epoch, request.subscribed_topic_names, request.rack_id
    )
    answer = {
        'error_code': 0,
        'member_id': beat.member.id,
        'member_epoch': beat.member.epoch,
        'heartbeat_interval': broker.catalog.group_or_default(name).integer('share.heartbeat.interval.ms'),
    }
    if beat.tell:
        answer['assignment'] = {'topic_partitions': _topic_partitions(beat.member.assignment)}
    return answer


def _topic_partitions(assignment: Assignment) -> list[dict[str, Any]]:
    return [{'topic_id': uuid.UUID(bytes=topic.id), 'partitions': indexes} for topic, indexes in assignment.items()]


API = Api(76, 'ShareGroupHeartbeat', (1, 1), handle)
