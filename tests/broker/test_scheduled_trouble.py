"""Records published for later, where the log cannot be written."""

from __future__ import annotations

import asyncio
import errno

import pytest
from tests.broker.admin_world import NOW, World

from acklog.broker.eager import turn
from acklog.errors import LogError
from acklog.log.directory import DataDirectory
from acklog.log.faulty_files import Fault, FaultyFiles
from acklog.log.seam import Durability
from acklog.wire.record_batch import NewRecord, build

DUE = NOW + 1000
LATER = NewRecord(None, b'v', [('acklog-deliver-at', str(DUE).encode())])
PLAIN = NewRecord(None, b'v')


@pytest.mark.parametrize('error', [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize('turns', range(6))
@pytest.mark.parametrize('second', [PLAIN, LATER])
async def test_a_write_that_fails_leaves_nothing_behind(error: int, turns: int, second: NewRecord) -> None:
    """Though what it was to write had its place already, which others have got since."""
    files = FaultyFiles()
    world = await World.open(DataDirectory('/data', files, reserve_bytes=0))
    await world.made('orders', acklog_deliver_at_enable='true')
    partition = world.partition('orders')

    async def publish(*records: NewRecord) -> bool:
        try:
            await partition.append(build(records, timestamp=NOW), NOW, Durability.WRITTEN)
        except LogError:
            return False
        return True

    assert await publish(PLAIN)
    files.faults.append(Fault('pwritev', error, path=f'*{world.broker.catalog.topics["orders"].log_name(0)}*'))
    failing = asyncio.ensure_future(publish(LATER, LATER, LATER))
    for _ in range(turns):
        await turn()
    succeeded = await publish(second)
    assert not await failing
    assert partition.later is not None
    coming = list(partition.later.schedule.instants.coming(0, 100, NOW))
    assert coming == ([(1, DUE)] if succeeded and second is LATER else [])
    await world.close()
