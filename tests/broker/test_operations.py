"""What operators may ask of a group: where its records are, why it gets none, what waits, what is dead, changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.api import Caller, Refused
from acklog.broker.broker import JOURNAL
from acklog.broker.operations import (
    Changed,
    DeadRecord,
    Holder,
    Operations,
    Page,
    RecordInGroup,
    Selection,
    Sought,
    Target,
    WaitingRecord,
    Why,
)
from acklog.core.kinds import Ack
from acklog.errors import AcklogError, Failed, InvalidRecordState
from acklog.wire.error_code import ErrorCode

CALLER = Caller('10.0.0.1')
SETTINGS = {'group.share.delivery.count.limit': '3', 'acklog.retry.backoff': 'fixed:10s'}
ACCEPT, RELEASE, REJECT = (bytes([kind]) for kind in (Ack.ACCEPT, Ack.RELEASE, Ack.REJECT))


@pytest.fixture(params=[0, 2], ids=['at once', 'slow logs'])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield await World.open(SETTINGS)
    await World.close_all()


def operations(world: World) -> Operations:
    return world.broker.operations


async def begun(world: World, records: int, name: str = 't', take: int = 0) -> bytes:
    """A topic with records, of which member a has taken some."""
    topic = await world.topic(name)
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    await world.publish(topic, records)
    assert await world.take('a', 0, (topic, 0), count=max(take, 1)) == list(range(max(take, 1)))
    if not take:
        await acknowledge(world, topic, (0, 0, RELEASE, 0))
    return topic


async def acknowledge(world: World, topic: bytes, *acks: Any) -> None:
    delivery = world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)
    assert delivery is not None
    delivery.acknowledge('a', acks)
    await world.broker.deliveries.journal.written()


async def refused(call: Any) -> ErrorCode | str:
    try:
        await call
    except Refused as refusal:
        return refusal.code
    except AcklogError as error:
        return type(error).__name__
    return 'not refused'


# -- looking -----------------------------------------------------------------------------------------------------------


async def test_where_the_records_of_a_group_are(world: World) -> None:
    topic = await begun(world, 10, take=6)
    world.pass_time(1000)
    now = world.now
    await acknowledge(world, topic, (0, 0, ACCEPT, None), (1, 1, REJECT, None), (2, 2, RELEASE, now + 5000))
    await acknowledge(world, topic, (3, 3, RELEASE, 0), (5, 5, ACCEPT, None))
    [status] = (await operations(world).status(CALLER, 'g')).partitions
    assert (status.topic, status.partition, status.start, status.end, status.log_end) == ('t', 0, 2, 6, 10)
    counts = (status.available, status.acquired, status.waiting, status.dead, status.settled, status.lag)
    assert counts == (1, 1, 1, 1, 3, 7)
    assert (status.next_due, status.oldest_unsettled_ms) == (now + 5000, now - 1000)
    assert status.holders == [Holder('a', 1, now - 1000, now + 29_000)]
    world.pass_time(5000)
    [status] = (await operations(world).status(CALLER, 'g')).partitions
    assert (status.available, status.waiting, status.next_due) == (2, 0, None)
    assert await refused(operations(world).status(CALLER, 'nobody')) == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_record_in_every_group(world: World) -> None:
    topic = await begun(world, 3, take=2)
    now = world.now
    await acknowledge(world, topic, (0, 0, REJECT, None, None, 'no such customer'))
    first = await operations(world).record(CALLER, 't', 0, 0)
    assert (first.value, first.timestamp) == (b'v', now)
    dead = RecordInGroup('g', 'dead', 0, 1, 'a', reason='rejected', words='no such customer', died_ms=now)
    assert first.groups == [dead]
    await operations(world).acquire(CALLER, 'h', 'm', ['t'])  # begins at the end
    assert [(each.group, each.state) for each in (await operations(world).record(CALLER, 't', 0, 0)).groups] == [
        ('g', 'dead'),
        ('h', 'done'),
    ]
    held = (await operations(world).record(CALLER, 't', 0, 1, with_value=False)).groups
    assert held[0] == RecordInGroup('g', 'acquired', 0, 1, 'a', now + 30_000)
    assert (await operations(world).record(CALLER, 't', 0, 2)).groups[0] == RecordInGroup('g', 'not taken')
    assert await refused(operations(world).record(CALLER, 't', 0, 3)) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert await refused(operations(world).record(CALLER, 't', 1, 0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_why_a_group_gets_nothing(world: World) -> None:
    topic = await begun(world, 2, take=2)
    await world.beat('a', 0, 't')
    why = operations(world).why
    until = world.now + 30_000
    detail = '2 records are in the hands of members, and there is nothing else'
    assert await why(CALLER, 'g') == [Why('t', 0, 'held', detail, until, ['a'])]
    await acknowledge(world, topic, (0, 1, RELEASE, None))
    assert await why(CALLER, 'g') == [Why('t', 0, 'waiting', '2 records are left, waiting', world.now + 10_000)]
    world.pass_time(10_000)
    assert await why(CALLER, 'g') == [Why('t', 0, 'something', 'up to 2 records can be taken now')]
    await operations(world).pause(CALLER, 'g', 'lunch')
    assert await why(CALLER, 'g') == [Why('t', 0, 'paused', 'lunch')]
    await operations(world).resume(CALLER, 'g')
    assert await world.take('a', 1, count=2) == [0, 1]
    await acknowledge(world, topic, (0, 1, ACCEPT, None))
    assert [each.reason for each in await why(CALLER, 'g')] == ['nothing new']
    await world.catalog.alter_group_configs('g', lambda _: {'share.partition.max.record.locks': '1'})
    world.broker.deliveries.reconfigure(world.catalog.groups['g'])
    await world.publish(topic, 2)
    assert await world.take('a', 2, count=2) == [2]
    assert [(each.reason, each.members) for each in await why(CALLER, 'g')] == [('limit', ['a'])]


async def test_why_a_group_without_members_gets_nothing(world: World) -> None:
    topic = await world.topic('t', 1)
    await world.beat('a', 0, 't')
    assert await world.take('a', 0, (topic, 0)) == []
    await world.publish(topic, 1)
    assert [each.reason for each in await operations(world).why(CALLER, 'g')] == ['something']
    await world.beat('a', -1)
    detail = 'up to 1 record can be taken now, but nobody is there to take any'
    assert await operations(world).why(CALLER, 'g') == [Why('t', 0, 'no members', detail)]


async def test_why_a_member_gets_nothing(world: World) -> None:
    topic = await world.topic('t', 4)
    for member in 'abc':
        await world.beat(member, 0, 't')
    mine = [index for _, index in _assigned(world, 'a')]
    assert await world.take('b', 0, *((topic, index) for index in range(4))) == []
    answers = await operations(world).why(CALLER, 'g', 'a')
    assert [each.reason for each in answers] == ['nothing new' if n in mine else 'not assigned' for n in range(4)]
    with pytest.raises(Refused, match="group 'g' has no member 'typo'"):
        await operations(world).why(CALLER, 'g', 'typo')


def _assigned(world: World, member: str) -> list[tuple[str, int]]:
    found = next(each for each in world.groups.members.of('g') if each.id == member)
    return [(topic.name, index) for topic, indexes in found.assignment.items() for index in indexes]


# -- waiting -----------------------------------------------------------------------------------------------------------


async def test_waiting_records_in_pages(world: World) -> None:
    topic, now = await begun(world, 5, take=5), world.now
    other = await world.topic('s')
    await world.publish(other, 1)
    assert await world.take('a', 1, (other, 0), count=1) == [0]
    world.broker.deliveries.find(world.catalog.groups['g'], other, 0).acknowledge('a', [(0, 0, RELEASE, now + 1)])  # type: ignore[union-attr]
    await acknowledge(world, topic, (0, 1, RELEASE, None), (2, 2, ACCEPT, None), (3, 4, RELEASE, now + 3))
    everything = [
        ('s', 0, now + 1),
        ('t', 0, now + 10_000),
        ('t', 1, now + 10_000),
        ('t', 3, now + 3),
        ('t', 4, now + 3),
    ]
    items = [WaitingRecord(name, 0, offset, due, 1) for name, offset, due in everything]
    waiting = operations(world).waiting
    assert await waiting(CALLER, 'g') == Page(items)
    assert await waiting(CALLER, 'g', 't', 0) == Page(items[1:])
    page = await waiting(CALLER, 'g', limit=2)
    assert page == Page(items[:2], 't:0:0')
    assert await waiting(CALLER, 'g', after=page.next, limit=3) == Page(items[2:], 't:0:4')
    assert await waiting(CALLER, 'g', after='t:0:4') == Page([])
    assert await refused(waiting(CALLER, 'g', after='t:0')) == ErrorCode.INVALID_REQUEST
    assert await refused(waiting(CALLER, 'g', limit=0)) == ErrorCode.INVALID_REQUEST


async def test_waiting_records_are_made_due_moved_and_given_up(world: World) -> None:
    topic, now = await begun(world, 6, take=6), world.now
    await acknowledge(world, topic, (0, 5, RELEASE, now + 3_600_000))
    ops = operations(world)
    assert await ops.waiting_now(CALLER, 'g', Selection('t', 0, 0, 1), dry_run=True) == Changed(2, True)
    assert await ops.waiting_now(CALLER, 'g', Selection('t', 0, 0, 1)) == Changed(2)
    assert await ops.waiting_move(CALLER, 'g', Selection('t', 0, offsets=[2, 3, 77]), now + 500) == Changed(2)
    assert await ops.waiting_discard(CALLER, 'g', Selection('t', 0, 4)) == Changed(2)
    assert [world.fate(topic, offset).split()[0] for offset in range(6)] == [
        *['available'] * 2,
        *['waiting'] * 2,
        *['dead'] * 2,
    ]
    await world.restart()
    world.pass_time(500)
    assert await operations(world).waiting_now(CALLER, 'g') == Changed(0)
    assert await world.take('b', 0, (topic, 0), count=9) == [0, 1, 2, 3]
    [dead, _] = (await operations(world).dead(CALLER, 'g')).items
    assert dead == DeadRecord('t', 0, 4, 'given up by an operator', None, now, 1, None)


@pytest.mark.parametrize(
    'selection',
    [Selection(first=1), Selection('t', last=3), Selection(partition=0), Selection('t', 0, 1, offsets=[2])],
)
async def test_a_selection_that_is_none(world: World, selection: Selection) -> None:
    await begun(world, 1)
    assert await refused(operations(world).discard(CALLER, 'g', selection)) == ErrorCode.INVALID_REQUEST


# -- dead --------------------------------------------------------------------------------------------------------------


async def test_dead_records_are_listed_redriven_and_discarded(world: World) -> None:
    topic, now = await begun(world, 5, take=5), world.now
    await acknowledge(world, topic, (0, 2, REJECT, None, None, 'bad'), (3, 3, REJECT, None), (4, 4, ACCEPT, None))
    ops = operations(world)
    items = [DeadRecord('t', 0, offset, 'rejected', 'bad' if offset < 3 else None, now, 0, 'a') for offset in range(4)]
    assert await ops.dead(CALLER, 'g') == Page(items)
    assert await ops.dead(CALLER, 'g', limit=2) == Page(items[:2], 't:0:1')
    assert await ops.redrive(CALLER, 'g', Selection('t', 0, 1, 1)) == Changed(1)
    assert await ops.discard(CALLER, 'g', Selection('t', 0, last=0)) == Changed(1)
    assert await ops.dead(CALLER, 'g') == Page(items[2:])
    assert await ops.redrive(CALLER, 'g', dry_run=True) == Changed(2, True)
    await world.restart()
    assert await operations(world).redrive(CALLER, 'g') == Changed(2)
    assert await world.take('a', 2, (topic, 0), count=9) == [1, 2, 3]
    assert (await operations(world).record(CALLER, 't', 0, 2)).groups[0].attempts == 0


async def test_a_redrive_at_a_rate_keeps_the_order_and_goes_on_after_a_restart(world: World) -> None:
    topic = await begun(world, 5, take=5)
    await acknowledge(world, topic, (0, 4, REJECT, None))
    assert await operations(world).redrive(CALLER, 'g', rate=2) == Changed(5, pending=4)
    assert await world.take('b', 0, (topic, 0), count=9) == [0]
    await world.restart()
    for epoch, expected in enumerate(([], [1], [], [2], [], [3], [], [4]), 1):
        world.pass_time(250)
        assert await world.take('b', epoch, count=9) == expected
    assert await refused(operations(world).redrive(CALLER, 'g', rate=0)) == ErrorCode.INVALID_REQUEST


async def test_an_operation_that_cannot_be_written_has_not_happened(world: World) -> None:
    topic = await begun(world, 2, take=2)
    await acknowledge(world, topic, (0, 1, REJECT, None))
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    assert await refused(operations(world).redrive(CALLER, 'g')) == 'Failed'
    await settled()
    assert len((await operations(world).dead(CALLER, 'g')).items) == 2


# -- another place -----------------------------------------------------------------------------------------------------


async def test_a_seek_with_a_member_connected_fences_its_locks(world: World) -> None:
    topic = await begun(world, 10, take=4)
    await acknowledge(world, topic, (0, 1, ACCEPT, None))
    ops = operations(world)
    told = [Sought('t', 0, 2, 0, 2, 0)]
    assert await ops.seek(CALLER, 'g', Target('earliest'), dry_run=True) == told
    assert [world.fate(topic, offset) for offset in (0, 2)] == ['done', 'acquired a']
    assert await ops.seek(CALLER, 'g', Target('earliest')) == told
    assert await world.sign_off('a', 1, topic, 2) == [0, 121]
    assert await world.take('a', 2, count=3) == [0, 1, 2]
    assert await ops.seek(CALLER, 'g', Target('offset', 6), 't') == [Sought('t', 0, 0, 6, 0, 6)]
    assert await ops.seek(CALLER, 'g', Target('latest'), 't', 0) == [Sought('t', 0, 6, 10, 0, 4)]
    await world.restart()
    assert await world.take('a', 3, (topic, 0)) == []
    assert await refused(operations(world).seek(CALLER, 'g', Target('offset', 11))) == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_seek_that_one_partition_refuses_moves_none(world: World) -> None:
    topic = await world.topic('t', 2)
    await world.groups.ensure('g')
    await world.publish(topic, 2, 0)
    await world.publish(topic, 1, 1)
    assert [each.after for each in await operations(world).seek(CALLER, 'g', Target('earliest'), 't')] == [0, 0]
    assert await refused(operations(world).seek(CALLER, 'g', Target('offset', 2), 't')) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert [each.before for each in await operations(world).seek(CALLER, 'g', Target('earliest'), 't')] == [0, 0]


async def test_a_seek_to_a_time(world: World) -> None:
    topic = await world.topic('t')
    await world.catalog.create_group('g')
    for _ in range(4):
        await world.publish(topic, 1)
        world.pass_time(1000)
    ops = operations(world)
    time = Target('time', world.now - 2500)
    assert await ops.seek(CALLER, 'g', time) == []
    assert await ops.seek(CALLER, 'g', time, 't') == [Sought('t', 0, 2, 2, 0, 0)]
    assert await world.take('a', 0, (topic, 0)) == [2]
    assert await ops.seek(CALLER, 'g', Target('time', world.now)) == [Sought('t', 0, 2, 4, 0, 2)]


async def test_settled_records_of_a_range_come_again(world: World) -> None:
    topic = await begun(world, 6, take=6)
    await acknowledge(world, topic, (0, 2, ACCEPT, None), (3, 3, REJECT, None))
    ops = operations(world)
    assert await ops.replay(CALLER, 'g', 't', 0, 1, 4, dry_run=True) == Changed(3, True)
    assert await ops.replay(CALLER, 'g', 't', 0, 1, 4) == Changed(3)
    assert await world.take('b', 0, (topic, 0), count=9) == [1, 2, 3]
    assert [world.fate(topic, offset) for offset in (0, 4)] == ['done', 'acquired a']
    assert await refused(ops.replay(CALLER, 'g', 't', 0, 4, 1)) == ErrorCode.INVALID_REQUEST


async def test_a_delivery_that_is_deferred_comes_back_at_that_time(world: World) -> None:
    topic = await begun(world, 2, take=2)
    ops, at = operations(world), world.now + 77_000
    await ops.defer(CALLER, 'g', 't', 0, 0, at)
    await ops.defer(CALLER, 'g', 't', 0, 1, at, deliveries=1)
    with pytest.raises(InvalidRecordState):
        await ops.defer(CALLER, 'g', 't', 0, 1, at, deliveries=2)
    await world.restart()
    await acknowledge(world, topic, (0, 0, RELEASE, None))
    world.pass_time(50_000)  # the lock of the other runs out
    dues = [item.due_ms for item in (await operations(world).waiting(CALLER, 'g')).items]
    assert dues == [at, at]
    with pytest.raises(InvalidRecordState):
        await operations(world).defer(CALLER, 'g', 't', 0, 1, at)


# -- pausing -----------------------------------------------------------------------------------------------------------


async def test_a_paused_group_gets_nothing_until_it_is_resumed(world: World) -> None:
    topic = await begun(world, 3, take=1)
    ops = operations(world)
    await ops.pause(CALLER, 'g', 'the bank is closed')
    assert await world.take('a', 1, count=9) == []
    assert await world.sign_off('a', 2, topic, 0) == [0, 0]
    await world.restart()
    assert (await operations(world).status(CALLER, 'g')).paused == 'the bank is closed'
    waits = asyncio.create_task(world.take('a', 3, count=9, wait=60_000))
    await settled()
    assert not waits.done()
    assert await operations(world).resume(CALLER, 'g')
    assert await waits == [1, 2]
    assert not await operations(world).resume(CALLER, 'g')
    await world.restart()
    assert (await operations(world).status(CALLER, 'g')).paused is None


async def test_the_reason_of_a_pause_stays_until_there_is_another(world: World) -> None:
    await world.topic('t')
    await world.beat('a', 0, 't')
    ops, found = operations(world), []
    for reason in ('', 'the bank is closed', '', 'lunch'):
        await ops.pause(CALLER, 'g', reason)
        found.append((await ops.status(CALLER, 'g')).paused)
    assert found == ['paused by an operator', 'the bank is closed', 'the bank is closed', 'lunch']


async def test_a_group_is_paused_when_too_much_of_it_dies(world: World) -> None:
    await world.catalog.alter_group_configs('g', lambda _: {'acklog.dead.pause.threshold': '50%/4'})
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda c: {**c, 'share.auto.offset.reset': 'earliest'})
    await world.publish(topic, 20)
    assert await world.take('a', 0, (topic, 0), count=10) == list(range(10))
    await acknowledge(world, topic, (0, 2, ACCEPT, None), (3, 3, REJECT, None))
    assert (await operations(world).status(CALLER, 'g')).paused is None
    await acknowledge(world, topic, (4, 4, REJECT, None))
    reason = '2 of the last 4 records died (acklog.dead.pause.threshold=50%/4)'
    assert (await operations(world).status(CALLER, 'g')).paused == reason
    assert await world.take('a', 1, count=10) == []
    await operations(world).resume(CALLER, 'g')
    await acknowledge(world, topic, (5, 5, REJECT, None))
    assert await world.take('a', 2, count=1) == [10]


async def test_a_failed_record_waits_no_longer_than_it_may(world: World) -> None:
    await world.catalog.alter_group_configs('g', lambda _: {'acklog.waiting.max.ms': '60000'})
    topic = await world.topic('t')
    await world.catalog.alter_group_configs('g', lambda c: {**c, 'share.auto.offset.reset': 'earliest'})
    await world.publish(topic, 2)
    assert await world.take('a', 0, (topic, 0), count=2) == [0, 1]
    began = world.now
    await acknowledge(world, topic, (0, 0, RELEASE, began + 60_001), (1, 1, RELEASE, began + 60_000))
    world.pass_time(59_999)
    assert [world.fate(topic, offset).split()[0] for offset in (0, 1)] == ['waiting', 'waiting']
    world.pass_time(1)
    assert [world.fate(topic, offset).split()[0] for offset in (0, 1)] == ['dead', 'available']
    assert (await operations(world).dead(CALLER, 'g')).items == [
        DeadRecord('t', 0, 0, 'waited too long', None, began + 60_000, 1, None)
    ]
