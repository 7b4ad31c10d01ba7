"""Stock producers and assigned consumers of three clients: what goes in comes out, whatever the compression or size."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from tests.system.clients import member, publish, set_up, settle, take, values

from acklog.testing.stock_client import QUIET, create_topic

if TYPE_CHECKING:
    from tests.conftest import Shared

pytestmark = pytest.mark.system


def read_all(address: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer({'bootstrap.servers': address, 'group.id': topic, 'enable.auto.commit': False, **QUIET})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        got: list[Any] = []
        for _ in range(40):
            got += consumer.consume(count - len(got), 0.5)
            if len(got) >= count:
                break
        assert [message.error() for message in got if message.error()] == []
        assert [message.offset() for message in got] == list(range(count))
        return [(message.key(), message.value()) for message in got]
    finally:
        consumer.close()


@pytest.mark.parametrize('compression', ['none', 'gzip', 'snappy', 'lz4', 'zstd'])
def test_compressed_batches_pass_through(shared: Shared, name: str, compression: str) -> None:
    set_up(shared.address, name)
    sent = [b'%d-' % i + b'x' * 200 for i in range(500)]
    publish(shared.address, name, sent, **{'compression.type': compression, 'linger.ms': 20})
    assert [value for _, value in read_all(shared.address, name, 500)] == sent
    with member(shared.address, name) as consumer:
        got = []
        while len(got) < 500:
            messages = take(consumer)
            assert messages
            got += values(messages)
            assert settle(consumer, messages) == []
    assert got == sent


@pytest.mark.parametrize('acks', ['0', '1', 'all'])
def test_acks(shared: Shared, name: str, acks: str) -> None:
    create_topic(shared.address, name, 1)
    publish(shared.address, name, [b'%d' % i for i in range(100)], acks=acks)
    assert len(read_all(shared.address, name, 100)) == 100


def test_keys_headers_and_timestamps_come_back_as_sent(shared: Shared, name: str) -> None:
    create_topic(shared.address, name, 1)
    producer = Producer({'bootstrap.servers': shared.address, **QUIET})
    producer.produce(name, b'v', b'k', headers=[('h', b'1'), ('h', None)], timestamp=1_700_000_000_123)
    producer.produce(name, None, b'tombstone')
    assert producer.flush(10) == 0
    consumer = Consumer({'bootstrap.servers': shared.address, 'group.id': name, **QUIET})
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    try:
        first, second = consumer.consume(2, 10)
    finally:
        consumer.close()
    assert (first.key(), first.value(), first.headers()) == (b'k', b'v', [('h', b'1'), ('h', None)])
    assert first.timestamp()[1] == 1_700_000_000_123
    assert (second.key(), second.value()) == (b'tombstone', None)


def test_a_large_record_comes_back_and_one_beyond_the_limit_is_refused(shared: Shared, name: str) -> None:
    create_topic(shared.address, name, 1, {'max.message.bytes': '2000000'})
    large = b'L' * 1_900_000
    publish(shared.address, name, [large], **{'message.max.bytes': 10_000_000})
    assert read_all(shared.address, name, 1) == [(None, large)]
    told: list[Any] = []
    producer = Producer({'bootstrap.servers': shared.address, 'message.max.bytes': 10_000_000, **QUIET})
    producer.produce(name, b'L' * 2_100_000, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(20) == 0
    assert [error.name() for error in told] == ['MSG_SIZE_TOO_LARGE']


def test_a_topic_that_does_not_exist_is_made_when_somebody_publishes(shared: Shared, name: str) -> None:
    publish(shared.address, name, [b'a'])
    client = Producer({'bootstrap.servers': shared.address, **QUIET})
    assert len(client.list_topics(name, 10).topics[name].partitions) == 4


def test_many_small_idempotent_batches_keep_their_order(shared: Shared, name: str) -> None:
    create_topic(shared.address, name, 1)
    sent = [b'%d' % i for i in range(2000)]
    options = {'enable.idempotence': True, 'linger.ms': 0, 'batch.num.messages': 3, 'max.in.flight': 5}
    places = publish(shared.address, name, sent, **options)
    assert [offset for _, offset in places] == list(range(2000))
    assert [value for _, value in read_all(shared.address, name, 2000)] == sent


def test_offsets_by_time_and_watermarks(shared: Shared, name: str) -> None:
    create_topic(shared.address, name, 1)
    producer = Producer({'bootstrap.servers': shared.address, 'linger.ms': 0, **QUIET})
    for second in range(10):
        producer.produce(name, b'%d' % second, timestamp=1_700_000_000_000 + second * 1000)
        producer.flush(10)
    consumer = Consumer({'bootstrap.servers': shared.address, 'group.id': name, **QUIET})
    try:
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), 10) == (0, 10)
        for time_ms, offset in ((0, 0), (1_700_000_004_500, 5), (1_700_000_009_000, 9)):
            [found] = consumer.offsets_for_times([TopicPartition(name, 0, time_ms)], 10)
            assert found.offset == offset
    finally:
        consumer.close()


# kafka-python itself uses what newer Pythons deprecate, at import too.
@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_kafka_python_publishes_and_reads_by_assignment(shared: Shared, name: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as PythonPartition

    set_up(shared.address, name)
    producer = KafkaProducer(bootstrap_servers=shared.address, acks='all', compression_type='gzip')
    try:
        sent = [b'%d' % i for i in range(300)]
        offsets = [future.get(20).offset for future in [producer.send(name, value) for value in sent]]
    finally:
        producer.close()
    assert offsets == list(range(300))
    consumer = KafkaConsumer(
        bootstrap_servers=shared.address, group_id=None, auto_offset_reset='earliest', consumer_timeout_ms=10_000
    )
    try:
        consumer.assign([PythonPartition(name, 0)])
        got = [next(consumer).value for _ in sent]
    finally:
        consumer.close()
    assert got == sent
    with member(shared.address, name) as share_consumer:
        assert values(take(share_consumer)) == sent


async def test_aiokafka_publishes_and_reads_by_assignment(shared: Shared, name: str) -> None:
    await asyncio.to_thread(set_up, shared.address, name)
    sent = [b'%d' % i for i in range(300)]
    producer = AIOKafkaProducer(bootstrap_servers=shared.address, enable_idempotence=True, compression_type='gzip')
    await producer.start()
    try:
        answers = await asyncio.gather(*[await producer.send(name, value) for value in sent])
    finally:
        await producer.stop()
    assert [answer.offset for answer in answers] == list(range(300))
    consumer = AIOKafkaConsumer(bootstrap_servers=shared.address, auto_offset_reset='earliest')
    await consumer.start()
    try:
        consumer.assign([AioPartition(name, 0)])
        got = [(await asyncio.wait_for(consumer.getone(), 10)).value for _ in sent]
    finally:
        await consumer.stop()
    assert got == sent


def test_a_wrong_group_config_is_refused_with_its_name(shared: Shared, name: str) -> None:
    with pytest.raises(KafkaException) as refused:
        set_up(shared.address, name, share_auto_offset_reset='whenever')
    assert refused.value.args[0].name() == 'INVALID_CONFIG'
    assert 'share.auto.offset.reset' in refused.value.args[0].str()
