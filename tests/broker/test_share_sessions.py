"""Share sessions through the broker: which requests fit, what ends them, what is remembered."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import World

from acklog.broker.api import Caller, Refused

INVALID_GROUP, NOT_FOUND, WRONG_EPOCH, LIMIT = 24, 122, 123, 133
EARLIEST = {'share.auto.offset.reset': 'earliest'}


@pytest.fixture(autouse=True, params=[0, 3], ids=['logs at once', 'logs with delay'])
async def delay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(World, 'delay', request.param)
    yield
    await World.close_all()


async def begun(settings: dict[str, str] | None = None) -> tuple[World, bytes]:
    """A world with two records, the first of which m has taken with its first request."""
    world = await World.open(settings)
    topic = await world.topic('a')
    await world.publish(topic, 2)
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    assert await world.take('m', 0, (topic, 0)) == [0]  # no heartbeat, and nobody has made the group
    return world, topic


async def test_fetch_and_acknowledge_share_one_counter() -> None:
    world, topic = await begun()
    assert await world.sign_off('m', 1, topic, 0) == [0, 0]
    assert await world.take('m', 2) == [1]
    assert await world.take('m', 2) == f'error {WRONG_EPOCH}'  # a repeat
    assert await world.sign_off('m', 2, topic, 1) == [WRONG_EPOCH]
    assert world.fate(topic, 1) == 'acquired m'
    assert await world.sign_off('m', 3, topic, 1) == [0, 0]


async def test_an_acknowledgement_cannot_begin_a_session() -> None:
    world = await World.open()
    topic = await world.topic('a')
    assert await world.sign_off('m', 0, topic) == [WRONG_EPOCH]
    assert await world.sign_off('m', 1, topic) == [NOT_FOUND]
    assert await world.sign_off('m', -1, topic) == [NOT_FOUND]
    assert await world.take('m', -1) == f'error {NOT_FOUND}'


async def test_a_group_needs_a_name() -> None:
    world = await World.open()
    with pytest.raises(Refused) as refused:
        await world.groups.fetch_session(world.caller('c'), '', 'm', 0, [], [])
    assert refused.value.code == INVALID_GROUP


async def test_closing_returns_what_the_member_held_after_its_acknowledgements() -> None:
    world, topic = await begun()
    assert await world.take('m', 1) == [1]
    assert await world.sign_off('m', -1, topic, 0) == [0, 0]
    assert [world.fate(topic, offset) for offset in (0, 1)] == ['done', 'available']
    assert await world.take('m', 2) == f'error {NOT_FOUND}'
    assert await world.take('m', -1) == f'error {NOT_FOUND}'
    assert await world.notes('session') == []


async def test_a_new_session_returns_what_the_member_held() -> None:
    world, topic = await begun()
    old = world.groups.session(world.caller('m-takes'), 'g', 'm', 1)
    assert await world.take('m', 0) == []  # names no partitions
    assert world.fate(topic, 0) == 'available'
    assert await world.take('m', 1, (topic, 0)) == [0]
    await world.groups.close_session(old)  # of an answer that was still under way
    assert world.fate(topic, 0) == 'acquired m'
    assert await world.take('m', 2) == [1]


async def test_a_connection_that_goes_ends_a_session_without_a_member() -> None:
    world, topic = await begun()
    world.close('m-takes')
    assert world.fate(topic, 0) == 'available after 1 failure'
    assert await world.take('m', 1) == f'error {NOT_FOUND}'
    assert await world.notes('session') == []


async def test_a_request_whose_connection_is_gone_opens_nothing() -> None:
    world = await World.open()
    with pytest.raises(Refused):
        world.groups.session(Caller('10.0.0.1', closed=True), 'g', 'm', 0)
    assert await world.notes('session') == []


async def test_the_session_of_somebody_else() -> None:
    world, topic = await begun()
    world.caller('d').principal = 'mallory'
    assert await world.take('m', 1, via='d') == f'error {NOT_FOUND}'
    assert await world.take('m', 0, (topic, 0), via='d') == f'error {NOT_FOUND}'
    assert world.fate(topic, 0) == 'acquired m'
    assert await world.take('m', 1) == [1]


async def test_limit() -> None:
    world, topic = await begun({'group.share.max.share.sessions': '1'})
    assert await world.take('n', 0, (topic, 0)) == f'error {LIMIT}'
    assert await world.take('m', 0, (topic, 0)) == [0]
    await world.take('m', -1)
    assert await world.take('n', 0, (topic, 0)) == [0]


async def test_what_was_remembered_of_a_group_that_is_gone_is_forgotten() -> None:
    world, _ = await begun()
    await world.catalog.delete_group(world.catalog.groups['g'])
    await world.restart()
    assert await world.take('m', 1) == f'error {NOT_FOUND}'
    assert await world.notes('session') == []


async def test_deleting_the_group_ends_its_sessions() -> None:
    world, topic = await begun()
    await world.groups.delete('g')
    assert await world.take('m', 1) == f'error {NOT_FOUND}'
    assert await world.take('m', 0, (topic, 0)) == [0]  # a new group of the same name


async def test_a_session_that_could_not_be_opened_anew_is_no_more() -> None:
    world, topic = await begun({'acklog.max.partitions': '1'})
    assert await world.take('m', 0, (topic, 0), (topic, 1), (topic, 2)) == f'error {LIMIT}'
    assert await world.notes('session') == []
    assert await world.take('m', 1) == f'error {NOT_FOUND}'


async def test_sessions_that_are_too_many_after_a_restart_are_forgotten() -> None:
    world, topic = await begun()
    assert await world.take('n', 0, (topic, 0)) == [1]
    assert await world.notes('session') == ['m', 'n']
    world._settings = {'group.share.max.share.sessions': '1'}
    await world.restart()
    assert len(await world.notes('session')) == 1
