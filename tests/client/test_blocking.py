"""The synchronous face: the same methods, waited for."""

from __future__ import annotations

import inspect
import threading
import time

import pytest

import acklog
from acklog.client import ClientClosed, NotFound
from acklog.client.admin import Admin
from acklog.client.blocking import BlockingAdmin
from acklog.testing.local import LocalServer


def prepared(server: LocalServer, *values: bytes) -> acklog.BlockingClient:
    client = acklog.connect_sync(server.address)
    client.admin.create_topic('orders', partitions=1)
    client.admin.alter_group_configs('billing', {'share.auto.offset.reset': 'earliest'})
    client.publish_all('orders', values)
    return client


def test_publish_and_take(acklog_server: LocalServer) -> None:
    with prepared(acklog_server) as client:
        assert client.publish('orders', b'a', key=b'k').offset == 0
        assert [place.offset for place in client.publish_all('orders', [b'b', b'c'])] == [1, 2]
        with client.producer(acks='1') as producer:
            producer.publish('orders', b'd')
        seen = []
        with client.subscribe('billing', ['orders']) as subscription:
            for record in subscription:
                seen.append((record.key, record.value))
                record.accept()
                if len(seen) == 4:
                    break
            subscription.flush()
            assert subscription.unsettled == 0
        assert seen == [(b'k', b'a'), (None, b'b'), (None, b'c'), (None, b'd')]
        assert sum(part.lag or 0 for part in client.admin.lag('billing')) == 0


def test_records_settle_themselves(acklog_server: LocalServer) -> None:
    with (
        prepared(acklog_server, b'a', b'b', b'c', b'd') as client,
        client.subscribe('billing', ['orders']) as subscription,
    ):
        a, b, c, d = subscription.poll()
        a.accept()
        b.release(after=3600, reason='not today')
        c.reject(reason='nobody can read it')
        d.renew()
        d.accept()
        assert [subscription.holds(record) for record in (a, b, c, d)] == [False] * 4
        subscription.flush()
        acklog_server.move(hours=1)
        (again,) = subscription.poll(2.0)
        assert (again.value, again.deliveries) == (b'b', 2)


def test_many_are_accepted_at_once(acklog_server: LocalServer) -> None:
    with prepared(acklog_server, *[b'x'] * 5000) as client:
        with client.subscribe('billing', ['orders'], max_records=5000) as subscription:
            taken = 0
            while taken < 5000:
                records = subscription.poll()
                subscription.accept(records)
                taken += len(records)
        assert sum(part.lag or 0 for part in client.admin.lag('billing')) == 0


def test_errors_come_out_at_the_call(acklog_server: LocalServer) -> None:
    client = prepared(acklog_server, b'a')
    with pytest.raises(NotFound):
        client.admin.describe_topic('none')
    with client.subscribe('billing', ['orders']) as subscription:
        (record,) = subscription.poll()
        with pytest.raises(ValueError, match='ago'):
            record.release(after=-1)
    with pytest.raises(ClientClosed):
        record.accept()
    client.close()
    client.close()
    with pytest.raises(ClientClosed):
        client.publish('orders', b'x')


def test_its_thread_ends_with_it(acklog_server: LocalServer) -> None:
    before = threading.active_count()
    with prepared(acklog_server) as client:
        client.publish('orders', b'x')
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_nothing_of_the_administration_is_missing() -> None:
    methods = {name for name, _ in inspect.getmembers(Admin, inspect.iscoroutinefunction) if not name.startswith('_')}
    assert {name for name in methods if not hasattr(BlockingAdmin, name)} == set()


def test_importing_acklog_is_cheap() -> None:
    import subprocess
    import sys

    program = 'import acklog, sys; print(sorted(m for m in sys.modules if m.startswith(("acklog", "asyncio", "kio"))))'
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "['acklog']"


def test_all_that_is_public_is_there() -> None:
    begun = time.monotonic()
    assert [name for name in acklog.__all__ if getattr(acklog, name, None) is None] == []
    assert time.monotonic() - begun < 2
    with pytest.raises(AttributeError, match='nothing_of_that_name'):
        _ = acklog.nothing_of_that_name
