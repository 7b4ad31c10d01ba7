"""Large frames arrive in buffers that are used again. Whatever the connections do meanwhile, what is stored is what was
sent: requests that wait for the disk, several partitions in one, appends that fail, clients that go in the middle."""

from __future__ import annotations

import asyncio
import errno
import os
import random

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.large import PARTITIONS, Sender, check, stored
from tests.server.raw import Raw
from tests.server.traffic import batch, create, publish

from acklog.log.faulty_files import FaultyFiles


@pytest.mark.parametrize('faults', [False, True])
async def test_what_is_stored_is_what_was_sent(serve: Serve, faults: bool) -> None:
    files, pick = FaultyFiles(), random.Random(1)
    server = await serve(files=files if faults else None)
    raw = await Raw.connect(address_of(server))
    await create(raw, 't', PARTITIONS)
    seconds = float(os.environ.get('ACKLOG_STORM_SECONDS', '1.5'))
    until = asyncio.get_running_loop().time() + seconds
    senders = [Sender(address_of(server), seed) for seed in range(12)]

    async def fail() -> None:
        while faults and asyncio.get_running_loop().time() < until:
            files.fail(pick.choice(['pwritev', 'fdatasync']), pick.choice([errno.ENOSPC, errno.EIO]), '*.log')
            await asyncio.sleep(0.05)
        files.heal()

    await asyncio.gather(fail(), *(sender.run(until) for sender in senders))
    check(await stored(raw), senders)


@pytest.mark.parametrize('acks', [1, -1])
async def test_one_buffer_serves_a_client_that_keeps_up(serve: Serve, acks: int) -> None:
    """Also where a request is answered while the transport still has the view into which it received."""
    server = await serve()
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    buffers = set()
    for _ in range(8):
        assert await publish(raw, 't', batch(1_040_000), acks=acks) == 0
        buffer = server.listener.buffers.take()
        assert buffer is not None
        buffers.add(id(buffer))
        server.listener.buffers.give_back(memoryview(buffer))
    assert len(buffers) == 1
