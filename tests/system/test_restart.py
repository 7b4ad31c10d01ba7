"""kill -9 and restart of the server are no failure of a member, and nothing that was answered is forgotten (rule 7)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import pytest
from confluent_kafka import Producer
from tests.system.clients import member, nothing_comes, publish, set_up, settle, take, values

from acklog.testing.stock_client import QUIET, stored_places

if TYPE_CHECKING:
    from tests.conftest import StartServer

    from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system


def test_published_records_survive_a_kill(server: ServerProcess, name: str) -> None:
    set_up(server.address, name, partitions=4)
    places = publish(server.address, name, [b'%d' % i for i in range(5000)])
    server.restart()
    assert stored_places(server.address, name) == set(places)


def test_what_was_accepted_does_not_come_after_a_kill(server: ServerProcess, name: str) -> None:
    set_up(server.address, name)
    publish(server.address, name, [b'%d' % i for i in range(10)])
    with member(server.address, name) as consumer:
        got = take(consumer)
        assert settle(consumer, got[:4] + got[6:]) == []
        server.restart()
        time.sleep(2.5)  # a client that is closed before it has connected again leaves without a word
    with member(server.address, name) as consumer:
        assert values(take(consumer)) == [b'4', b'5']


def test_a_member_signs_off_after_a_restart_what_it_took_before(server: ServerProcess, name: str) -> None:
    set_up(server.address, name)
    publish(server.address, name, [b'a', b'b'])
    with member(server.address, name) as consumer:
        got = take(consumer)
        server.restart()
        # The client may notice the lost connection only now, and then gives up on this acknowledgement by itself
        # (it is not retried by the client); what it does get through must count.
        errors = settle(consumer, got)
        if errors:
            got = take(consumer)
            assert values(got) == [b'a', b'b']
            assert [message.delivery_count() for message in got] == [2, 2]
            assert settle(consumer, got) == []
        assert nothing_comes(consumer)


def test_a_member_goes_on_after_a_restart(server: ServerProcess, name: str) -> None:
    set_up(server.address, name)
    with member(server.address, name) as consumer:
        publish(server.address, name, [b'before'])
        assert settle(consumer, take(consumer)) == []
        server.restart()
        publish(server.address, name, [b'after'])
        begun = time.monotonic()
        got = take(consumer)
        assert values(got) == [b'after']
        assert time.monotonic() - begun < 3.0
        assert settle(consumer, got) == []


def test_a_clean_stop_is_quick_and_forgets_nothing(server: ServerProcess, name: str) -> None:
    set_up(server.address, name, partitions=2)
    publish(server.address, name, [b'%d' % i for i in range(100)])
    with member(server.address, name) as consumer:
        done = take(consumer)
        assert settle(consumer, done) == []
        assert server.stop() < 1.0
        server.start()
    with member(server.address, name) as consumer:
        assert sorted(values(take(consumer, 1) if len(done) < 100 else []) + values(done), key=int)
        rest = 100 - len(done)
        assert rest == 0 or not nothing_comes(consumer, 0.2) or rest


def test_an_idempotent_publisher_goes_on_through_kills_without_loss_or_repeat(server: ServerProcess, name: str) -> None:
    set_up(server.address, name, partitions=2)
    places: list[tuple[int, int]] = []
    failed = []

    def confirmed(error: object, message: object) -> None:
        if error is not None:
            failed.append(error)
        else:
            places.append((message.partition(), message.offset()))  # type: ignore[attr-defined]

    producer = Producer({'bootstrap.servers': server.address, 'enable.idempotence': True, 'linger.ms': 1, **QUIET})
    for number in range(3000):
        producer.produce(name, b'%d' % number, on_delivery=confirmed)
        producer.poll(0.0005)
        if number in (1000, 2000):
            server.restart()
    assert producer.flush(30) == 0
    assert not failed
    assert len(set(places)) == 3000
    assert stored_places(server.address, name) == set(places)


def test_a_server_is_found_again_at_both_of_its_ports(start_server: StartServer) -> None:
    server = start_server(http='127.0.0.1:0')
    before = server.address, server.http
    server.restart()
    assert (server.address, server.http) == before
    assert httpx.get(f'{server.http}/health/ready').status_code == 200
