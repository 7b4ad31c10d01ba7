"""The client: one object for a cluster, from which producers, subscriptions and administration are made. Producers and
subscriptions are loaded when there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from acklog.client.addresses import parse_addresses
from acklog.client.admin import Admin
from acklog.client.arguments import check_seconds, check_text, check_whole
from acklog.client.cluster import Cluster

if TYPE_CHECKING:
    from acklog.client.options import ProducerOptions, SubscriptionOptions
    from acklog.client.outbox import Published
    from acklog.client.producer import Producer
    from acklog.client.subscription import Subscription
    from acklog.client.times import Instant
    from acklog.wire.record_batch import NewRecord

LONGEST_ID = (1 << 15) - 1  # bytes of a client's id in a request's head


class Client:
    """An asynchronous client of acklog, or of Apache Kafka from 4.2 on.

        async with Client('localhost:9092') as client:
            await client.publish('orders', b'first')
            async with client.subscribe('billing', ['orders']) as subscription:
                async for record in subscription:
                    record.accept()

    `bootstrap`: `host:port` of one or more servers, with commas; the port is 9092 where none is given. `timeout`:
    seconds to wait for an answer, above 0. `client_id`: what the server's logs call this client, 32,767 bytes at most.
    Raises ConfigError for an address that is none, ValueError and TypeError for the others. Nothing is connected before
    it is needed. A client belongs to one event loop.
    """

    def __init__(self, bootstrap: str = 'localhost:9092', *, timeout: float = 10.0, client_id: str = 'acklog') -> None:
        check_text('bootstrap', bootstrap)
        check_seconds('timeout', timeout, zero=False)
        check_text('client_id', client_id)
        check_whole('the length of client_id', len(client_id.encode()), 0, LONGEST_ID)
        self._cluster = Cluster(parse_addresses(bootstrap), client_id=client_id, timeout=timeout)
        self.admin = Admin(self._cluster)
        self._producer: Producer | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def publish(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        partition: int | None = None,
        deliver_at: Instant | None = None,
    ) -> Published:
        """Publish a record with acks='all' and wait until the server has it on disk. As `Producer.publish`; those that
        are published at the same time go together."""
        return await self._own_producer().publish(
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            deliver_at=deliver_at,
        )

    async def publish_all(
        self, topic: str, records: Iterable[bytes | NewRecord], *, partition: int | None = None
    ) -> list[Published]:
        """Publish many records with acks='all' and wait until the server has all of them on disk. As
        `Producer.publish_all`."""
        return await self._own_producer().publish_all(topic, records, partition=partition)

    def _own_producer(self) -> Producer:
        self._cluster.check_open()
        if self._producer is None:
            self._producer = self.producer(linger=0)
        return self._producer

    def producer(self, **options: Unpack[ProducerOptions]) -> Producer:
        """A producer, with the options that `Producer` explains. Close it (`async with`) before the client."""
        from acklog.client.producer import Producer

        return Producer(self._cluster, **options)

    def subscribe(
        self, group: str, topics: Sequence[str] | str, **options: Unpack[SubscriptionOptions]
    ) -> Subscription:
        """A member of the share group `group` for these topics, or this one, with the options that `Subscription`
        explains. It joins with `async with`, or `start`; close it before the client."""
        from acklog.client.subscription import Subscription

        names = [topics] if isinstance(topics, str) else list(topics)  # not a topic for each of its letters
        return Subscription(self._cluster, group, names, **options)

    async def topic_exists(self, name: str) -> bool:
        """Whether there is a topic of that name. Creates none."""
        return name in await self._cluster.refresh([name])

    async def close(self) -> None:
        """Close all connections. Producers and subscriptions that are still open fail with ClientClosed."""
        try:
            if self._producer is not None:
                await self._producer.close(flush=False)  # whoever published has waited for it, or given up
        finally:
            await self._cluster.close()
