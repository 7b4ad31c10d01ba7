"""`share.renew.acknowledge.enable`: whether members of a group may renew locks, changed while they are connected."""

from __future__ import annotations

import uuid
from typing import Any

from tests.broker.admin_world import GROUP, NOW, World

from acklog.broker.apis import share_fetch
from acklog.wire import share_fetch as wire
from acklog.wire.acknowledgements import RENEW, Acknowledgement
from acklog.wire.error_code import ErrorCode as Code

ACCEPT = 1
MEMBER = str(uuid.uuid4())


async def poll(world: World, epoch: int, *acks: Acknowledgement) -> Any:
    """One ShareFetch; it takes records unless it renews."""
    topic_id = world.broker.catalog.topics['orders'].id_bytes
    topics = [wire.Topic(topic_id, [wire.Partition(0, acks)])]
    renews = any(RENEW in types for _, _, types, _ in acks)
    asked = wire.Request('readers', MEMBER, epoch, 0, 1, 1 << 20, 10, 10, 0, renews, topics, [])
    answer = await share_fetch.API.handle(world.broker, world.caller, 2, asked)
    assert answer.error_code == 0
    return answer.topics[0].partitions[0]


async def test_renewing_can_be_off() -> None:
    world = await World.open()
    await world.made('orders')
    await world.alter(GROUP, 'readers', ('share.auto.offset.reset', 'earliest'))
    await world.append('orders', NOW, NOW)
    beat = {'group_id': 'readers', 'member_id': MEMBER, 'member_epoch': 0, 'subscribed_topic_names': ['orders']}
    assert (await world.call('share_group_heartbeat', 1, **beat))['error_code'] == 0
    assert (await poll(world, 0)).acquired == [(0, 1, 1)]

    renew: Acknowledgement = (0, 1, bytes([RENEW]), None)
    assert (await poll(world, 1, renew)).ack_error_code == 0
    await world.alter(GROUP, 'readers', ('share.renew.acknowledge.enable', 'false'))
    refused = await poll(world, 2, renew)
    assert (refused.ack_error_code, refused.ack_error_message) == (
        Code.INVALID_RECORD_STATE,
        'Renewing acquisition locks is not enabled for the group.',
    )
    assert (await poll(world, 3, (0, 1, bytes([ACCEPT]), None))).ack_error_code == 0
