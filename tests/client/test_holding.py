"""Records that are held: their own methods, locks that are renewed, fetching ahead, any number in any order."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import publish, take, told
from tests.conftest import Shared

from acklog.client import Client, Received, Unsupported

pytestmark = pytest.mark.system


async def lag(client: Client, group: str) -> int:
    return sum(part.lag or 0 for part in await client.admin.lag(group))


async def test_a_record_is_settled_by_itself(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b', b'c')
    async with client.subscribe(name, [name]) as subscription:
        a, b, c = await take(subscription, 3)
        a.accept()
        b.release()
        c.reject()
        assert [subscription.holds(record) for record in (a, b, c)] == [False] * 3
        (again,) = await take(subscription, 1)
        assert told([again]) == [(1, b'b', 2)]
        await again.renew()
        again.accept()
        await subscription.flush()
    assert await lag(client, name) == 0


def test_a_record_from_nowhere_cannot_be_settled() -> None:
    with pytest.raises(ValueError, match='no subscription'):
        Received('t', 0, 0, 0, None, b'', (), 1).accept()


async def test_locks_are_renewed_while_records_are_held(client: Client, topic: MakeTopic) -> None:
    name = await topic(share_record_lock_duration_ms=1000)
    await publish(client, name, *(b'%d' % number for number in range(20)))
    async with client.subscribe(name, [name], strict=True, max_records=7) as subscription:
        held = [*await take(subscription, 7), *await take(subscription, 7), *await take(subscription, 6)]
        for record in held[::3]:
            record.accept()
        await asyncio.sleep(2.5)
        async with client.subscribe(name, [name]) as other:
            assert await other.poll(0.5) == []
        for record in held:
            if subscription.holds(record):
                record.accept()
        await subscription.flush()
    assert await lag(client, name) == 0


async def test_the_body_of_a_loop_may_take_longer_than_a_lock(client: Client, topic: MakeTopic) -> None:
    name = await topic(share_record_lock_duration_ms=1000)
    await publish(client, name, b'a', b'b')
    seen: list[tuple[int, bytes | None, int]] = []
    async with client.subscribe(name, [name]) as subscription:
        async for record in subscription:
            await asyncio.sleep(1.5)
            seen += told([record])
            record.accept()
            if len(seen) == 2:
                break
    assert seen == [(0, b'a', 1), (1, b'b', 1)]


async def test_what_a_loop_left_behind_is_still_there(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b', b'c')
    async with client.subscribe(name, [name]) as subscription:
        async for record in subscription:
            record.accept()
            break
        assert told(await take(subscription, 2)) == [(1, b'b', 1), (2, b'c', 1)]


async def test_any_number_is_held_while_more_are_taken(client: Client, topic: MakeTopic) -> None:
    name = await topic(partitions=3)
    async with client.producer() as producer:
        for number in range(6000):
            await producer.send(name, b'%d' % number, partition=number % 3)
    held: list[Received] = []
    async with client.subscribe(name, [name]) as subscription:
        done = 0
        async for record in subscription:
            done += 1
            if done % 10:
                record.accept()
            else:
                held.append(record)
            if done == 6000:
                break
        await subscription.flush()
        assert subscription.unsettled == 600
        for record in reversed(held):
            record.accept()
        await subscription.flush()
    assert await lag(client, name) == 0


async def test_released_after_a_time_with_words(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b')
    async with client.subscribe(name, [name]) as subscription:
        a, b = await take(subscription, 2)
        begun = time.monotonic()
        try:
            a.release(after=timedelta(seconds=1), reason='the bank is closed')
        except Unsupported as unsupported:
            assert 'not acklog' in str(unsupported)
            for call in (lambda: b.release(after=1), lambda: b.reject(reason='no')):
                with pytest.raises(Unsupported):
                    call()
            return
        b.reject(reason='nobody can read it')
        assert told(await take(subscription, 1)) == [(0, b'a', 2)]
        assert 1.0 <= time.monotonic() - begun < 1.6


async def test_times_that_are_none(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, [name]) as subscription:
        (record,) = await take(subscription, 1)
        with pytest.raises(ValueError, match='1 s ago'):
            record.release(after=-1)
        with pytest.raises(ValueError, match='not both'):
            record.release(after=1, at=datetime.now(UTC))
        assert subscription.holds(record)


@pytest.mark.parametrize('words', ['x' * 5000, '\ud800 of a file name', '\0', 'line\nline', '\U0001f600' * 999])
async def test_any_text_may_be_a_reason(shared: Shared, client: Client, topic: MakeTopic, words: str) -> None:
    name = await topic()
    await publish(client, name, b'a', b'b')
    async with client.subscribe(name, [name]) as subscription:
        a, b = await take(subscription, 2)
        if not subscription.knows_times:
            pytest.skip("only acklog keeps the subscriber's words")
        a.reject(reason=words)
        b.release(after=3600, reason=words)
        await subscription.flush()
    kept = words[:1000].replace('\ud800', '?')
    async with httpx.AsyncClient(base_url=shared.http) as api:
        for offset in (0, 1):
            record = (await api.get(f'/v1/topics/{name}/partitions/0/records/{offset}')).json()
            assert [group['words'] for group in record['groups']] == [kept]
