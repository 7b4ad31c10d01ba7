"""SIGTERM: in under a second whatever clients do, nothing that was answered is lost, and the next start has the port at
once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.server.raw import FETCH, PRODUCE, SHARE_FETCH, Closed, Raw
from tests.server.traffic import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    acquired,
    batch,
    create,
    fetch,
    join,
    produce,
    publish,
    share_fetch,
)

from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system

STOP_S = 1.0


@pytest.fixture(autouse=True)
def closing() -> object:
    yield
    Raw.close_all()


async def stop(server: ServerProcess) -> float:
    """Seconds that it took, while the test's clients go on."""
    return await asyncio.to_thread(server.stop)


async def publish_until_closed(raw: Raw, acks: int) -> int:
    """How many were answered."""
    answered = 0
    with contextlib.suppress(Closed):
        while True:
            assert await publish(raw, 't', batch(100), acks=acks) == 0
            answered += 1
    return answered


async def test_with_everything_going_on(server: ServerProcess) -> None:
    address = server.address
    raw = await Raw.connect(address)
    topic = await create(raw, 't')
    await create(raw, 'empty', 4)
    [await Raw.connect(address) for _ in range(1000)]
    for number in range(100):
        waiting = await Raw.connect(address)
        await waiting.send(waiting.frame(FETCH, FETCH_VERSION, fetch('empty', index=number % 4, wait=60_000)))
        await join(await Raw.connect(address), 'g', f'm{number}', 't')
        poll = share_fetch('g', f'm{number}', 0, topic, wait=60_000)
        polling = await Raw.connect(address)
        await polling.send(polling.frame(SHARE_FETCH, 1, poll))
    slow = await Raw.connect(address)
    for _ in range(8):
        await publish(raw, 't', batch(1_000_000))
    await slow.send(b''.join(slow.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(50)))
    load = [
        asyncio.create_task(publish_until_closed(await Raw.connect(address), acks)) for acks in (1, 1, -1, -1, -1, -1)
    ]
    await asyncio.sleep(0.5)
    assert await stop(server) < STOP_S
    answered = sum(await asyncio.gather(*load))
    assert answered > 20
    server.start()
    raw = await Raw.connect(server.address)
    offset = 0
    while records := await records_from(raw, offset):
        offset += records
    assert offset >= 8 + answered


async def records_from(raw: Raw, offset: int) -> int:
    """How many records a fetch brings."""
    from acklog.wire.record_batch import spans

    answer = await raw.call(FETCH, FETCH_VERSION, fetch('t', offset))
    partition = answer['responses'][0]['partitions'][0]
    assert partition['error_code'] == 0
    return sum(span.last - span.first + 1 for span in spans(partition['records'] or b''))


async def test_waiting_polls_are_answered(server: ServerProcess) -> None:
    raw = await Raw.connect(server.address)
    topic = await create(raw, 't')
    await join(raw, 'g', 'm', 't')
    one, other = await Raw.connect(server.address), await Raw.connect(server.address)
    await one.send(one.frame(FETCH, FETCH_VERSION, fetch('t', wait=60_000)))
    await other.send(other.frame(SHARE_FETCH, 1, share_fetch('g', 'm', 0, topic, wait=60_000)))
    await asyncio.sleep(0.2)
    assert await stop(server) < STOP_S / 2
    assert (await one.answer(FETCH, FETCH_VERSION))['error_code'] == 0
    assert acquired(await other.answer(SHARE_FETCH, 1)) == []
    assert await one.closed()
    assert await other.closed()


async def test_what_is_under_way_is_answered(server: ServerProcess) -> None:
    raw = await Raw.connect(server.address)
    await create(raw, 't')
    raws = [await Raw.connect(server.address) for _ in range(50)]
    for each in raws:
        await each.send(each.frame(PRODUCE, PRODUCE_VERSION, produce('t', batch(10_000), acks=-1)))
    stopping = asyncio.create_task(stop(server))
    answered = 0
    for each in raws:
        with contextlib.suppress(Closed):
            await each.answer(PRODUCE, PRODUCE_VERSION)
            answered += 1
    assert await stopping < STOP_S
    server.start()
    raw = await Raw.connect(server.address)
    assert await records_from(raw, 0) >= answered


async def test_the_port_is_had_again_at_once(server: ServerProcess) -> None:
    for _ in range(4):
        raws = [await Raw.connect(server.address) for _ in range(20)]
        await raws[0].send(raws[0].frame(FETCH, FETCH_VERSION, fetch('t', wait=60_000)))
        await stop(server)
        server.start()


HELD = """
import asyncio, sys
from acklog.broker.broker import Broker
from acklog.cli.main import main

async def held(*_, **__):
    sys.stderr.write('held\\n')
    await asyncio.sleep(60)

Broker.{method} = {kind}(held)
sys.exit(main({arguments}))
"""


def held(method: str, kind: str, data: Path) -> subprocess.Popen[str]:
    """A server process that is held up in a method of its broker."""
    arguments = ['serve', '--data', str(data), '--listen', '127.0.0.1:0']
    script = HELD.format(method=method, kind=kind, arguments=arguments)
    return subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_until(stream: object, word: str) -> Sequence[str]:
    lines: list[str] = []
    for line in stream:  # type: ignore[attr-defined]
        lines.append(line)
        if word in line:
            break
    return lines


def test_a_signal_while_it_starts(tmp_path: Path) -> None:
    with held('open', 'staticmethod', tmp_path / 'data') as process:
        lines_until(process.stderr, 'held')
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert time.monotonic() - begun < STOP_S
    assert out == ''
    assert err.count('\n') == 1
    assert 'stopped before it was ready' in err


@pytest.mark.parametrize('first', [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, first: signal.Signals) -> None:
    with held('close', '', tmp_path / 'data') as process:
        lines_until(process.stdout, 'ready')
        process.send_signal(first)
        lines_until(process.stderr, 'held')
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 143
    assert time.monotonic() - begun < 0.3
    assert err == ''


def test_what_cannot_be_closed_in_time_is_left_to_the_next_start(tmp_path: Path) -> None:
    with held('close', '', tmp_path / 'data') as process:
        lines_until(process.stdout, 'ready')
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert 2.5 < time.monotonic() - begun < 6
    assert 'not all logs could be closed in 3 s' in err
    assert not (tmp_path / 'data/clean').exists()


def test_a_signal_at_any_moment_of_the_start(tmp_path: Path) -> None:
    """It ends, soon and without a traceback; killed by the signal only where Python itself has just begun."""
    for step in range(12):
        command = [sys.executable, '-m', 'acklog', 'serve', '--data', str(tmp_path / 'data'), '--listen', '127.0.0.1:0']
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(step * 0.04)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=10)
        assert process.returncode in (0, -signal.SIGTERM), err
        assert 'Traceback' not in err
