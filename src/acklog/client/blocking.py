"""The client for synchronous code: the asynchronous one, in a thread of its own.

Strategy: `Blocking` methods are the asynchronous ones, waited for (portal.py). Only what would be slow so is written
here: decisions on single records are gathered and handed over together, so that they cost no change of threads each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Generator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Unpack

from acklog.client.admin import Admin
from acklog.client.client import Client
from acklog.client.errors import ClientClosed
from acklog.client.options import ProducerOptions, SubscriptionOptions
from acklog.client.portal import Blocking, Face, Portal
from acklog.client.producer import Producer
from acklog.client.received import Received, check_record
from acklog.client.subscription import Subscription
from acklog.client.times import Delay, Instant


class BlockingAdmin(Face[Admin]):
    """`Admin`, each call waited for."""

    create_topic = Blocking(Admin.create_topic)
    list_topics = Blocking(Admin.list_topics)
    describe_topic = Blocking(Admin.describe_topic)
    delete_topic = Blocking(Admin.delete_topic)
    offsets = Blocking(Admin.offsets)
    topic_configs = Blocking(Admin.topic_configs)
    alter_topic_configs = Blocking(Admin.alter_topic_configs)
    list_groups = Blocking(Admin.list_groups)
    describe_group = Blocking(Admin.describe_group)
    group_exists = Blocking(Admin.group_exists)
    delete_group = Blocking(Admin.delete_group)
    group_configs = Blocking(Admin.group_configs)
    alter_group_configs = Blocking(Admin.alter_group_configs)
    lag = Blocking(Admin.lag)


class BlockingProducer(Face[Producer]):
    """`Producer`, each call waited for. Of many records, `publish_all` is much faster than one by one."""

    publish = Blocking(Producer.publish)
    publish_all = Blocking(Producer.publish_all)
    flush = Blocking(Producer.flush)
    close = Blocking(Producer.close)

    def __enter__(self) -> BlockingProducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(flush=kind is None)


class BlockingSubscription(Face[Subscription]):
    """`Subscription`, each call waited for. Use it from one thread at a time; records may be settled by any."""

    def __init__(self, inner: Subscription, portal: Portal) -> None:
        super().__init__(inner, portal)
        inner.holder = self
        self._accepted: deque[Received] = deque()
        self._ready: deque[Received] = deque()

    start = Blocking(Subscription.start)
    renew_all = Blocking(Subscription.renew)
    flush = Blocking(Subscription.flush)
    close = Blocking(Subscription.close)

    def __enter__(self) -> BlockingSubscription:
        self.portal.run(self.inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.portal.run(self.inner.__aexit__(kind, error, trace))

    def poll(self, wait: float = 0.5, *, max_records: int | None = None) -> list[Received]:
        """As `Subscription.poll`."""
        if self._ready:
            records = list(self._ready)
            self._ready.clear()
            return records
        return self.portal.run(self.inner.poll(wait, max_records=max_records))

    def __iter__(self) -> Iterator[Received]:
        """Records one after the other, without end."""
        if self.inner.ahead is None:
            self.inner.ahead = True
        ready = self._ready
        while True:
            while ready:
                yield ready.popleft()
            ready.extend(self.poll())

    def accept(self, records: Received | Iterable[Received]) -> None:
        """As `Subscription.accept`."""
        if self.inner.closed:
            raise ClientClosed('the subscription was closed')
        chosen = [records] if isinstance(records, Received) else list(records)
        for record in chosen:
            check_record(record)
        idle = not self._accepted
        self._accepted.extend(chosen)
        if idle and self._accepted:
            self.portal.soon(self._hand_over)

    def _hand_over(self) -> None:
        accepted = []
        while self._accepted:
            accepted.append(self._accepted.popleft())
        if not self.inner.closed:
            self.inner.accept(accepted)

    def release(
        self, records: Received, *, after: Delay | None = None, at: Instant | None = None, reason: str = ''
    ) -> None:
        """As `Subscription.release`."""
        self.portal.call(lambda: self.inner.release(records, after=after, at=at, reason=reason))

    def reject(self, records: Received, *, reason: str = '') -> None:
        """As `Subscription.reject`."""
        self.portal.call(lambda: self.inner.reject(records, reason=reason))

    def renew(self, records: Received | Iterable[Received]) -> Awaitable[None]:
        """As `Subscription.renew`; done when it returns."""
        self.renew_all(records)
        return _DONE

    def holds(self, record: Received) -> bool:
        """As `Subscription.holds`."""
        return self.portal.call(lambda: self.inner.holds(record))

    @property
    def unsettled(self) -> int:
        """As `Subscription.unsettled`."""
        return self.portal.call(lambda: self.inner.unsettled)

    @property
    def member_id(self) -> str:
        """As `Subscription.member_id`."""
        return self.inner.member_id

    @property
    def lock_seconds(self) -> float:
        """As `Subscription.lock_seconds`."""
        return self.inner.lock_seconds


class BlockingClient(Face[Client]):
    """`Client` for synchronous code; made by `acklog.connect_sync`, closed by `with` or `close`.

    with acklog.connect_sync('localhost:9092') as client:
        client.publish('orders', b'first')
        with client.subscribe('billing', ['orders']) as subscription:
            for record in subscription:
                record.accept()
    """

    def __init__(self, bootstrap: str = 'localhost:9092', *, timeout: float = 10.0, client_id: str = 'acklog') -> None:
        client = Client(bootstrap, timeout=timeout, client_id=client_id)
        super().__init__(client, Portal())
        self.admin = BlockingAdmin(client.admin, self.portal)

    publish = Blocking(Client.publish)
    publish_all = Blocking(Client.publish_all)
    topic_exists = Blocking(Client.topic_exists)

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def producer(self, **options: Unpack[ProducerOptions]) -> BlockingProducer:
        """As `Client.producer`."""
        return BlockingProducer(self.portal.call(lambda: self.inner.producer(**options)), self.portal)

    def subscribe(
        self, group: str, topics: Sequence[str] | str, **options: Unpack[SubscriptionOptions]
    ) -> BlockingSubscription:
        """As `Client.subscribe`."""
        subscription = self.portal.call(lambda: self.inner.subscribe(group, topics, **options))
        return BlockingSubscription(subscription, self.portal)

    def close(self) -> None:
        """As `Client.close`; its thread ends. Nothing happens when it was closed."""
        if not self.portal.stopped:
            try:
                self.portal.run(self.inner.close())
            finally:
                self.portal.stop()


class _Done:
    """What has been waited for: `await` returns at once."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_DONE = _Done()
