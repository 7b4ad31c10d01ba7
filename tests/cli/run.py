"""Running `acklog` in tests: in this process where only parsing counts, else as a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple

from click.testing import CliRunner

from acklog.cli.main import main, root


class Ran(NamedTuple):
    """What came of it."""

    code: int
    out: str
    err: str


def parse(*arguments: str) -> Ran:
    """Run it in this process, as far as click goes: usage errors and help."""
    result = CliRunner().invoke(root, list(arguments), prog_name='acklog')
    return Ran(result.exit_code, result.stdout, result.stderr)


def acklog(*arguments: str, bootstrap: str = '127.0.0.1:1', http: str = 'http://127.0.0.1:1', stdin: str = '') -> Ran:
    """Run it in this process, from `main` on, against a server: a process for each would take most of the time."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin, dict(os.environ)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    os.environ |= {'ACKLOG_BOOTSTRAP': bootstrap, 'ACKLOG_API': http}
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
    finally:
        sys.stdin = before[0]
        for name in ('ACKLOG_BOOTSTRAP', 'ACKLOG_API'):
            os.environ.pop(name)
            if name in before[1]:
                os.environ[name] = before[1][name]
    return Ran(code, out.getvalue(), err.getvalue())


def acklog_process(*arguments: str, bootstrap: str = '127.0.0.1:1', stdin: bytes = b'', seconds: float = 30.0) -> Ran:
    """Run it as a process of its own to its end."""
    process = start(*arguments, bootstrap=bootstrap)
    out, err = process.communicate(stdin, timeout=seconds)
    return Ran(process.returncode, out.decode(), err.decode())


def command(*arguments: str) -> list[str]:
    return [sys.executable, '-m', 'acklog', *arguments]


def environment(bootstrap: str) -> dict[str, str]:
    return {**os.environ, 'ACKLOG_BOOTSTRAP': bootstrap, 'PYTHONWARNINGS': 'error', 'COLUMNS': '100'}


def start(*arguments: str, bootstrap: str) -> subprocess.Popen[bytes]:
    """Start it, for tests that talk to it while it runs."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(bootstrap), bufsize=0
    )


def end(process: subprocess.Popen[bytes], number: int = signal.SIGINT, seconds: float = 20.0) -> Ran:
    """Send it a signal and wait for its end."""
    process.send_signal(number)
    out, err = process.communicate(timeout=seconds)
    return Ran(process.returncode, out.decode(), err.decode())


def until(what: str, condition: object, seconds: float = 15.0) -> None:
    """Wait until the condition holds."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f'not within {seconds} s: {what}'
        time.sleep(0.05)
