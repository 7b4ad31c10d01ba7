"""Share sessions through the broker: which requests fit, what ends them, what is remembered."""

from __future__ import annotations

import pytest
from tests.broker.groups_world import World

from acklog.broker.api import Caller, Refused
from acklog.core.share_session import ShareSession

NOT_FOUND, WRONG_EPOCH, LIMIT = 122, 123, 133
TOPIC = b'\x01' * 16
P0, P1 = (TOPIC, 0), (TOPIC, 1)


def ask(world: World, epoch: int, *added: tuple[bytes, int], member: str = 'm', via: str = 'c') -> ShareSession | int:
    """The session, or the code of the refusal."""
    try:
        return world.groups.session(world.caller(via), 'g', member, epoch, added)
    except Refused as refused:
        return refused.code


def acknowledge(world: World, epoch: int) -> ShareSession | int:
    try:
        return world.groups.session(world.caller('c'), 'g', 'm', epoch, acknowledges=True)
    except Refused as refused:
        return refused.code


async def test_fetch_and_acknowledge_share_one_counter() -> None:
    world = await World.open()
    session = ask(world, 0, P0)
    assert acknowledge(world, 1) is session
    assert ask(world, 2) is session
    assert ask(world, 2) == WRONG_EPOCH  # a repeat
    assert acknowledge(world, 2) == WRONG_EPOCH
    assert acknowledge(world, 3) is session


async def test_an_acknowledgement_cannot_begin_a_session() -> None:
    world = await World.open()
    assert acknowledge(world, 0) == WRONG_EPOCH
    assert acknowledge(world, 1) == NOT_FOUND
    assert acknowledge(world, -1) == NOT_FOUND
    assert ask(world, -1) == NOT_FOUND


async def test_a_group_that_nobody_joined_is_made() -> None:
    world = await World.open()
    await world.groups.fetch_session(world.caller('c'), 'raw', 'm', 0, [P0], [])
    assert 'raw' in world.catalog.groups
    with pytest.raises(Refused):
        await world.groups.fetch_session(world.caller('c'), '', 'm', 0, [P0], [])


async def test_closing_returns_what_the_member_held() -> None:
    world = await World.open()
    session = await world.groups.fetch_session(world.caller('c'), 'g', 'm', 0, [P0], [])
    world.said()
    assert ask(world, -1) is session
    assert world.said() == []  # first come its acknowledgements
    await world.groups.close_session(session)
    assert world.said() == ['left m']
    await world.groups.close_session(session)  # both ways of closing may meet
    assert world.said() == []
    assert ask(world, 1) == NOT_FOUND
    assert await world.notes('session') == []
    world.close('c')
    assert world.said() == []


async def test_a_new_session_returns_what_the_member_held() -> None:
    world = await World.open()
    old = await world.groups.fetch_session(world.caller('c'), 'g', 'm', 0, [P0], [])
    ask(world, 1)
    world.said()
    new = ask(world, 0, P1)
    assert new is not old
    assert world.said() == ['left m']
    assert ask(world, 1) is new
    await world.groups.close_session(old)  # an answer that was under way
    assert ask(world, 2) is new


async def test_a_connection_that_goes_ends_a_session_without_a_member() -> None:
    world = await World.open()
    await world.groups.fetch_session(world.caller('c'), 'g', 'm', 0, [P0], [])
    world.said()
    world.close('c')
    assert world.said() == ['wake m', 'lost m']
    assert ask(world, 1) == NOT_FOUND


async def test_a_request_whose_connection_is_gone_opens_nothing() -> None:
    world = await World.open()
    caller = Caller('10.0.0.1', closed=True)
    with pytest.raises(Refused):
        world.groups.session(caller, 'g', 'm', 0, [P0])
    assert await world.notes('session') == []


async def test_the_session_of_somebody_else() -> None:
    world = await World.open()
    ask(world, 0, P0)
    world.caller('d').principal = 'mallory'
    assert ask(world, 1, via='d') == NOT_FOUND
    assert ask(world, 0, P0, via='d') == NOT_FOUND
    assert ask(world, 1) not in (NOT_FOUND, WRONG_EPOCH)


async def test_limit() -> None:
    world = await World.open(group_share_max_share_sessions='1')
    ask(world, 0, P0)
    assert ask(world, 0, P0, member='n') == LIMIT
    ask(world, 0, P1)
    await world.groups.close_session(ask(world, -1))  # type: ignore[arg-type]
    assert isinstance(ask(world, 0, P0, member='n'), ShareSession)


async def test_what_was_remembered_of_a_group_that_is_gone_is_forgotten() -> None:
    world = await World.open()
    group = (await world.groups.fetch_session(world.caller('c'), 'g', 'm', 0, [P0], [])).key.group
    await world.catalog.delete_group(world.catalog.groups[group])
    await world.restart()
    assert ask(world, 1) == NOT_FOUND
    assert await world.notes('session') == []


async def test_deleting_the_group_ends_its_sessions() -> None:
    world = await World.open()
    await world.groups.fetch_session(world.caller('c'), 'g', 'm', 0, [P0], [])
    await world.groups.fetch_session(world.caller('c'), 'h', 'm', 0, [P0], [])
    world.said()
    await world.groups.delete('g')
    assert world.said() == ['delete g']
    assert ask(world, 1) == NOT_FOUND
    assert world.groups.session(world.caller('c'), 'h', 'm', 1)
