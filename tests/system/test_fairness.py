"""Members of a group get about the same, and one group's backlog is no burden on another group."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from tests.system.clients import member, nothing_comes, publish, set_up, settle, take

from acklog.testing.stock_client import QUIET

if TYPE_CHECKING:
    from confluent_kafka import ShareConsumer
    from tests.conftest import Shared

pytestmark = pytest.mark.system

MEMBERS, SECONDS, BATCH = 10, 4.0, 20
BACKLOG, PROBES = 300_000, 400


def test_of_ten_equal_members_none_gets_less_than_half_the_mean(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    counts = [0] * MEMBERS
    joined = threading.Barrier(MEMBERS + 1, timeout=60)
    stop = threading.Event()

    def work(index: int) -> None:
        with member(shared.address, name, max_poll_records=BATCH) as consumer:
            nothing_comes(consumer, 0.5)
            joined.wait()
            while not stop.is_set():
                messages = consumer.poll(0.2)
                counts[index] += len(messages)
                settle(consumer, messages)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(MEMBERS)]
    for thread in threads:
        thread.start()
    joined.wait()
    producer = Producer({'bootstrap.servers': shared.address, 'batch.num.messages': BATCH, 'linger.ms': 2, **QUIET})
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for _ in range(BATCH):
            producer.produce(name, b'x' * 50)
        producer.poll(0.005)
    producer.flush(10)
    stop.set()
    for thread in threads:
        thread.join(30)
    mean = sum(counts) / MEMBERS
    assert mean > 2 * BATCH
    assert min(counts) >= mean / 2, counts


def test_a_backlog_of_one_group_does_not_slow_another(shared: Shared, name: str) -> None:
    """One group has a large backlog and takes a little of it all the time; the other gets what comes at once."""
    set_up(shared.address, name)
    set_up(shared.address, name + '-busy')
    with member(shared.address, name) as consumer:
        nothing_comes(consumer, 0.3)
        alone = slowest_percent(shared.address, name, consumer)
        publish(shared.address, name + '-busy', [b'x' * 20] * BACKLOG, **{'batch.num.messages': 100})
        stop = threading.Event()

        def nibble() -> None:
            with member(shared.address, name + '-busy', max_poll_records=50) as other:
                while not stop.wait(0.01):
                    settle(other, other.poll(0.2))

        thread = threading.Thread(target=nibble)
        thread.start()
        try:
            beside = slowest_percent(shared.address, name, consumer)
        finally:
            stop.set()
            thread.join(30)
    # A few milliseconds are what this one process, in which all clients run, makes of it.
    assert beside <= max(2 * alone, 0.03), (alone, beside)


def slowest_percent(address: str, name: str, consumer: ShareConsumer) -> float:
    """The 99th percentile of the seconds from a publish call to its delivery."""
    producer = Producer({'bootstrap.servers': address, 'linger.ms': 0, **QUIET})
    times = []
    for _ in range(PROBES):
        begun = time.perf_counter()
        producer.produce(name, b'x')
        producer.poll(0)
        messages = take(consumer)
        times.append(time.perf_counter() - begun)
        assert settle(consumer, messages) == []
    return sorted(times)[PROBES * 99 // 100]
