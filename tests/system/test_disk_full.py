"""A disk that is full while the server runs, a real one: publishing is refused, everything else goes on, and so does
publishing when there is space again. Needs the right to mount; where there is none, `tests/server/test_disk.py` over
files in memory has to do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.raw import FETCH, METADATA, SHARE_FETCH, Raw
from tests.server.traffic import FETCH_VERSION, accept, acquired, batch, create, fetch, join, publish, share_fetch

from acklog.testing.process import ServerProcess
from acklog.wire.error_code import ErrorCode

pytestmark = pytest.mark.system

MB = 1 << 20
FULL = int(ErrorCode.KAFKA_STORAGE_ERROR)
DELETE_RECORDS, ALTER_CONFIGS = 21, 44


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB."""
    place = tmp_path / 'disk'
    place.mkdir()
    made = subprocess.run(
        ['mount', '-t', 'tmpfs', '-o', 'size=48m', 'acklog-test', str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f'cannot mount: {made.stderr.decode().strip()}')
    yield place
    Raw.close_all()
    subprocess.run(['umount', '-l', str(place)], check=True)


@pytest.fixture
def server(disk: Path) -> Iterator[ServerProcess]:
    settings = {
        'acklog.disk.reserve.bytes': 8 * MB,
        'log.segment.bytes': MB,
        'log.retention.ms': -1,
        'log.retention.check.interval.ms': 100,
    }
    server = ServerProcess(disk / 'data', settings)
    server.stderr_file = disk.parent / 'stderr'
    server.start()
    yield server
    server.kill()
    assert not server.tracebacks(), server.last_words()


async def fill(raw: Raw, name: str, size: int = 200_000) -> int:
    """Publish until it is refused; how many were not."""
    count = 0
    while (code := await publish(raw, name, batch(size), acks=-1)) == 0:
        count += 1
        assert count < 1000
    assert code == FULL
    return count


async def configure(raw: Raw, topic: str, **configs: str) -> None:
    changes = [
        {'name': name.replace('_', '.'), 'config_operation': 0, 'value': value} for name, value in configs.items()
    ]
    resource = {'resource_type': 2, 'resource_name': topic, 'configs': changes}
    answer = await raw.call(ALTER_CONFIGS, 1, {'resources': [resource], 'validate_only': False})
    assert answer['responses'][0]['error_code'] == 0


async def takes_and_accepts(raw: Raw, topic: object, epoch: int) -> int:
    """How many records a member takes and signs off; it uses two epochs."""
    await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', 'm', epoch, topic, records=5)))  # type: ignore[arg-type]
    taken = acquired(await raw.answer(SHARE_FETCH, 1))
    assert taken
    assert await accept(raw, 'g', 'm', epoch + 1, topic, taken) == 0  # type: ignore[arg-type]
    return sum(last - first + 1 for _, first, last in taken)


async def test_a_full_disk(server: ServerProcess, disk: Path) -> None:
    raw = await Raw.connect(server.address)
    await raw.call(
        ALTER_CONFIGS,
        1,
        {
            'resources': [
                {
                    'resource_type': 32,
                    'resource_name': 'g',
                    'configs': [{'name': 'share.auto.offset.reset', 'config_operation': 0, 'value': 'earliest'}],
                }
            ]
        },
    )
    topic = await create(raw, 't')
    await create(raw, 'other')
    stored = await fill(raw, 't')
    assert stored > 100
    await fill(raw, 'other', 1000)
    assert await publish(raw, 'other', batch(1000)) == FULL
    # reads and sign-offs go on, for long
    await join(raw, 'g', 'm', 't')
    done = 0
    for step in range(20):
        done += await takes_and_accepts(raw, topic, 2 * step)
        assert await publish(raw, 't', batch(100_000)) == FULL
    assert done == 100
    # a restart on the full disk, clean or not, knows it all
    for stopping in (server.stop, server.kill):
        stopping()
        server.start()
        raw = await Raw.connect(server.address)
        topics = await raw.call(METADATA, 12, {'topics': None})
        assert sorted(each['name'] for each in topics['topics']) == ['other', 't']
        await join(raw, 'g', 'm', 't')
        await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', 'm', 0, topic, records=1)))
        assert acquired(await raw.answer(SHARE_FETCH, 1))[0][1] == done
        await accept(raw, 'g', 'm', 1, topic, [(0, done, done)])
        done += 1
    # retention drops what is done, and publishing goes on by itself
    await configure(raw, 't', retention_bytes=str(4 * MB))
    for _ in range(100):
        if (code := await publish(raw, 't', batch(100_000), acks=-1)) == 0:
            break
        await asyncio.sleep(0.1)
    assert code == 0
    await raw.send(raw.frame(FETCH, FETCH_VERSION, fetch('t', stored)))
    assert len(await raw.answer_frame()) > 100_000
    assert server.stop() < 2


async def test_publishers_on_a_full_disk_spin_nowhere(server: ServerProcess, disk: Path) -> None:
    """Many who try again and again, while somebody else fills the disk and frees it."""
    raw = await Raw.connect(server.address)
    await create(raw, 't')
    filler = disk / 'filler'
    filler.write_bytes(b'x' * 10 * MB)
    await fill(raw, 't')
    before = server.cpu_seconds()
    await asyncio.sleep(1)
    assert server.cpu_seconds() - before < 0.3
    for _ in range(3):
        filler.unlink()
        for _ in range(20):
            if await publish(raw, 't', batch(1000), acks=-1) == 0:
                break
            await asyncio.sleep(0.1)
        assert await publish(raw, 't', batch(1000), acks=-1) == 0
        filler.write_bytes(b'x' * 9 * MB)
        await fill(raw, 't', 100_000)
    assert server.stderr().count('no space left; publishing is refused') == 1  # not once for each


# -- at start ----------------------------------------------------------------------------------------------------------


def start(data: Path) -> tuple[int, str]:
    """Exit code and stderr of a server that does not come up."""
    command = [sys.executable, '-m', 'acklog', 'serve', '--data', str(data), '--listen', '127.0.0.1:0']
    ended = subprocess.run([*command, '--set', 'http=off'], capture_output=True, text=True, timeout=30, check=False)
    assert ended.stdout == ''
    return ended.returncode, ended.stderr


def test_a_file_system_that_may_only_be_read(server: ServerProcess, disk: Path) -> None:
    server.stop()
    subprocess.run(['mount', '-o', 'remount,ro', str(disk)], check=True)
    for data, where in ((disk / 'data', disk / 'data/lock'), (disk / 'other', disk / 'other')):
        assert start(data) == (1, f'acklog: cannot start: {where}: Read-only file system\n')
    subprocess.run(['mount', '-o', 'remount,rw', str(disk)], check=True)
    server.start()


def test_a_disk_that_is_full_at_the_first_start(disk: Path) -> None:
    """There is no reserve yet that could help."""
    with (disk / 'filler').open('wb') as filler, pytest.raises(OSError, match='No space left'):
        while True:
            filler.write(bytes(1 << 16))
            filler.flush()
    code, words = start(disk / 'data')
    assert code == 1
    assert words.startswith(f'acklog: cannot start: {disk}/data')
    assert words.endswith('No space left on device\n')
    assert words.count('\n') == 1
