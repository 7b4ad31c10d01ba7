"""The stock share consumer (confluent-kafka) against a real server process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.system.clients import (
    ACCEPT,
    REJECT,
    RELEASE,
    member,
    nothing_comes,
    publish,
    set_up,
    settle,
    take,
    values,
)

if TYPE_CHECKING:
    from tests.conftest import Shared

pytestmark = pytest.mark.system


def test_implicit_accept_brings_every_record_once(shared: Shared, name: str) -> None:
    set_up(shared.address, name, partitions=3)
    sent = [b'%d' % i for i in range(2000)]
    publish(shared.address, name, sent)
    with member(shared.address, name, explicit=False) as consumer:
        assert sorted(values(take(consumer, 2000))) == sorted(sent)
        consumer.commit_sync(10.0)  # what the last poll brought is accepted by the next call only
        assert nothing_comes(consumer)


def test_records_published_while_a_member_waits_come_at_once(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    with member(shared.address, name) as consumer:
        assert nothing_comes(consumer, 0.5)
        publish(shared.address, name, [b'a'])
        begun = time.monotonic()
        assert values(take(consumer)) == [b'a']
        assert time.monotonic() - begun < (1.0 if shared.process else 10.0)


def test_accepted_records_are_not_delivered_to_the_next_member(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'a', b'b'])
    with member(shared.address, name) as consumer:
        got = take(consumer)
        assert values(got) == [b'a', b'b']
        assert [message.delivery_count() for message in got] == [1, 1]
        assert settle(consumer, got, ACCEPT) == []
    publish(shared.address, name, [b'c'])
    with member(shared.address, name) as consumer:
        assert values(take(consumer)) == [b'c']


def test_a_released_record_comes_again_and_is_counted(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'a'])
    with member(shared.address, name) as consumer:
        for count in (1, 2, 3):
            got = take(consumer)
            assert [(message.value(), message.delivery_count()) for message in got] == [(b'a', count)]
            assert settle(consumer, got, RELEASE) == []
        assert settle(consumer, take(consumer), ACCEPT) == []
        assert nothing_comes(consumer)


def test_a_record_released_too_often_does_not_come_again(shared: Shared, name: str) -> None:
    set_up(shared.address, name, share_delivery_count_limit=2)
    publish(shared.address, name, [b'poison'])
    with member(shared.address, name) as consumer:
        for _ in range(2):
            assert settle(consumer, take(consumer), RELEASE) == []
        assert nothing_comes(consumer)
        publish(shared.address, name, [b'good'])
        assert values(take(consumer)) == [b'good']


def test_a_rejected_record_does_not_come_again(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'a', b'b', b'c'])
    with member(shared.address, name) as consumer:
        got = take(consumer)
        consumer.acknowledge(got[0], ACCEPT)
        consumer.acknowledge(got[1], REJECT)
        consumer.acknowledge(got[2], RELEASE)
        assert [error for error in consumer.commit_sync(10.0).values() if error] == []
        assert values(take(consumer)) == [b'c']


def test_the_next_batch_is_taken_while_earlier_records_are_unfinished(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'a'])
    with member(shared.address, name) as one, member(shared.address, name) as other:
        first = take(one)
        publish(shared.address, name, [b'b'])
        second = take(other)
        assert (values(first), values(second)) == ([b'a'], [b'b'])
        assert settle(other, second) == []
        assert settle(one, first) == []


def test_every_group_gets_every_record(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    set_up_group = name + '-too'
    set_up(shared.address, set_up_group)
    publish(shared.address, name, [b'a', b'b'])
    publish(shared.address, set_up_group, [b'x'])
    for group in (name, set_up_group):
        with member(shared.address, name, group_id=group) as consumer:
            consumer.subscribe([name, set_up_group])
            got: list[bytes] = []
            while len(got) < 3:
                messages = take(consumer)
                assert messages
                got += values(messages)
                assert settle(consumer, messages) == []
            assert sorted(got) == [b'a', b'b', b'x']


def test_a_lock_that_runs_out_gives_the_record_to_another_member(shared: Shared, name: str) -> None:
    set_up(shared.address, name, share_record_lock_duration_ms=1000)
    publish(shared.address, name, [b'a'])
    with member(shared.address, name) as slow, member(shared.address, name) as other:
        late = take(slow)
        begun = time.monotonic()
        got = take(other)
        assert [(message.value(), message.delivery_count()) for message in got] == [(b'a', 2)]
        assert time.monotonic() - begun < 3.0
        assert len(settle(slow, late)) == 1  # refused: it is not its record any more
        assert settle(other, got) == []


def test_close_hands_back_what_was_not_acknowledged(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'a', b'b'])
    with member(shared.address, name) as consumer:
        got = take(consumer)
        assert settle(consumer, got[:1]) == []
    begun = time.monotonic()
    with member(shared.address, name) as consumer:
        assert values(take(consumer)) == [b'b']
    assert time.monotonic() - begun < 10.0


def test_members_share_one_partition(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    got: list[list[bytes]] = [[], []]
    with (
        member(shared.address, name, max_poll_records=10) as one,
        member(shared.address, name, max_poll_records=10) as two,
    ):
        for turn in range(20):
            publish(shared.address, name, [b'%d-%d' % (turn, i) for i in range(10)])
        deadline = time.monotonic() + 20
        while sum(map(len, got)) < 200 and time.monotonic() < deadline:
            for consumer, hers in zip((one, two), got, strict=True):
                messages = consumer.poll(0.5)
                hers += values(messages)
                assert settle(consumer, messages) == []
    assert len(set(got[0] + got[1])) == len(got[0]) + len(got[1]) == 200
    assert got[0]
    assert got[1]


def test_max_poll_records_of_one(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    sent = [b'%d' % i for i in range(50)]
    for value in sent:
        publish(shared.address, name, [value])
    with member(shared.address, name, max_poll_records=1) as consumer:
        got = []
        for _ in range(50):
            messages = take(consumer)
            assert len(messages) == 1
            got += values(messages)
            assert settle(consumer, messages) == []
    assert got == sent


def test_by_default_a_group_begins_with_what_comes_next(shared: Shared, name: str) -> None:
    set_up(shared.address, name, share_auto_offset_reset='latest')
    publish(shared.address, name, [b'before'])
    with member(shared.address, name) as consumer:
        assert nothing_comes(consumer, 6.0 if shared.process is None else 0.6)
        publish(shared.address, name, [b'after'])
        assert values(take(consumer)) == [b'after']


def test_the_commit_callback_tells_the_offsets(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'a', b'b', b'c'])
    told = []
    with member(shared.address, name) as consumer:
        consumer.set_acknowledgement_commit_callback(
            lambda offsets, error: told.append(({place.partition: set(o) for place, o in offsets.items()}, error))
        )
        assert settle(consumer, take(consumer)) == []
        nothing_comes(consumer, 0.2)
    assert told == [({0: {0, 1, 2}}, None)]
