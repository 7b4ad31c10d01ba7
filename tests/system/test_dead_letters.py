"""Dead letters in a topic, with stock clients against a real server process, that is killed in between."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from tests.system.clients import REJECT, RELEASE, member, publish, set_up, settle, take

from acklog.testing.stock_client import QUIET, create_topic

if TYPE_CHECKING:
    from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system

DLQ = 'dlq.orders'


def read(address: str, topic: str, count: int) -> list[Message]:
    """The first records of a topic's only partition."""
    consumer = Consumer({'bootstrap.servers': address, 'group.id': 'reader', **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    got: list[Message] = []
    deadline = time.monotonic() + 20
    while len(got) < count and time.monotonic() < deadline:
        got += [message for message in consumer.consume(100, 0.2) if message.error() is None]
    consumer.close()
    return got


def headers(message: Message) -> dict[str, str]:
    return {name: str(value, 'utf-8') for name, value in message.headers() or [] if isinstance(value, bytes)}


def test_rejected_and_failed_records_are_in_the_dead_letter_topic(server: ServerProcess) -> None:
    create_topic(server.address, DLQ, 1, {'errors.deadletterqueue.group.enable': 'true'})
    dead_letters = {
        'errors_deadletterqueue_topic_name': DLQ,
        'errors_deadletterqueue_copy_record_enable': 'true',
        'share_delivery_count_limit': 1,
    }
    set_up(server.address, 'orders', **dead_letters)
    publish(server.address, 'orders', [b'a'])
    with member(server.address, 'orders') as consumer:
        assert settle(consumer, take(consumer), REJECT) == []
        publish(server.address, 'orders', [b'b'])
        assert settle(consumer, take(consumer), RELEASE) == []
    found = read(server.address, DLQ, 2)
    assert [message.value() for message in found] == [b'a', b'b']
    first, second = map(headers, found)
    assert first == {
        '__dlq.errors.topic': 'orders',
        '__dlq.errors.partition': '0',
        '__dlq.errors.offset': '0',
        '__dlq.errors.group': 'orders',
        '__dlq.errors.delivery.count': '1',
        '__dlq.errors.message': 'Offset rejected by client.',
    }
    assert second['__dlq.errors.message'] == 'Offset delivery count exceeded the threshold.'


def test_a_dead_letter_that_could_not_be_written_is_written_after_a_crash(server: ServerProcess) -> None:
    set_up(server.address, 'orders', errors_deadletterqueue_topic_name=DLQ)
    publish(server.address, 'orders', [b'a'])
    with member(server.address, 'orders') as consumer:
        assert settle(consumer, take(consumer), REJECT) == []
    server.restart()
    create_topic(server.address, DLQ, 1, {'errors.deadletterqueue.group.enable': 'true'})
    [letter] = read(server.address, DLQ, 1)
    assert (letter.value(), headers(letter)['__dlq.errors.offset']) == (None, '0')
