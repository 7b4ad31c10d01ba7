"""One event, one line, whatever peers put into it; text for people, JSON for programs."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.raw import METADATA, Raw

from acklog.server.log_output import LONGEST, log_to_stderr, one_line
from acklog.testing.process import ServerProcess


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield logging.getLogger('acklog.test')
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = True


@pytest.mark.parametrize(
    ('text', 'line'),
    [
        ('plain, ü and 語', 'plain, ü and 語'),
        ('a\nb\r\nc\td', r'a\nb\r\nc\td'),
        ('\x1b[31mred\x00\x7f', r'\x1b[31mred\x00\x7f'),
        ('a\u2028b\u2029c\x85d', r'a\u2028b\u2029c\x85d'),
        ('\u202eevil', r'\u202eevil'),
        ('\udc80', r'\udc80'),
    ],
)
def test_what_is_no_text_is_escaped(text: str, line: str) -> None:
    assert one_line(text) == line


def test_long_messages_are_cut() -> None:
    assert one_line('x' * (LONGEST + 5)) == 'x' * LONGEST + '... (5 characters more)'


def test_text(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr('info', 'text')
    log.debug('not this')
    log.warning('of %s', 'me\nERROR forged')
    out, err = capsys.readouterr()
    assert out == ''
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING acklog\.test: of me\\nERROR forged\n', err)


def test_a_traceback_cannot_forge_a_line(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr('info', 'text')
    try:
        raise ValueError('x\n2026-01-01T00:00:00.000Z INFO forged')
    except ValueError:
        log.exception('failed')
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 3
    assert all(line.startswith('  ') for line in lines[1:])


def test_json(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr('debug', 'json')
    log.debug('a\n"b" ü')
    try:
        raise ValueError('x\ny')
    except ValueError:
        log.exception('failed')
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert re.fullmatch(r'.*T.*Z', first.pop('time'))
    assert first == {'level': 'debug', 'logger': 'acklog.test', 'message': 'a\\n"b" ü'}
    assert second['traceback'].endswith('ValueError: x\ny')


async def test_client_ids_cannot_forge_lines(
    serve: Serve, log: logging.Logger, capfd: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr('debug', 'text')
    server = await serve()
    for client_id in ('x\n2026-01-01T00:00:00.000Z ERROR forged', 'y' * 32_000):
        raw = await Raw.connect(address_of(server))
        await raw.send(raw.frame(METADATA, 12, {'topics': []}, client_id))
        await raw.answer(METADATA, 12)
        await raw.send(b'\xff\xff\xff\xff')
        assert await raw.closed()
    lines = [line for line in capfd.readouterr().err.splitlines() if 'closing the connection' in line]
    assert len(lines) == 2
    assert r'(x\n2026-01-01T00:00:00.000Z ERROR forged)' in lines[0]
    assert len(lines[1]) < 300


@pytest.mark.system
@pytest.mark.parametrize('layout', ['text', 'json'])
def test_the_process_writes_its_log_to_stderr_and_nothing_else(layout: str, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / 'data', {'log.format': layout, 'log.level': 'debug'})
    server.start()
    server.stop()
    lines = server.stderr().splitlines()
    assert len(lines) >= 2
    if layout == 'json':
        assert {json.loads(line)['logger'] for line in lines} >= {'acklog.server'}
    else:
        assert all(re.match(r'\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ \w', line) for line in lines)


@pytest.mark.system
@pytest.mark.parametrize('closed', ['>&-', '2>&-', '<&- >&- 2>&-', '>/dev/full 2>/dev/full', '| true'])
def test_it_runs_where_nobody_listens_to_it(closed: str, tmp_path: Path) -> None:
    """Without stdout, without stderr, with either full or broken: it starts, and stops cleanly when told."""
    data = tmp_path / 'data'
    server = f'{sys.executable} -m acklog serve --data {data} --listen 127.0.0.1:0 --set http=off'
    command = ['bash', '-c', f'set -o pipefail; {server} {closed}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 20
        while not (data / 'logs/__catalog').exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(int((data / 'lock').read_text()), signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert 'Traceback' not in err
    assert (data / 'clean').exists()
    for path in data.rglob('*'):
        assert not path.is_file() or b'INFO' not in path.read_bytes()
