"""The share consumer against a real server."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import publish, take, told
from tests.conftest import OnTime

from acklog.client import (
    AcknowledgementsRefused,
    Client,
    ClientClosed,
    Refused,
    TooManyUnsettled,
    Unsupported,
)
from acklog.wire.error_code import ErrorCode

pytestmark = pytest.mark.system


async def lag(client: Client, group: str) -> int:
    return sum(part.lag or 0 for part in await client.admin.lag(group))


async def test_accepted_records_do_not_come_again(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b', b'c')
    async with client.subscribe(name, [name]) as subscription:
        for record in await take(subscription, 3):
            subscription.accept(record)
    assert await lag(client, name) == 0
    async with client.subscribe(name, [name]) as subscription:
        assert await subscription.poll(0.3) == []


async def test_a_topic_need_not_be_in_a_list(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, name) as subscription:
        assert [record.value for record in await take(subscription, 1)] == [b'a']


async def test_no_topic_and_no_records_are_refused_at_once(client: Client) -> None:
    with pytest.raises(ValueError, match='needs a topic'):
        client.subscribe('g', ())
    with pytest.raises(ValueError, match='max_records has to be 1 or more, not 0'):
        client.subscribe('g', 'orders', max_records=0)


async def test_what_was_not_decided_goes_to_another_one_at_once(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b')
    async with client.subscribe(name, [name]) as subscription:
        first, _ = await take(subscription, 2)
        subscription.accept(first)
    async with client.subscribe(name, [name]) as subscription:
        (again,) = await take(subscription, 1)
        assert (again.offset, again.value, again.deliveries) == (1, b'b', 2)


async def test_release_reject_accept(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b', b'c')
    async with client.subscribe(name, [name]) as subscription:
        a, b, c = await take(subscription, 3)
        subscription.accept(a)
        subscription.release(b)
        subscription.reject(c)
        assert told(await take(subscription, 1)) == [(1, b'b', 2)]
        assert await subscription.poll(0.3) == []
        assert subscription.unsettled == 1


async def test_the_next_records_may_be_taken_while_earlier_ones_are_unsettled(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, *(b'%d' % i for i in range(6)))
    async with client.subscribe(name, [name], strict=True, max_records=2) as subscription:
        taken = [await take(subscription, 2) for _ in range(3)]
        assert [[r.offset for r in records] for records in taken] == [[0, 1], [2, 3], [4, 5]]
        assert subscription.unsettled == 6
        subscription.accept(taken[2][0])
        subscription.accept(taken[0][1])
        await subscription.flush()
    assert await lag(client, name) == 4


async def test_decisions_reach_the_server_though_nobody_polls(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, [name], tell_after=0.05) as subscription:
        (record,) = await take(subscription, 1)
        subscription.accept(record)
        deadline = time.monotonic() + 10
        while await lag(client, name):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_two_members_share_the_records(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, *(b'%d' % i for i in range(40)))
    async with (
        client.subscribe(name, [name], strict=True, max_records=5) as one,
        client.subscribe(name, [name], strict=True, max_records=5) as two,
    ):
        mine = await take(one, 5)
        others = await take(two, 5)
        assert not {r.offset for r in mine} & {r.offset for r in others}


async def test_a_lock_that_has_run_out(client: Client, topic: MakeTopic) -> None:
    name = await topic(share_record_lock_duration_ms=1000)
    await publish(client, name, b'a')
    async with client.subscribe(name, [name], renew=False) as subscription:
        (record,) = await take(subscription, 1)
        assert subscription.lock_seconds == 1.0
        (again,) = await take(subscription, 1)
        assert (again.offset, again.deliveries) == (0, 2)
        subscription.accept(again)
        await subscription.flush()
        subscription.accept(record)
        with pytest.raises(AcknowledgementsRefused) as caught:
            await subscription.flush()
        failure = caught.value.failures[0]
        assert (failure.topic, failure.first, failure.last, failure.code) == (
            name,
            0,
            0,
            ErrorCode.INVALID_RECORD_STATE,
        )


async def test_a_lock_that_has_run_out_takes_no_others_along(client: Client, topic: MakeTopic) -> None:
    name = await topic(share_record_lock_duration_ms=1000)
    await publish(client, name, *(b'%d' % number for number in range(4)))
    async with client.subscribe(name, [name], renew=False, strict=True, max_records=2, tell_after=60) as subscription:
        early = await take(subscription, 2)
        await asyncio.sleep(0.6)
        late = await take(subscription, 2)
        await asyncio.sleep(0.6)
        for record in (*early, *late):
            subscription.accept(record)
        with pytest.raises(AcknowledgementsRefused) as caught:
            await subscription.flush()
        assert [(failure.first, failure.last) for failure in caught.value.failures] == [(0, 1)]
        assert [(record.offset, record.deliveries) for record in await take(subscription, 2)] == [(0, 2), (1, 2)]


async def test_a_renewed_lock_does_not_run_out(client: Client, topic: MakeTopic) -> None:
    name = await topic(share_record_lock_duration_ms=1000)
    await publish(client, name, b'a')
    async with client.subscribe(name, [name], renew=False) as subscription:
        (record,) = await take(subscription, 1)
        for _ in range(4):
            await asyncio.sleep(0.5)
            await subscription.renew(record)
        assert await subscription.poll(0.1) == []
        subscription.accept(record)
        await subscription.flush()


async def test_renewing_what_somebody_else_holds(client: Client, topic: MakeTopic) -> None:
    name = await topic(share_record_lock_duration_ms=1000)
    await publish(client, name, b'a')
    async with client.subscribe(name, [name], renew=False) as one, client.subscribe(name, [name], renew=False) as two:
        (record,) = await take(one, 1)
        await take(two, 1)
        with pytest.raises(Refused, match='INVALID_RECORD_STATE'):
            await one.renew(record)


async def test_released_until_a_time(client: Client, topic: MakeTopic, on_time: OnTime) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b')
    async with client.subscribe(name, [name]) as subscription:
        a, b = await take(subscription, 2)
        begun = time.monotonic()
        try:
            await subscription.release_after(a, 1.0)
        except Unsupported:
            pytest.skip('only acklog releases until a time')
        await subscription.release_at(b, datetime.now(UTC) + timedelta(seconds=2))
        assert told(await take(subscription, 1)) == [(0, b'a', 2)]
        assert 1.0 <= time.monotonic() - begun < 1.6
        assert told(await take(subscription, 1)) == [(1, b'b', 2)]
        with on_time():
            assert 2.0 <= time.monotonic() - begun < 2.6


async def test_a_time_of_release_needs_a_zone(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, [name]) as subscription:
        (record,) = await take(subscription, 1)
        with pytest.raises(ValueError, match='time zone'):
            await subscription.release_at(record, datetime(2030, 1, 1))  # noqa: DTZ001


async def test_no_more_than_max_unsettled_are_held(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, *(b'%d' % i for i in range(10)))
    async with client.subscribe(name, [name], strict=True, max_unsettled=4) as subscription:
        records = await take(subscription, 4)
        with pytest.raises(TooManyUnsettled, match='4 records'):
            await subscription.poll()
        subscription.accept(records[0])
        assert [r.offset for r in await take(subscription, 1)] == [4]


async def test_a_topic_that_is_created_later(client: Client, name: str) -> None:
    await client.admin.alter_group_configs(name, {'share.auto.offset.reset': 'earliest'})
    async with client.subscribe(name, [name]) as subscription:
        assert await subscription.poll(0.2) == []
        await client.admin.create_topic(name, partitions=1)
        await publish(client, name, b'a')
        assert told(await take(subscription, 1)) == [(0, b'a', 1)]


async def test_a_closed_subscription_takes_nothing(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, [name]) as subscription:
        (record,) = await take(subscription, 1)
    with pytest.raises(ClientClosed):
        await subscription.poll()
    with pytest.raises(ClientClosed):
        subscription.accept(record)


async def test_closing_while_a_poll_waits_is_quick(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    subscription = client.subscribe(name, [name])
    await subscription.start()
    polling = asyncio.create_task(subscription.poll(30.0))
    await asyncio.sleep(1.0)
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    begun = time.monotonic()
    await subscription.close()
    assert time.monotonic() - begun < 5.0


async def test_records_of_many_batches_in_all_partitions(client: Client, topic: MakeTopic) -> None:
    name = await topic(partitions=5)
    async with client.producer(batch_bytes=2000) as producer:
        for i in range(3000):
            await producer.send(name, b'%d' % i, partition=i % 5)
    seen: list[int] = []
    async with client.subscribe(name, [name]) as subscription:
        async for record in subscription:
            subscription.accept(record)
            seen.append(int(record.value or b''))
            if len(seen) == 3000:
                break
    assert sorted(seen) == list(range(3000))
    assert await lag(client, name) == 0
