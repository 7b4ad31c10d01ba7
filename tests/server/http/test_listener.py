"""Where HTTP listens, and when not."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from acklog.broker.configs import Settings
from acklog.server.http import address
from acklog.testing.process import ServerFailed, ServerProcess


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.system
def test_the_ready_line_names_it_and_a_stop_ends_it(tmp_path: Path) -> None:
    process = ServerProcess(tmp_path / 'data', {'http': '127.0.0.1:0'})
    process.start()
    try:
        assert process.http.startswith('http://127.0.0.1:')
        assert httpx.get(f'{process.http}/v1').json()['kafka'] == process.address
        process.stop()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f'{process.http}/v1')
        assert 'uvicorn' not in process.stderr()
    finally:
        process.kill()


@pytest.mark.system
def test_a_port_that_was_asked_for_must_be_free(tmp_path: Path, taken: int) -> None:
    process = ServerProcess(tmp_path / 'data', {'http': f'127.0.0.1:{taken}'})
    with pytest.raises(ServerFailed, match=f'cannot listen on 127.0.0.1:{taken}: .*http=127.0.0.1:{taken}'):
        process.start()


async def test_no_port_that_nobody_asked_for_keeps_the_server_from_starting(
    taken: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(address, 'configured', lambda _: ('127.0.0.1', taken))
    assert address.bind(Settings()) == ()
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(f'no HTTP: cannot listen on 127.0.0.1:{taken}')


@pytest.mark.parametrize(
    ('text', 'address_of_it'),
    [('127.0.0.1:8080', ('127.0.0.1', 8080)), ('[::1]:0', ('::1', 0)), (':0', ('', 0)), ('off', None), ('', None)],
)
def test_the_setting(text: str, address_of_it: tuple[str, int] | None) -> None:
    assert address.configured(Settings({'http': text})) == address_of_it


def test_the_default_is_for_this_machine_only() -> None:
    assert address.configured(Settings()) == ('127.0.0.1', 8080)


def test_a_server_that_nobody_talks_http_to_has_not_loaded_it() -> None:
    """What is imported is paid for at every start."""
    code = (
        'import sys, acklog.server.run;'
        'print(sorted({name.partition(".")[0] for name in sys.modules} & {"starlette", "uvicorn", "msgspec", "h11"}))'
    )
    ran = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert ran.stdout == '[]\n'
