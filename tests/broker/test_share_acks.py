"""Acknowledgements for places where nothing was delivered: the codes of Apache Kafka 4.4."""

from __future__ import annotations

import pytest
from tests.broker.groups_world import World

from acklog.wire.error_code import ErrorCode


@pytest.mark.parametrize(
    'topic, index, code',
    [
        ('known', 1, ErrorCode.INVALID_RECORD_STATE),
        ('known', 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ('known', -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ('unknown', 0, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
async def test_where_nothing_was_delivered(topic: str, index: int, code: ErrorCode) -> None:
    world = await World.open()
    topics = {'known': await world.topic('t', 2), 'unknown': bytes(15) + b'x'}
    assert await world.take('a', 0, (topics['known'], 0)) == []
    assert await world.sign_off('a', 1, topics[topic], 0, index=index) == [0, code]
    await World.close_all()
