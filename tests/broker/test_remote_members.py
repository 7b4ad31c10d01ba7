"""Members without a Kafka client: they take records with tokens, settle them by these, and publish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.api import Caller, Refused
from acklog.broker.broker import JOURNAL
from acklog.broker.catalog.topics import add_partitions, delete_topic
from acklog.broker.journal.format import ShareKey
from acklog.broker.operations import Ack, AckResult, Delivery, NewRecord, Operations
from acklog.broker.operations.tokens import Token, decode, encode
from acklog.errors import Failed
from acklog.wire.error_code import ErrorCode

CALLER = Caller('10.0.0.1')
SESSION_MS = 45_000


@pytest.fixture(params=[0, 2], ids=['at once', 'slow logs'])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    world = await World.open({'group.share.delivery.count.limit': '3', 'group.share.record.lock.duration.ms': '60000'})
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    yield world
    await World.close_all()


def operations(world: World) -> Operations:
    return world.broker.operations


async def take(world: World, member: str = 'm', count: int = 1, **more: Any) -> list[Delivery]:
    return await operations(world).acquire(CALLER, 'g', member, ['t'], count, **more)


async def codes(world: World, *acks: Ack) -> list[str]:
    return [result.code for result in await operations(world).acknowledge(CALLER, 'g', acks)]


async def refused(call: Any) -> ErrorCode | None:
    try:
        await call
    except Refused as refusal:
        return refusal.code
    return None


async def test_records_are_taken_with_what_is_known_of_them(world: World) -> None:
    await world.topic('t')
    record = NewRecord(b'value', b'key', [('trace', b'1'), ('empty', None)], timestamp=77)
    assert await operations(world).publish(CALLER, 't', [record, NewRecord(b'2')]) == [(0, 0), (0, 1)]
    [first, second] = await take(world, count=9)
    assert (first.topic, first.partition, first.offset, first.deliveries, first.attempts) == ('t', 0, 0, 1, 0)
    assert (first.timestamp, first.key, first.value, list(first.headers)) == (
        77,
        b'key',
        b'value',
        [('trace', b'1'), ('empty', None)],
    )
    assert (second.offset, second.lock_until_ms) == (1, world.now + 60_000)
    assert await take(world) == []


async def test_each_lock_stands_alone_and_a_repeat_gives_the_same_answer(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 4)
    a, b, c, d = await take(world, count=4)
    acks = [
        Ack(a.lock, 'accept'),
        Ack(b.lock, 'release', after_ms=5000, reason='not now'),
        Ack(c.lock, 'reject', reason='never'),
        Ack('nonsense', 'accept'),
        Ack(a.lock, 'reject'),
    ]
    expected = ['ok', 'ok', 'ok', 'malformed', 'settled']
    assert await codes(world, *acks) == expected
    assert await codes(world, *acks) == expected
    await world.restart()
    assert await codes(world, *acks) == expected
    assert [world.fate(topic, offset) for offset in (0, 2, 3)] == ['done', 'dead', 'acquired m']
    [waiting] = (await operations(world).waiting(CALLER, 'g')).items
    assert (waiting.offset, waiting.due_ms) == (1, world.now + 5000)
    [dead] = (await operations(world).dead(CALLER, 'g')).items
    assert (dead.words, dead.member) == ('never', 'm')
    [again] = await operations(world).acknowledge(CALLER, 'g', [Ack(d.lock, 'renew')])
    assert again == AckResult(d.lock, True, 'ok', '', world.now + 60_000)


async def test_a_lock_that_was_lost_fences(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 1)
    [lost] = await take(world, 'm')
    world.pass_time(60_000)
    [held] = await take(world, 'm')
    assert (held.deliveries, held.attempts) == (2, 1)
    assert await codes(world, Ack(lost.lock, 'accept')) == ['lost']
    assert await codes(world, Ack(held.lock, 'accept')) == ['ok']
    assert await codes(world, Ack(lost.lock, 'accept')) == ['lost']
    assert world.fate(topic, 0) == 'done'


async def test_locks_of_before_a_reset_or_another_group_do_not_count(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 1)
    [before] = await take(world)
    await world.broker.deliveries.delete_partition(world.catalog.groups['g'], topic, 0)
    [after] = await take(world)
    assert await codes(world, Ack(before.lock, 'accept'), Ack(after.lock, 'accept')) == ['lost', 'ok']
    await operations(world).acquire(CALLER, 'h', 'm', ['t'])
    [result] = await operations(world).acknowledge(CALLER, 'h', [Ack(after.lock, 'accept')])
    assert result.code == 'gone'


async def test_renewal_may_be_disabled(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 1)
    [taken] = await take(world)
    await world.catalog.alter_group_configs('g', lambda _: {'share.renew.acknowledge.enable': 'false'})
    assert await codes(world, Ack(taken.lock, 'renew'), Ack(taken.lock, 'accept')) == ['disabled', 'ok']


async def test_what_could_not_be_written_did_not_happen(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 2)
    a, _ = await take(world, count=2)
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    assert await codes(world, Ack(a.lock, 'accept'), Ack('x', 'accept')) == ['unavailable', 'malformed']
    await settled()
    assert world.fate(topic, 0) == 'acquired m'
    assert await codes(world, Ack(a.lock, 'accept')) == ['ok']


async def test_a_poll_waits_for_records(world: World) -> None:
    topic = await world.topic('t', 3)
    poll = asyncio.create_task(take(world, wait_ms=30_000))
    await settled()
    assert not poll.done()
    await world.publish(topic, 1, 2)
    assert [(item.partition, item.offset) for item in await poll] == [(2, 0)]
    poll = asyncio.create_task(take(world, wait_ms=30_000))
    await settled()
    world.pass_time(30_000)
    assert await poll == []


async def test_partitions_take_turns(world: World) -> None:
    topic = await world.topic('t', 3)
    for index in range(3):
        await world.publish(topic, 3, index)
    taken = [(item.partition, item.offset) for _ in range(3) for item in await take(world)]
    assert sorted(taken) == [(0, 0), (1, 0), (2, 0)]


async def test_a_member_that_is_not_heard_of_is_lost(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 2)
    [first] = await take(world)
    assert [member.id for member in world.groups.members.of('g')] == ['m']
    world.pass_time(SESSION_MS - 1)
    assert await codes(world, Ack(first.lock, 'renew')) == ['ok']
    world.pass_time(SESSION_MS - 1)
    assert world.fate(topic, 0) == 'acquired m'
    world.pass_time(1)
    assert world.fate(topic, 0) == 'available after 1 failure'
    assert not world.groups.members.any('g')


async def test_a_member_that_waits_is_there(world: World) -> None:
    await world.topic('t')
    poll = asyncio.create_task(take(world, wait_ms=300_000))
    await settled()
    world.pass_time(299_999)
    assert not poll.done()
    world.pass_time(1)
    assert await poll == []
    assert world.groups.members.any('g')
    world.pass_time(SESSION_MS)
    assert not world.groups.members.any('g')


async def test_a_member_that_leaves_gives_back_what_it_holds_unattempted(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 1)
    await take(world)
    await operations(world).leave(CALLER, 'g', 'm')
    assert world.fate(topic, 0) == 'available'
    assert await refused(operations(world).leave(CALLER, 'g', 'm')) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_connection_that_closes_says_nothing_of_the_member(world: World) -> None:
    topic = await world.topic('t')
    await world.publish(topic, 1)
    await operations(world).acquire(world.caller('http'), 'g', 'm', ['t'])
    world.close('http')
    assert world.fate(topic, 0) == 'acquired m'


async def test_publishing_with_a_key_of_the_call_happens_once(world: World) -> None:
    await world.topic('t', 4)
    publish = operations(world).publish
    records = [NewRecord(b'1', b'a'), NewRecord(b'2', b'b'), NewRecord(b'3'), NewRecord(b'4', partition=3)]
    places = await publish(CALLER, 't', records, idempotency_key='order 7')
    assert await publish(CALLER, 't', records, idempotency_key='order 7') == places
    await world.restart()
    publish = operations(world).publish
    assert await publish(CALLER, 't', records, idempotency_key='order 7') == places
    conflict = publish(CALLER, 't', [*records, NewRecord(b'5', partition=3)], idempotency_key='order 7')
    assert await refused(conflict) == ErrorCode.DUPLICATE_RESOURCE
    assert sum(partition.log.end for partition in world.broker.partitions.values()) == 4
    [again] = await publish(CALLER, 't', records[:1], acks=1, idempotency_key='order 8')
    assert again[0] == places[0][0]
    assert sum(partition.log.end for partition in world.broker.partitions.values()) == 5


@pytest.mark.parametrize(
    ('records', 'more', 'code'),
    [
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([NewRecord(b'')], {'acks': 0}, ErrorCode.INVALID_REQUIRED_ACKS),
        ([NewRecord(b'', partition=4)], {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([NewRecord(b'', deliver_at=5)], {}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_not_published(
    world: World, records: list[NewRecord], more: dict[str, Any], code: ErrorCode
) -> None:
    await world.topic('t', 4)
    assert await refused(operations(world).publish(CALLER, 't', records, **more)) == code


@pytest.mark.parametrize('text', ['', 'x', 'ä' * 54, '_' * 54, 'A' * 53, 'A' * 55])
def test_what_is_no_token(text: str) -> None:
    assert decode(text) is None or decode(text) == decode(encode(decode(text)))  # type: ignore[arg-type]
    token = Token(ShareKey(7, bytes(range(16)), 3), 1 << 50, 1 << 40)
    assert decode(encode(token)) == token


@pytest.mark.parametrize('named', [['t'], ['t', 'other'], ['other', 't']])
@pytest.mark.parametrize('published', [False, True])
async def test_who_waits_is_told_that_a_topic_is_no_more(world: World, named: list[str], published: bool) -> None:
    """`published`: at the same time something comes for it, which it passes on to the next if it does not take it."""
    topic, other = await world.topic('t'), await world.topic('other')
    poll = asyncio.ensure_future(operations(world).acquire(CALLER, 'g', 'm', named, wait_ms=60_000))
    await settled()
    beside = asyncio.ensure_future(operations(world).acquire(CALLER, 'g', 'n', ['other'], wait_ms=60_000))
    await settled()
    if published:
        await world.publish(other, 1)
    await delete_topic(world.broker, world.catalog.topics_by_id[topic])
    code = await refused(poll)
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or (published and 'other' in named)
    if not published or code is None:
        await world.publish(other, 1)
    [record] = await asyncio.wait_for(beside, 5)
    assert record.topic == 'other'


@pytest.mark.parametrize('reset', ['earliest', 'latest', 'by_duration:PT1H'])
@pytest.mark.parametrize('waits', [False, True])
async def test_a_topic_that_grows(world: World, reset: str, waits: bool) -> None:
    """What is published to a new partition is missed by no group that takes from the topic, and comes at once."""
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': reset})
    topic = await world.topic('t')
    assert await take(world) == []
    poll = asyncio.ensure_future(take(world, wait_ms=60_000)) if waits else None
    await settled()
    assert await add_partitions(world.broker, world.catalog.topics_by_id[topic], 3)
    assert world.broker.deliveries.journal.pending() is None  # written before anybody hears of it
    await world.publish(topic, 1, 2)
    [record] = await (take(world) if poll is None else asyncio.wait_for(poll, 5))
    assert (record.partition, record.offset) == (2, 0)


@pytest.mark.parametrize(
    'other',
    [
        NewRecord(b'other', b'k', [('h', b'1')]),
        NewRecord(None, b'k', [('h', b'1')]),
        NewRecord(b'v', b'other', [('h', b'1')], partition=0),
        NewRecord(b'v', None, [('h', b'1')], partition=0),
        NewRecord(b'v', b'k', [('h', b'2')]),
        NewRecord(b'v', b'k', [('h', None)]),
        NewRecord(b'v', b'k'),
    ],
)
async def test_an_idempotency_key_for_other_records(world: World, other: NewRecord) -> None:
    await world.topic('t')
    publish = operations(world).publish
    same = NewRecord(b'v', b'k', [('h', b'1')])
    places = await publish(CALLER, 't', [same, same], idempotency_key='k')
    conflict = publish(CALLER, 't', [same, other], idempotency_key='k')
    assert await refused(conflict) is ErrorCode.DUPLICATE_RESOURCE
    await world.restart()
    conflict = operations(world).publish(CALLER, 't', [other, same], idempotency_key='k')
    assert await refused(conflict) is ErrorCode.DUPLICATE_RESOURCE
    later = NewRecord(b'v', b'k', [('h', b'1')], timestamp=5)  # its time is no part of it: mostly that is the server's
    assert await operations(world).publish(CALLER, 't', [same, later], idempotency_key='k') == places
