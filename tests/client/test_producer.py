"""The producer against a real server."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import take

from acklog.client import Client, ClientClosed, NewRecord, NotFound, Published, Refused, Unsupported
from acklog.client.outbox import UNFIT
from acklog.errors import ConfigError
from acklog.testing.local import LocalServer

pytestmark = pytest.mark.system


@pytest.mark.parametrize('acks', ['all', '1'])
async def test_each_record_gets_its_offset(client: Client, topic: MakeTopic, acks: str) -> None:
    name = await topic()
    async with client.producer(acks=acks) as producer:  # type: ignore[typeddict-item]
        futures = [await producer.send(name, b'%d' % i, timestamp=1000 + i) for i in range(5000)]
    assert [future.result() for future in futures] == [Published(name, 0, i, 1000 + i) for i in range(5000)]


async def test_acks_0_knows_no_offsets(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    async with client.producer(acks='0') as producer:
        assert (await producer.publish(name, b'x')).offset == -1
    async with client.subscribe(name, [name]) as subscription:
        assert [record.value for record in await take(subscription, 1)] == [b'x']


@pytest.mark.parametrize('compression', ['none', 'gzip', 'snappy', 'lz4', 'zstd'])
async def test_what_was_published_is_what_is_taken(client: Client, topic: MakeTopic, compression: str) -> None:
    name = await topic()
    value = b'the same again and again ' * 400
    async with client.producer(compression=compression) as producer:
        await producer.send(name, value, key=b'\xff\0', headers=[('one', b'1'), ('one', None)], timestamp=1234)
        await producer.send(name, None)
    async with client.subscribe(name, [name]) as subscription:
        first, second = await take(subscription, 2)
        subscription.accept(first)
        subscription.accept(second)
    assert (first.key, first.value, first.timestamp, first.deliveries) == (b'\xff\0', value, 1234, 1)
    assert list(first.headers) == [('one', b'1'), ('one', None)]
    assert (second.key, second.value, list(second.headers)) == (None, None, [])


async def test_a_key_has_one_partition_and_keeps_its_order(client: Client, topic: MakeTopic) -> None:
    name = await topic(partitions=4)
    async with client.producer(batch_bytes=500) as producer:
        futures = [await producer.send(name, b'%d' % i, key=b'k%d' % (i % 7)) for i in range(700)]
    places = [future.result() for future in futures]
    for key in range(7):
        mine = places[key::7]
        assert len({place.partition for place in mine}) == 1
        assert [place.offset for place in mine] == sorted(place.offset for place in mine)
    assert len({place.partition for place in places}) > 1


async def test_sending_waits_while_the_buffer_is_full(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    async with client.producer(buffer_bytes=10_000) as producer:
        for _ in range(300):
            await producer.send(name, bytes(1000))
            assert producer._held <= 10_000
    assert (await client.admin.describe_topic(name)).partitions[0].end == 300


async def test_a_record_that_is_too_large_is_refused_and_others_are_not(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    async with client.producer(batch_bytes=1000) as producer:
        large = await producer.send(name, bytes(2_000_000))
        small = await producer.send(name, b'small')
        with pytest.raises(Refused, match='MESSAGE_TOO_LARGE'):
            await producer.flush()
        assert isinstance(large.exception(), Refused)
        assert small.result().offset == 0
        assert (await producer.publish(name, b'another')).offset == 1


NO_RECORDS: dict[str, dict[str, Any]] = {
    'a text for a value': {'value': 'text'},
    'a text for a key': {'value': b'v', 'key': 'text', 'partition': 0},
    'a text in a header': {'value': b'v', 'headers': [('name', 'text')]},
    'bytes for the name of a header': {'value': b'v', 'headers': [(b'name', b'')]},
    'a number in a header': {'value': b'v', 'headers': [('name', [1])]},
    'a name that UTF-8 cannot say': {'value': b'v', 'headers': [('\ud800', b'')]},
    'a timestamp with a fraction': {'value': b'v', 'timestamp': 1.5},
    'no timestamp at all': {'value': b'v', 'timestamp': float('nan')},
    'a timestamp past all times': {'value': b'v', 'timestamp': 1 << 63},
}


@pytest.mark.parametrize('wrong', NO_RECORDS.values(), ids=NO_RECORDS)
async def test_what_is_no_record_fails_alone(client: Client, topic: MakeTopic, wrong: dict[str, Any]) -> None:
    name = await topic()
    async with client.producer(linger=0.05) as producer:
        before = [await producer.send(name, b'%d' % i) for i in range(3)]
        bad = await producer.send(name, **wrong)
        behind = [await producer.send(name, b'%d' % i) for i in range(3, 6)]
        places = [await asyncio.wait_for(future, 10) for future in before + behind]
        assert [place.offset for place in places] == list(range(6))
        assert isinstance(bad.exception(), UNFIT)
        with pytest.raises(UNFIT):
            await producer.flush()
        with pytest.raises(UNFIT):
            await asyncio.wait_for(producer.publish(name, **wrong), 10)
        record = NewRecord(wrong.get('key'), wrong['value'], wrong.get('headers', ()), wrong.get('timestamp'))
        with pytest.raises(UNFIT):
            await asyncio.wait_for(producer.publish_all(name, [b'a', record, b'b'], partition=0), 10)
        assert (await asyncio.wait_for(producer.publish(name, b'6'), 10)).offset == 6


WRONG_TYPES: dict[str, dict[str, Any]] = {
    "the value of a record is bytes or None, not 'text'": {'value': 'text'},
    'the value of a record is bytes or None, not 5': {'value': 5},
    "the key of a record is bytes or None, not 'text'": {'key': 'text'},
    'the key of a record is bytes or None, not 5': {'key': 5},
    "a header is a name of text with bytes or None, not ('name', 'text')": {'headers': [('name', 'text')]},
    "a header is a name of text with bytes or None, not (b'name', b'')": {'headers': [(b'name', b'')]},
    "a header is a name of text with bytes or None, not ('name', 5)": {'headers': [('name', 5)]},
    "the headers of a record are pairs of a name and bytes, not {'name': b''}": {'headers': {'name': b''}},
    'the headers of a record are pairs of a name and bytes, not None': {'headers': None},
    'the timestamp of a record is ms since 1970, not 1.5': {'timestamp': 1.5},
}


@pytest.mark.parametrize(('words', 'wrong'), WRONG_TYPES.items(), ids=WRONG_TYPES)
async def test_what_has_the_wrong_type_is_named(
    client: Client, topic: MakeTopic, words: str, wrong: dict[str, Any]
) -> None:
    name = await topic()
    async with client.producer() as producer:
        with pytest.raises(TypeError, match=re.escape(words)):
            await producer.publish(name, **{'value': b'v', **wrong})
        fields = {'value': b'v', 'key': None, **wrong}
        with pytest.raises(TypeError, match=re.escape(words)):
            await producer.publish_all(name, [NewRecord(**fields)])
        for other in ('text', 5, None):
            with pytest.raises(TypeError, match=f'a record is a value of bytes or a NewRecord, not {other!r}'):
                await producer.publish_all(name, [b'v', other])  # type: ignore[list-item]


async def test_what_does_not_exist(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    async with client.producer(create_topics=False) as producer:
        with pytest.raises(NotFound):
            await producer.send('no-' + name, b'x')
        with pytest.raises(NotFound):
            await producer.send(name, b'x', partition=1)


async def test_a_topic_deleted_meanwhile_fails_its_records(client: Client, topic: MakeTopic, name: str) -> None:
    await topic()
    async with client.producer(create_topics=False, patience=2) as producer:
        await producer.publish(name, b'x')
        await client.admin.delete_topic(name)
        client._cluster.topics.clear()
        with pytest.raises(NotFound):
            await producer.publish(name, b'y')


async def test_a_closed_producer_takes_nothing(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    producer = client.producer(linger=60)
    future = await producer.send(name, b'x')
    await producer.close(flush=False)
    assert isinstance(future.exception(), ClientClosed)
    with pytest.raises(ClientClosed):
        await producer.send(name, b'x')


async def test_options_that_are_not_allowed(client: Client) -> None:
    with pytest.raises(ConfigError, match='acks='):
        client.producer(acks='2')  # type: ignore[typeddict-item]
    with pytest.raises(ConfigError, match='compression='):
        client.producer(compression='zip')
    with pytest.raises(ConfigError, match='idempotent'):
        client.producer(acks='1', idempotent=True)


async def test_linger_makes_one_batch_of_what_comes_meanwhile(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    async with client.producer(linger=0.2) as producer:
        results = await asyncio.gather(*(producer.publish(name, b'%d' % i) for i in range(10)))
    assert [result.offset for result in results] == list(range(10))


async def test_many_at_once_come_back_in_their_order(client: Client, topic: MakeTopic) -> None:
    name = await topic(partitions=3)
    records = [
        b'%d' % number if number % 3 else NewRecord(b'k%d' % (number % 7), b'%d' % number) for number in range(900)
    ]
    async with client.producer(batch_bytes=1000) as producer:
        places = await producer.publish_all(name, records)
    assert {place.topic for place in places} == {name}
    assert len({(place.partition, place.offset) for place in places}) == 900
    async with client.subscribe(name, [name]) as subscription:
        taken = {(r.partition, r.offset): r.value for r in await take(subscription, 900)}
    assert [taken[place.partition, place.offset] for place in places] == [b'%d' % number for number in range(900)]
    of_key = {place.partition for place, record in zip(places, records, strict=True) if record[0] == b'k3'}
    assert len(of_key) == 1


async def test_many_at_once_for_one_partition(client: Client, topic: MakeTopic) -> None:
    name = await topic(partitions=3)
    async with client.producer(batch_bytes=1000) as producer:
        places = await producer.publish_all(
            name, [NewRecord(b'%d' % i, b'v', (('h', b'x'),), 7) for i in range(200)], partition=1
        )
        assert [(place.partition, place.offset, place.timestamp) for place in places] == [(1, i, 7) for i in range(200)]
        assert await producer.publish_all(name, []) == []
        with pytest.raises(NotFound):
            await producer.publish_all(name, [b'x'], partition=9)


async def test_published_for_later(acklog_server: LocalServer) -> None:
    async with Client(acklog_server.address) as client:
        await client.admin.create_topic('reminders', partitions=1)
        await client.admin.alter_group_configs('g', {'share.auto.offset.reset': 'earliest'})
        later = datetime.now(UTC) + timedelta(hours=6)
        with pytest.raises(Unsupported, match=r'acklog\.deliver\.at\.enable=true'):
            await client.publish('reminders', b'x', deliver_at=later)
        await client.admin.alter_topic_configs('reminders', {'acklog.deliver.at.enable': 'true'})
        with pytest.raises(ValueError, match='time zone'):
            await client.publish('reminders', b'x', deliver_at=datetime(2030, 1, 1))  # noqa: DTZ001
        await client.publish('reminders', b'later', deliver_at=later)
        await client.publish('reminders', b'now')
        async with client.subscribe('g', ['reminders']) as subscription:
            (now,) = await take(subscription, 1)
            assert (now.offset, now.value) == (1, b'now')
            now.accept()
            await subscription.flush()
            acklog_server.move(hours=5.9)
            assert await subscription.poll(0.2) == []
            acklog_server.move(hours=0.2)
            assert [record.value for record in await take(subscription, 1)] == [b'later']
