"""Heartbeats through the broker: what members are answered, and when they are taken out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.apis.share_group_describe import API as DESCRIBE
from acklog.broker.apis.share_group_heartbeat import API as HEARTBEAT
from acklog.broker.catalog import topics
from acklog.broker.groups import members
from acklog.errors import Failed

NOT_AVAILABLE, UNKNOWN_MEMBER, INVALID, GROUP_NOT_FOUND, FULL, FENCED = 15, 25, 42, 69, 81, 110


@pytest.fixture(autouse=True, params=[0, 3], ids=['logs at once', 'logs with delay'])
async def delay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield
    await World.close_all()


async def test_the_first_answer_carries_the_assignment() -> None:
    world = await World.open()
    await world.topic('a', 4)
    assert await world.beat('m1', 0, 'a') == '1: a[0, 1, 2, 3]'
    assert await world.beat('m1', 1) == '1'
    assert await world.beat('m2', 0, 'a') == '2: a[0, 1, 2, 3]'  # each takes over from the other at once
    assert await world.beat('m1', 1) == '2'
    assert await world.beat('m3', 0, 'a') == '3: a[1, 3]'
    assert await world.beat('m1', 2) == '3: a[0, 1, 2]'
    assert await world.beat('m2', 2) == '3: a[0, 2, 3]'
    assert await world.beat('m1', 3) == '3'


async def test_the_interval_is_the_groups_own() -> None:
    world = await World.open()
    fields = {'group_id': 'g', 'member_id': 'm', 'member_epoch': 0, 'subscribed_topic_names': ['a']}
    assert (await world.call(HEARTBEAT, fields))['heartbeat_interval'] == 5000
    await world.catalog.alter_group_configs('g', lambda _: {'share.heartbeat.interval.ms': '6000'})
    assert (await world.call(HEARTBEAT, fields))['heartbeat_interval'] == 6000


async def test_a_topic_made_later_is_assigned_then() -> None:
    world = await World.open()
    assert await world.beat('m', 0, 'later') == '1: '
    await world.topic('later', 2)
    assert await world.beat('m', 1) == '2: later[0, 1]'
    topic = world.catalog.topics['later']
    await topics.add_partitions(world.broker, topic, 3)
    assert await world.beat('m', 2) == '3: later[0, 1, 2]'
    await topics.delete_topic(world.broker, topic)
    assert await world.beat('m', 3) == '4: '
    await world.topic('unrelated')
    assert await world.beat('m', 4) == '4'


async def test_errors_let_clients_join_again() -> None:
    world = await World.open({'group.share.max.size': '2'})
    assert await world.beat('m', 3) == f'error {UNKNOWN_MEMBER}'  # not GROUP_ID_NOT_FOUND: that is fatal to clients
    await world.beat('m', 0, 'a')
    assert await world.beat('m', 7) == f'error {FENCED}'
    assert await world.beat('n', 1) == f'error {UNKNOWN_MEMBER}'
    await world.beat('n', 0, 'a')
    assert await world.beat('o', 0, 'a') == f'error {FULL}'
    world.directory.fail_next(Failed, '__catalog')
    assert await world.beat('m', 1, 'b') == f'error {NOT_AVAILABLE}'
    assert await world.beat('m', 1, 'b') == '3'
    assert await world.notes('member') == ['m', 'n']  # what could not be written is written with the next one
    assert any(note['topics'] == ['b'] for note in world.catalog.notes('member').values())


@pytest.mark.parametrize(
    ('fields', 'code'),
    [
        ({'group_id': ''}, INVALID),
        ({'member_id': ''}, INVALID),
        ({'member_id': 'm' * 256}, INVALID),
        ({'member_epoch': -2}, INVALID),
        ({'rack_id': ''}, INVALID),
        ({'subscribed_topic_names': None}, INVALID),
        ({'subscribed_topic_names': ['t' * 250]}, INVALID),
        ({'subscribed_topic_names': [str(i) for i in range(10_001)]}, INVALID),
        ({'group_id': 'g' * 256}, 24),
        ({'member_epoch': -1}, GROUP_NOT_FOUND),
    ],
)
async def test_what_makes_no_sense(fields: dict[str, object], code: int) -> None:
    world = await World.open()
    good = {'group_id': 'new', 'member_id': 'm', 'member_epoch': 0, 'subscribed_topic_names': ['a']}
    assert (await world.call(HEARTBEAT, good | fields))['error_code'] == code
    assert await world.notes('member') == []


async def taking(world: World, *members: str) -> bytes:
    """Members that are in, and have taken one record each, in turn, from the topic that comes back."""
    topic = await world.topic('a')
    for member in members:
        await world.beat(member, 0, 'a')
        assert await world.take(member, 0, (topic, 0)) == []
    await world.publish(topic, len(members))
    for offset, member in enumerate(members):
        assert await world.take(member, 1) == [offset]
        assert world.fate(topic, offset) == f'acquired {member}'
    return topic


async def test_leaving_answers_the_poll_and_keeps_the_session() -> None:
    world = await World.open()
    topic = await taking(world, 'm')
    poll = asyncio.create_task(world.take('m', 2, wait=10_000))
    await settled()
    assert await world.beat('m', -1) == '-1'
    assert await poll == []
    assert await world.notes('member') == []
    world.close('m-beats')
    assert world.fate(topic, 0) == 'acquired m'
    assert await world.sign_off('m', 3, topic, 0) == [0, 0]
    assert await world.beat('m', -1) == f'error {UNKNOWN_MEMBER}'


async def test_who_left_and_closes_the_connection_without_a_word_has_failed() -> None:
    world = await World.open()
    topic = await taking(world, 'm')
    await world.beat('m', -1)
    world.close('m-takes')
    assert world.fate(topic, 0) == 'available after 1 failure'
    assert await world.notes('session') == []


async def test_lost_when_both_connections_are_gone() -> None:
    world = await World.open()
    topic = await taking(world, 'm', 'n')
    world.close('m-takes')
    assert world.fate(topic, 0) == 'acquired m'  # idle connections are dropped and renewed
    assert await world.take('m', 2) == []
    world.close('m-beats')
    assert world.fate(topic, 0) == 'acquired m'
    assert await world.beat('m', 1) == '2'
    world.close('m-takes')
    poll = asyncio.create_task(world.take('n', 2, wait=10_000))
    await settled()
    world.close('m-beats')
    assert await poll == [0]  # at once with the other one
    assert await world.beat('m', 2) == f'error {UNKNOWN_MEMBER}'  # it was alive after all: joins anew
    assert await world.take('m', 3) == 'error 122'
    assert await world.beat('m', 0, 'a') == '4: a[0]'


async def test_what_a_lost_member_had_is_assigned_to_others() -> None:
    world = await World.open()
    await world.topic('a', 3)
    for member in ('l', 'm', 'n'):
        await world.beat(member, 0, 'a')
    assert await world.beat('m', 2) == '3: a[0, 2]'
    world.close('l-beats')
    assert await world.beat('m', 3) == '4: a[0, 1, 2]'


async def test_one_connection_for_everything() -> None:
    world = await World.open()
    topic = await world.topic('a')
    await world.publish(topic, 2)
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    for offset, member in enumerate(('m', 'n')):
        await world.beat(member, 0, 'a', via='c')
        assert await world.take(member, 0, (topic, 0), via='c') == [offset]
    world.close('c')
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['available after 1 failure'] * 2
    assert await world.notes('member') == await world.notes('session') == []


async def test_a_member_that_moved_to_another_connection_is_not_lost_with_the_old_one() -> None:
    world = await World.open()
    topic = await taking(world, 'm')
    await world.beat('m', 1, via='new')
    world.close('m-takes')
    world.close('m-beats')
    assert world.fate(topic, 0) == 'acquired m'
    world.close('new')
    assert world.fate(topic, 0) == 'available after 1 failure'


async def test_a_silent_member_is_lost_in_time() -> None:
    world = await World.open({'group.share.record.lock.duration.ms': '3600000'})
    topic = await taking(world, 'm', 'n')
    world.pass_time(1000)
    await world.beat('m', 1)
    world.close('m-takes')
    world.pass_time(44_000)  # n has not been heard of for 45 s
    assert world.fate(topic, 0) == 'acquired m'
    assert world.fate(topic, 1) == 'available after 1 failure'
    assert await world.beat('n', 2) == f'error {UNKNOWN_MEMBER}'
    assert await world.take('n', 2) == [1]  # its session has a connection: it may go on
    world.pass_time(1000)
    assert world.fate(topic, 0) == 'available after 1 failure'
    assert await world.take('m', 2) == 'error 122'  # that had none


async def test_a_restart_is_no_failure_of_a_member() -> None:
    world = await World.open()
    topic = await taking(world, 'm', 'n')
    await world.beat('m', 1)
    await world.restart()
    assert await world.sign_off('m', 14, topic, 0) == [0, 0]  # adopted at any epoch
    assert await world.sign_off('m', 15, topic) == [0]
    assert await world.beat('m', 2) == '3: a[0]'
    assert await world.beat('n', 2) == '3: a[0]'
    assert (world.fate(topic, 0), world.fate(topic, 1)) == ('done', 'acquired n')
    assert await world.take('n', 7) == []
    world.close('n-takes')
    assert world.fate(topic, 1) == 'acquired n'
    world.close('n-beats')
    assert world.fate(topic, 1) == 'available after 1 failure'


async def test_a_clean_stop_is_no_failure_of_a_member_either() -> None:
    world = await World.open()
    topic = await taking(world, 'm')
    await world.stop_and_start()
    assert world.fate(topic, 0) == 'acquired m'
    assert await world.beat('m', 1) == '2: a[0]'
    assert await world.sign_off('m', 2, topic, 0) == [0, 0]


async def test_after_a_restart_only_time_counts_until_a_member_is_seen() -> None:
    world = await World.open({'group.share.record.lock.duration.ms': '3600000'})
    topic = await taking(world, 'm', 'n')
    await world.restart()
    world.pass_time(44_999)
    assert await world.beat('m', 2) == '3: a[0]'
    assert await world.take('m', 2) == []
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['acquired m', 'acquired n']
    world.pass_time(1)
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['acquired m', 'available after 1 failure']
    assert await world.notes('member') == await world.notes('session') == ['m']


async def test_members_are_described() -> None:
    world = await World.open()
    topic = await world.topic('a')
    await world.beat('m', 0, 'a', 'b')
    described = (await world.call(DESCRIBE, {'group_ids': ['g', 'h'], 'include_authorized_operations': True}))['groups']
    assert described[0] | {'members': None} == {
        'error_code': 0, 'error_message': None, 'group_id': 'g', 'group_state': 'Stable', 'group_epoch': 1,
        'assignment_epoch': 1, 'assignor_name': 'simple', 'members': None, 'authorized_operations': 3400,
    }  # fmt: skip
    [member] = described[0]['members']
    assert [member[name] for name in ('member_id', 'rack_id', 'member_epoch', 'client_id', 'client_host')] == [
        'm', None, 1, 'm-beats', '/10.0.0.1',
    ]  # fmt: skip
    assert list(member['subscribed_topic_names']) == ['a', 'b']
    [assigned] = member['assignment']['topic_partitions']
    assert (assigned['topic_id'].bytes, assigned['topic_name'], list(assigned['partitions'])) == (topic, 'a', [0])
    assert (described[1]['error_code'], described[1]['group_state']) == (GROUP_NOT_FOUND, 'Dead')


async def test_who_leaves_after_a_restart_gives_back_what_it_held_at_once() -> None:
    """Nobody else would close its session, over which it held that."""
    world = await World.open()
    topic = await world.topic('a')
    await world.publish(topic, 1)
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    await world.beat('m', 0, 'a')
    assert await world.take('m', 0, (topic, 0)) == [0]
    await world.restart()
    assert await world.beat('m', -1) == '-1'
    assert world.fate(topic, 0) == 'available after 1 failure'
    assert await world.notes('session') == []


async def test_a_heartbeat_whose_connection_is_gone_is_none_that_the_member_has() -> None:
    world = await World.open()
    topic = await world.topic('a')
    await world.publish(topic, 1)
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    world.caller('gone').closed = True
    await world.beat('m', 0, 'a', via='gone')
    assert await world.take('m', 0, (topic, 0)) == [0]
    world.close('m-takes')
    assert world.fate(topic, 0) == 'available after 1 failure'


async def test_heartbeats_ask_for_one_call_of_the_timer() -> None:
    world = await World.open()
    await world.beat('m', 0, 'a')
    before = len(world.calls)
    for _ in range(20):
        world.pass_time(1000)
        await world.beat('m', 1)
        await world.beat('n', 0, 'a')
        await world.beat('n', -1)
    assert len(world.calls) == before


async def test_names_of_topics_are_bounded_over_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, 'MAX_NAMES', 3)
    world = await World.open()
    assert await world.beat('m', 0, 'a', 'b') == '1: '
    assert await world.beat('m', 0, 'a', 'b', group='h') == f'error {FULL}'
    assert await world.beat('m', 1, 'a', 'b', 'c') == '2'
    assert await world.beat('m', 2, 'a') == '3'
    assert await world.beat('m', 0, 'a', 'b', group='h') == '1: '
    assert await world.beat('n', 0, 'a', group='h') == f'error {FULL}'
    assert await world.beat('m', -1) == '-1'
    assert await world.beat('n', 0, 'a', group='h') == '2: '


async def test_a_look_at_the_members_sees_a_topic_that_was_made_since() -> None:
    world = await World.open()
    await world.beat('m', 0, 'a')
    await world.topic('a', 2)
    [member] = world.groups.members.of('g')
    assert [(topic.name, list(indexes)) for topic, indexes in member.assignment.items()] == [('a', [0, 1])]
