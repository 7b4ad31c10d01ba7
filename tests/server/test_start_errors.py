"""What keeps a server from starting is said in one line, with the exit code, and nothing is changed by it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.server.conftest import address_of
from tests.server.raw import FETCH, SHARE_FETCH, Raw
from tests.server.traffic import FETCH_VERSION, accept, acquired, batch, create, fetch, join, publish, share_fetch

from acklog.broker.configs import GROUP, Settings
from acklog.log.directory import DataDirectory
from acklog.server.run import serve
from acklog.server.server import Server

DELETE_RECORDS = 21
USUAL = {'listen': '127.0.0.1:0', 'http': 'off', 'acklog.disk.reserve.bytes': '1000000'}


class Ended(NamedTuple):
    code: int
    line: str


@pytest.fixture
def start(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """Start a server that does not come up."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def start(data: Path, **settings: str) -> Ended:
        code = serve(Settings({'data': str(data), **USUAL, **settings}))
        out, err = capfd.readouterr()
        assert out == ''
        assert err.count('\n') == 1, err
        return Ended(code, err)

    yield start
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope='module')
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a topic of two partitions, records, and a group that has signed some off; cleanly closed."""
    data = tmp_path_factory.mktemp('original') / 'data'
    asyncio.run(fill(data))
    return data


async def fill(data: Path) -> None:
    server = await Server.open(Settings({'data': str(data), **USUAL}))
    configs = GROUP.normalized({'share.auto.offset.reset': 'earliest'})
    await server.broker.catalog.alter_group_configs('g', lambda _: configs)
    raw = await Raw.connect(address_of(server))
    topic = await create(raw, 't', 2)
    for index in (0, 1) * 5:
        await publish(raw, 't', batch(1000, 10), index=index, acks=-1)
    await join(raw, 'g', 'm', 't')
    for epoch in (0, 1):
        await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('g', 'm', 2 * epoch, topic, (0, 1), records=20)))
        taken = acquired(await raw.answer(SHARE_FETCH, 1))
        assert taken
        assert await accept(raw, 'g', 'm', 2 * epoch + 1, topic, taken) == 0
    Raw.close_all()
    await server.close()


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(original, tmp_path / 'data')
    return tmp_path / 'data'


def segments(data: Path) -> dict[str, bytes]:
    """All that logs have stored in it."""
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob('*.log')}


# -- where it listens and what it is told ------------------------------------------------------------------------------


def test_a_port_in_use(start: Callable[..., Ended], tmp_path: Path) -> None:
    with socket.create_server(('127.0.0.1', 0)) as other:
        port = other.getsockname()[1]
        code, line = start(tmp_path / 'data', listen=f'127.0.0.1:{port}')
    assert (code, line) == (1, f'acklog: cannot listen on 127.0.0.1:{port}: Address already in use\n')
    assert not (tmp_path / 'data').exists()  # looked at first of all


@pytest.mark.parametrize(
    ('listen', 'word'),
    [
        ('name.invalid:0', 'name.invalid:0: '),
        ('192.0.2.1:0', '192.0.2.1:0: Cannot assign requested address'),
        ('[2001:db8::1]:0', '[2001:db8::1]:0: Cannot assign requested address'),
    ],
)
def test_an_address_that_is_not_here(listen: str, word: str, start: Callable[..., Ended], tmp_path: Path) -> None:
    code, line = start(tmp_path / 'data', listen=listen)
    assert code == 1
    assert line.startswith(f'acklog: cannot listen on {word}')


@pytest.mark.parametrize(
    ('settings', 'words'),
    [
        ({'listen': '0.0.0.0:0'}, "advertise='' is not allowed: HOST:PORT for clients to connect to, as `listen` is a"),
        ({'listen': '[::]:0'}, "advertise='' is not allowed"),
        (
            {'listen': ':0', 'advertise': '0.0.0.0:1'},
            "advertise='0.0.0.0:1' is not allowed: an address that clients",
        ),
        ({'listen': '127.0.0.1'}, "listen='127.0.0.1' is not allowed: HOST:PORT"),
        ({'listen': '::1:9'}, "listen='::1:9' is not allowed: HOST:PORT, .* an IPv6 host in brackets"),
        ({'advertise': 'x'}, "advertise='x' is not allowed: HOST:PORT"),
    ],
)
def test_addresses_that_cannot_be(
    settings: dict[str, str], words: str, start: Callable[..., Ended], tmp_path: Path
) -> None:
    code, line = start(tmp_path / 'data', **settings)
    assert code == 2
    assert re.match(f'acklog: {words}', line), line


# -- the data directory ------------------------------------------------------------------------------------------------


def test_a_directory_in_use(start: Callable[..., Ended], data: Path) -> None:
    other = DataDirectory(data)
    reason = f'process {os.getpid()} uses this directory; one at a time can'
    assert start(data) == (2, f"acklog: data='{data}' is not allowed: {reason}\n")
    other.abandon()


def test_a_file_in_its_place(start: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / 'data').write_text('x')
    assert start(tmp_path / 'data') == (1, f'acklog: cannot start: {tmp_path}/data/lock: Not a directory\n')
    assert start(tmp_path / 'data/a/b') == (1, f'acklog: cannot start: {tmp_path}/data/a/b: Not a directory\n')


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write everywhere')
def test_a_directory_that_may_not_be_written(start: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / 'data').mkdir(0o555)
    assert start(tmp_path / 'data') == (1, f'acklog: cannot start: {tmp_path}/data/lock: Permission denied\n')
    assert start(tmp_path / 'data/a') == (1, f'acklog: cannot start: {tmp_path}/data/a: Permission denied\n')


def test_somebody_else_s_directory(start: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / 'letter').write_text('x')
    reason = 'an empty directory, or one that acklog has made'
    assert start(tmp_path) == (2, f"acklog: data='{tmp_path}' is not allowed: {reason}\n")
    assert (tmp_path / 'letter').exists()


def test_a_newer_format(start: Callable[..., Ended], data: Path) -> None:
    (data / 'format').write_text('acklog data, format 2\n')
    before = segments(data)
    code, line = start(data)
    assert code == 2
    assert 'format 2 was written by a newer acklog; this one knows up to 1' in line
    assert segments(data) == before


@pytest.mark.parametrize('content', [b'', b'\xff\xfe', b'acklog data, format x\n'])
def test_a_format_that_cannot_be_read(content: bytes, start: Callable[..., Ended], data: Path) -> None:
    (data / 'format').write_bytes(content)
    code, line = start(data)
    assert code == 2
    assert 'its file `format` cannot be read' in line


@pytest.mark.parametrize('content', [b'', b'\xff\xfe{', b'[]', b'{}', b'{"epoch": "x", "identity": ""}', None])
def test_a_run_file_that_is_damaged(content: bytes | None, start: Callable[..., Ended], data: Path) -> None:
    if content is None:
        (data / 'run').unlink()
    else:
        (data / 'run').write_bytes(content)
    code, line = start(data)
    assert code == 1
    assert line.startswith(f'acklog: cannot start: {data}/run: at 0: ')


# -- damage ------------------------------------------------------------------------------------------------------------


def segment(data: Path, log: str) -> Path:
    return next(iter(sorted(data.glob(f'logs/{log}/*.log'))))


def flipped(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize('log', ['__catalog', '__share_state'])
@pytest.mark.parametrize('clean', [True, False])
@pytest.mark.parametrize('at', [0, 7, 8, 11, 16, 17, 21, 23, 27, 57, 60, 61, 100, -1])
def test_a_flipped_byte_of_the_state(log: str, clean: bool, at: int, start: Callable[..., Ended], data: Path) -> None:
    """Wherever it is: the file and the position of the batch are named, and nothing is changed."""
    broken = segment(data, log)
    flipped(broken, at)
    if not clean:
        (data / 'clean').unlink()
    before = segments(data)
    code, line = start(data)
    assert code == 1
    assert line.startswith(f'acklog: cannot start: {broken}: at {0 if at >= 0 else ""}'), line
    assert segments(data) == before
    assert start(data) == (code, line)


@pytest.mark.parametrize('log', ['__catalog', '__share_state', '*-0'])
@pytest.mark.parametrize('what', ['cut', 'gone'])
def test_bytes_that_were_on_disk_are_missing(log: str, what: str, start: Callable[..., Ended], data: Path) -> None:
    """Of a log that is looked at: after an unclean end, or the state."""
    broken = segment(data, log)
    if what == 'cut':
        broken.write_bytes(broken.read_bytes()[:-20])
    else:
        broken.unlink()
    (data / 'clean').unlink()
    before = segments(data)
    code, line = start(data)
    assert code == 1
    assert line.startswith(f'acklog: cannot start: {broken}: at '), line
    assert segments(data) == before


def test_a_catalog_that_got_lost_does_not_take_the_topics_along(start: Callable[..., Ended], data: Path) -> None:
    shutil.rmtree(data / 'logs/__catalog')
    before = segments(data)
    code, line = start(data)
    assert code == 1
    assert 'the catalog (__catalog) is empty, but there are 2 logs of topics' in line
    assert before.items() <= segments(data).items()


def test_a_damaged_checkpoint_is_only_a_warning(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    (data / 'clean').write_bytes(b'\xff\xfe{')

    async def once() -> None:
        server = await Server.open(Settings({'data': str(data), **USUAL}))
        assert list(server.broker.catalog.topics) == ['t']
        await server.close()

    asyncio.run(once())
    assert f'{data}/clean: not as it was written' in caplog.text
    assert json.loads((data / 'run').read_bytes())['epoch'] == 1


# -- damage that shows later -------------------------------------------------------------------------------------------


@pytest.mark.parametrize('at', [0, 7, 8, 11, 16, 17, 23, 26, 30, 60, 61, 100, -1])
@pytest.mark.parametrize('which', [0, 2])
def test_a_damaged_batch_is_told_and_what_is_before_and_behind_it_can_be_had(
    at: int, which: int, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Partitions are not read when the server starts. One that is damaged takes records on."""
    broken = segment(data, '*-0')
    size = broken.stat().st_size // 5
    flipped(broken, which * size + at % size)

    async def look() -> None:
        server = await Server.open(Settings({'data': str(data), **USUAL}))
        partition = int(broken.parent.name.rpartition('-')[2])
        raw = await Raw.connect(address_of(server))
        topic = server.broker.catalog.topics['t'].id
        damaged = [await code_at(raw, partition, offset) for offset in range(0, 50, 10)]
        assert damaged[which] == 56
        assert damaged[:which] == [0] * which
        assert damaged[-1] == 0
        await server.broker.catalog.alter_group_configs('new', lambda _: {'share.auto.offset.reset': 'earliest'})
        await join(raw, 'new', 'm', 't')
        await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('new', 'm', 0, topic, (partition,))))
        answer = await raw.answer(SHARE_FETCH, 1)
        [told] = [each for part in answer['responses'] for each in part['partitions']]
        if which:
            assert acquired(answer) == [(partition, 0, 19)]
        else:
            assert told['error_code'] == 56
        assert await publish(raw, 't', batch(100), index=partition, acks=-1) == 0
        behind = 10 * damaged.index(
            0, which
        )  # the next batch, or, where no size is to be relied on, the next in the index
        cut = {'name': 't', 'partitions': [{'partition_index': partition, 'offset': behind}]}
        answer = await raw.call(DELETE_RECORDS, 2, {'topics': [cut], 'timeout': 1000})
        assert answer['topics'][0]['partitions'][0]['error_code'] == 0
        await raw.send(raw.frame(SHARE_FETCH, 1, share_fetch('new', 'm', 0, topic, (partition,))))
        assert acquired(await raw.answer(SHARE_FETCH, 1))[0][:2] == (partition, behind)
        Raw.close_all()
        await server.close()

    asyncio.run(look())
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert told
    assert all(line.startswith(f'damaged: {broken}: at ') for line in told)
    assert len(set(told)) == len(told)


async def code_at(raw: Raw, partition: int, offset: int) -> int:
    """The error code of a fetch."""
    answer = await raw.call(FETCH, FETCH_VERSION, fetch('t', offset, index=partition))
    code = answer['responses'][0]['partitions'][0]['error_code']
    assert isinstance(code, int)
    return code
