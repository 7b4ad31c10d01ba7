"""A real server in a process of its own, that can be killed and started again at the same place.

Strategy: the server is started as anybody starts it, `python -m acklog serve`, on a free port. It is ready when it has
said so on stdout; from then on it keeps the ports that it got, so that clients find it again after `kill` and `start`.
Its stderr goes to a file beside the data directory, over all its lives, for whoever wants to know why. A traceback in
it is a bug of the server, whatever the test says: `stop` and `tracebacks` tell.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from acklog.testing import usage

READY = re.compile(
    r'^acklog (\S+) is ready on (\S*):(\d+)(?: \(clients are told \S+\))?(?:, HTTP on (http://\S+))?, data in (.*)$'
)


class ServerFailed(AssertionError):
    """The server did not start, ended by itself, or did not end when told; carries the end of its stderr."""


class ServerProcess:
    """One server over one data directory; start it as often as needed, one life at a time."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        settings: Mapping[str, object] | None = None,
        *,
        host: str = '127.0.0.1',
        port: int = 0,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing is started yet. `settings` become `--set NAME=VALUE`, with no HTTP unless they name `http`; `options`
        are added to the command line as they are; `port` 0 takes a free one at the first start."""
        self.directory = Path(directory)
        self.settings = {'http': 'off', **(settings or {})}
        self.host, self.port = host, port
        self.options = list(options)
        self.environment = dict(environment or {})
        self.stderr_file = self.directory.with_name(self.directory.name + '.stderr')
        self.version = ''
        self.http = ''  # where HTTP is, as http://HOST:PORT; '' for nowhere
        self.lives = 0  # how often it has been started
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def address(self) -> str:
        """HOST:PORT, as clients take it for `bootstrap.servers`."""
        return f'{self.host}:{self.port}'

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFailed('the server is not running')
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = 30.0) -> float:
        """Start and wait until it says that it is ready. Returns the seconds this took; raises ServerFailed."""
        if self._process is not None:
            raise ServerFailed('the server is running already')
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        with self.stderr_file.open('ab') as stderr:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **self.environment},
                start_new_session=True,  # a Ctrl-C at the terminal is for whoever runs us, not for the server
            )
        self.lives += 1
        self._wait_until_ready(begun + timeout_s)
        return time.monotonic() - begun

    def kill(self) -> None:
        """kill -9, and wait until it is gone. Nothing happens when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        _close(process.stdout)

    def stop(self, timeout_s: float = 10.0) -> float:
        """SIGTERM, and wait until it has ended. Returns the seconds this took.

        Raises ServerFailed if it does not end in time (it is killed then), ends with another exit code than 0, or has
        printed a traceback in any of its lives."""
        process = self._process
        if process is None:
            raise ServerFailed('the server is not running')
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(f'not stopped {timeout_s} s after SIGTERM\n{self.last_words()}') from None
        self._process = None
        _close(process.stdout)
        if code != 0:
            raise ServerFailed(f'ended with exit code {code}\n{self.last_words()}')
        if self.tracebacks():
            raise ServerFailed(f'printed a traceback\n{self.last_words()}')
        return time.monotonic() - begun

    def restart(self, timeout_s: float = 30.0) -> float:
        """kill -9 and start at the same place. Returns the seconds from the start until it was ready."""
        self.kill()
        return self.start(timeout_s)

    def stderr(self) -> str:
        """What it has written to stderr in all its lives."""
        return self.stderr_file.read_text(errors='replace') if self.stderr_file.exists() else ''

    def tracebacks(self) -> int:
        """How many tracebacks it has printed in all its lives."""
        return self.stderr().count('Traceback (most recent call last)')

    def last_words(self, lines: int = 60) -> str:
        """The end of its stderr."""
        return '\n'.join(self.stderr().splitlines()[-lines:])

    def cpu_seconds(self) -> float:
        """CPU that the present life has used; see usage.cpu_seconds."""
        return usage.cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        """Memory that it has in use; see usage.resident_bytes."""
        return usage.resident_bytes(self.pid)

    def _command(self) -> list[str]:
        command = [sys.executable, '-m', 'acklog', 'serve', '--data', str(self.directory)]
        command += ['--listen', self.address]
        for name, value in self.settings.items():
            command += ['--set', f'{name}={value}']
        return command + self.options

    def _wait_until_ready(self, deadline: float) -> None:
        process = self._process
        assert process is not None and process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(max(0.0, deadline - time.monotonic())) else None
        ready = READY.match(line.rstrip('\n')) if line else None
        if ready is None:
            self.kill()
            what = 'did not get ready in time' if line is None else f'said {line!r}' if line else 'ended at once'
            raise ServerFailed(f'the server {what}\n{self.last_words()}')
        self.version, self.port, self.http = ready[1], int(ready[3]), ready[4] or ''
        if self.http:
            self.settings['http'] = self.http.removeprefix('http://')


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()
