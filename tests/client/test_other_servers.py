"""What only acklog has, asked of another server: a clear error at the call. Runs where ACKLOG_TEST_ADDRESS names one,
Apache Kafka for example; all that it has too is tested by the other files."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import publish, take

import acklog
from acklog.client import Client, Unsupported

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif('ACKLOG_TEST_ADDRESS' not in os.environ, reason='no other server to ask'),
]


async def test_times_and_words(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, [name]) as subscription:
        (record,) = await take(subscription, 1)
        for settle in (
            lambda: record.release(after=1),
            lambda: record.release(at=2_000_000_000_000),
            lambda: record.release(reason='words'),
            lambda: record.reject(reason='words'),
        ):
            with pytest.raises(Unsupported, match='is not acklog'):
                settle()
        assert subscription.holds(record)
        record.accept()


async def test_a_grace(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    with pytest.raises(Unsupported, match='grace'):
        async with client.subscribe(name, [name], grace=5):
            pass


async def test_a_worker(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'good', b'poison', b'flaky')
    seen: list[tuple[bytes | None, int]] = []

    @acklog.worker(name, [name])
    async def work(record: acklog.Received) -> None:
        seen.append((record.value, record.deliveries))
        if record.value == b'poison':
            raise acklog.Reject('words that go nowhere')
        if record.value == b'flaky' and record.deliveries == 1:
            raise ConnectionError
        if len(seen) == 4:
            work.stop()

    await asyncio.wait_for(work.serve(client), 20)
    assert sorted(seen) == [(b'flaky', 1), (b'flaky', 2), (b'good', 1), (b'poison', 1)]
    assert sum(part.lag or 0 for part in await client.admin.lag(name)) == 0
    work.backoff = (1.0, 2.0)
    with pytest.raises(Unsupported, match='backoff'):
        await work.serve(client)


async def test_the_synchronous_face(client: Client, topic: MakeTopic, shared: object) -> None:
    name = await topic()
    address = os.environ['ACKLOG_TEST_ADDRESS']

    def work() -> list[bytes | None]:
        with acklog.connect_sync(address) as client:
            client.publish_all(name, [b'a', b'b'])
            seen = []
            with client.subscribe(name, [name]) as subscription:
                for record in subscription:
                    seen.append(record.value)
                    record.accept()
                    if len(seen) == 2:
                        return seen
        return []

    assert sorted(await asyncio.to_thread(work)) == [b'a', b'b']  # type: ignore[type-var]
