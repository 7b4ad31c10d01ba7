"""The example of examples/orders, told in a fraction of a second: its server's clock is moved."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from examples.orders.orders import CHARGING, MAILING
from examples.orders.story import POISON, Pace, tell

import acklog
from acklog.client.http import HttpClient, path_of
from acklog.testing.local import LocalServer

if TYPE_CHECKING:
    from tests.conftest import StartServer

ROOT = Path(__file__).resolve().parents[2]


def wait_until_idle(http: str) -> None:
    """Until nobody holds a record or could have one: its lock would run out if the clock were moved now."""
    api = HttpClient(http)
    busy = True
    while busy:
        time.sleep(0.02)
        topics = [
            topic for group in (CHARGING, MAILING) for topic in api.get(path_of('groups', group, 'lag'))['topics']
        ]
        busy = any(topic['acquired'] or topic['available'] for topic in topics)


async def test_a_day_of_the_shop_takes_seconds() -> None:
    said: list[str] = []
    with LocalServer(http=True) as server:

        async def passes(seconds: float) -> None:
            await asyncio.to_thread(wait_until_idle, server.http)  # the workers go by the real clock
            server.move(seconds=seconds)

        begun = time.monotonic()
        async with acklog.connect(server.address) as client:
            pace = Pace('1m,10m,1h', 24 * 3600, 1200, server.now, passes)
            payments = await asyncio.wait_for(tell(client, server.http, pace, said.append), 60)
            assert sum(part.lag for part in await client.admin.lag('charging')) == 0
            assert sum(part.lag for part in await client.admin.lag('mailing')) == 0
    assert time.monotonic() - begun < 30
    assert payments.charged == {n: Decimal(f'{n}.50') for n in [*range(1, 13), POISON.number]}
    assert said[1] == '12 orders are charged, once each; 8 of them came again first'
    assert said[2].endswith("is dead after 4 attempts: ValueError: '15,50' is not an amount")
    assert said[3:5] == ['redriven: 1', 'charged: 15.50']
    assert said[5] == '13 customers are reminded, 0 of them before their time'


@pytest.mark.system
def test_it_runs_against_a_server(start_server: StartServer) -> None:
    server = start_server(http='127.0.0.1:0')
    command = [sys.executable, '-m', 'examples.orders', '--server', server.address, '--http', server.http]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert 'redriven: 1' in done.stdout
    assert '13 customers are reminded, 0 of them before their time' in done.stdout
