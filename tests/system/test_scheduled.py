"""Records published for later by a stock producer, taken by a stock share consumer: never early, kill -9 or not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Producer
from tests.system.clients import member, nothing_comes, settle, take, values

from acklog.testing.stock_client import QUIET, configure_group, create_topic

if TYPE_CHECKING:
    from tests.conftest import OnTime, Shared

    from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system

HEADER = 'acklog-deliver-at'


def set_up(address: str, name: str) -> None:
    create_topic(address, name, 1, {'acklog.deliver.at.enable': 'true'})
    configure_group(address, name, {'share.auto.offset.reset': 'earliest'})


def publish(address: str, topic: str, *headers: bytes | None, **config: object) -> list[KafkaError | None]:
    """A record for each, its number as value; returns what became of them."""
    outcomes: list[KafkaError | None] = []
    producer = Producer({'bootstrap.servers': address, 'linger.ms': 50, **QUIET, **config})
    for number, header in enumerate(headers):
        with_header = {} if header is None else {'headers': [(HEADER, header)]}
        producer.produce(topic, b'%d' % number, on_delivery=lambda error, _: outcomes.append(error), **with_header)
    assert producer.flush(20) == 0
    return outcomes


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize('compression', ['none', 'gzip', 'zstd'])
def test_they_come_at_their_instants(shared: Shared, name: str, compression: str, on_time: OnTime) -> None:
    set_up(shared.address, name)
    base = now_ms() + 1500
    dues = [base + 500, base, None, base + 250]
    headers = [None if due is None else b'%d' % due for due in dues]
    assert publish(shared.address, name, *headers, **{'compression.type': compression}) == [None] * 4
    came: dict[int, int] = {}
    with member(shared.address, name) as consumer:
        while len(came) < 4:
            got = take(consumer)
            assert got
            came |= {int(message.value() or b''): now_ms() for message in got}
            assert settle(consumer, got) == []
    assert sorted(came) == [0, 1, 2, 3]
    with on_time():
        assert list(came) == [2, 1, 3, 0]
        for number, due in enumerate(dues):
            assert due is None or 0 <= came[number] - due < 1000


def test_a_header_that_names_no_instant_is_refused(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    [error] = publish(shared.address, name, b'tomorrow')
    assert error is not None
    assert error.code() == KafkaError.INVALID_RECORD


def test_never_early_after_a_kill(server: ServerProcess, name: str, on_time: OnTime) -> None:
    set_up(server.address, name)
    due = now_ms() + 5000
    assert publish(server.address, name, b'%d' % due, None, b'%d' % (due + 1)) == [None] * 3
    with member(server.address, name) as consumer:
        got = take(consumer)
        assert values(got) == [b'1']
        assert settle(consumer, got) == []
        server.restart()
        with on_time():
            assert now_ms() < due - 1000
            assert nothing_comes(consumer, (due - now_ms()) / 1000 - 0.3)
        got = take(consumer)
        with on_time():
            assert now_ms() >= due
        assert values(got)[0] == b'0'
