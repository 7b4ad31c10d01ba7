"""A poll takes from several partitions, one after the other; what the journal lost of one meanwhile was not taken."""

from __future__ import annotations

import random

import pytest
from tests.broker.groups_world import World, settled

from acklog.broker.broker import JOURNAL
from acklog.broker.journal.refolds import LONGEST_MS
from acklog.errors import Failed

EARLIEST = {'share.auto.offset.reset': 'earliest'}


@pytest.mark.parametrize('seed', range(20))
async def test_what_is_answered_is_held(seed: int) -> None:
    world = await World.open()
    await world.catalog.alter_group_configs('g', lambda _: EARLIEST)
    topics = [await world.topic(name) for name in ('a', 'b')]
    for topic in topics:
        await world.publish(topic, 3)
    await world.take('z', 0, *[(topic, 0) for topic in topics], count=1)  # the group has begun on both
    world.close('z-takes')
    await settled()
    world.directory.trouble.random = random.Random(seed)
    world.directory.trouble.delay = 6
    world.directory.trouble.on_demand[JOURNAL] = [Failed]
    got = await world.take('m', 0, *[(topic, 0) for topic in topics], count=6)
    world.directory.trouble.delay = 0
    await settled()
    world.pass_time(LONGEST_MS)
    await settled()
    fates = [world.fate(topic, offset) for topic in topics for offset in range(3)]
    assert sum(fate == 'acquired m' for fate in fates) == len(got)
    await World.close_all()
