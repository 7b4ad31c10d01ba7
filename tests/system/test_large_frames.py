"""Many clients publish frames of a few bytes to a megabyte while the server is killed or stopped again and again: what
was confirmed is there, whole, and nothing is there twice."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from tests.server.large import PARTITIONS, Sender, check, stored
from tests.server.raw import Closed, Raw
from tests.server.traffic import create

from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system

ROUNDS = int(os.environ.get('ACKLOG_KILLS', '4'))


async def keeps_on(sender: Sender, over: asyncio.Event) -> None:
    """Whether the server is there or not."""
    while not over.is_set():
        try:
            await sender.run(asyncio.get_running_loop().time() + 0.5)
        except (OSError, Closed):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize('segment_bytes', [1 << 30, 8 << 20])
async def test_what_was_confirmed_survives_kills(tmp_path: Path, segment_bytes: int) -> None:
    pick, over = random.Random(1), asyncio.Event()
    with ServerProcess(tmp_path / 'data', {'log.segment.bytes': segment_bytes}) as server:
        raw = await Raw.connect(server.address)
        await create(raw, 't', PARTITIONS)
        senders = [Sender(server.address, seed) for seed in range(8)]
        tasks = [asyncio.create_task(keeps_on(sender, over)) for sender in senders]
        for number in range(ROUNDS):
            await asyncio.sleep(pick.uniform(0.1, 0.6))
            if number % 3:
                server.kill()
            else:
                server.stop()
            await asyncio.to_thread(server.start)
        over.set()
        await asyncio.gather(*tasks)
        check(await stored(await Raw.connect(server.address)), senders)
        Raw.close_all()
        server.stop()
