"""ShareGroupDescribe (77), v1: members of share groups and what each is assigned (KIP-932).

- A group that does not exist is described as Dead, with GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.lazily import Lazily
from acklog.core.membership import Member

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

ASSIGNOR = 'simple'  # the only one that Kafka has for share groups
# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: all that a group knows
OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED = -(1 << 31)


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    operations = OPERATIONS if request.include_authorized_operations else NOT_ASKED
    names = dict.fromkeys(request.group_ids)
    return {'groups': Lazily(lambda name: _group(broker, caller, name, operations), names)}


def _group(broker: Broker, caller: Caller, name: str, operations: int) -> dict[str, Any]:
    try:
        broker.authorize(caller, 'DESCRIBE', 'GROUP', name)
        broker.groups.existing(name)
    except Refused as refused:
        return {
            'error_code': refused.code,
            'error_message': refused.message,
            'group_id': name,
            'group_state': 'Dead',
            'authorized_operations': NOT_ASKED,
        }
    members = broker.groups.members.of(name)
    epoch = broker.groups.members.epoch(name)
    return {
        'error_code': 0,
        'group_id': name,
        'group_state': 'Stable' if members else 'Empty',
        'group_epoch': epoch,
        'assignment_epoch': epoch,
        'assignor_name': ASSIGNOR,
        'members': [_member(member) for member in members],
        'authorized_operations': operations,
    }


def _member(member: Member) -> dict[str, Any]:
    return {
        'member_id': member.id,
        'rack_id': member.rack,
        'member_epoch': member.epoch,
        'client_id': member.client_id,
        'client_host': member.client_host,
        'subscribed_topic_names': sorted(member.topics),
        'assignment': {
            'topic_partitions': [
                {'topic_id': uuid.UUID(bytes=topic.id), 'topic_name': topic.name, 'partitions': indexes}
                for topic, indexes in member.assignment.items()
            ]
        },
    }


API = Api(77, 'ShareGroupDescribe', (1, 1), handle)
