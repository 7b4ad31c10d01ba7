"""The servers that are compared, behind one face: start, kill, start again, address, and what they cost.

Kafka is run as its launcher (bench/kafka/kafka) runs it, but started from here, so that both servers are timed alike:
from the start of the process until it answers its first ApiVersions request.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from acklog.testing import usage
from acklog.testing.process import ServerProcess

LAUNCHER = Path(__file__).with_name('kafka') / 'kafka'
API_VERSIONS = struct.pack('>hhih', 18, 0, 1, -1)  # key, version, correlation id, no client id


class Server(Protocol):
    """One server over one directory."""

    name: str
    pid: int

    @property
    def address(self) -> str: ...

    @property
    def http(self) -> str:
        """Where HTTP is, as http://HOST:PORT; '' for nowhere."""
        ...

    def start(self) -> float:
        """Start it. Returns the seconds until it answered."""
        ...

    def kill(self) -> None:
        """kill -9."""
        ...

    def stop(self) -> float:
        """SIGTERM. Returns the seconds until it has ended."""
        ...

    def remove(self) -> None:
        """Kill it and remove its files."""
        ...


class Acklog:
    """acklog as `acklog serve` starts it, with its defaults; HTTP too, on a free port."""

    name = 'acklog'

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix='acklog-', dir=folder))
        self._process = ServerProcess(
            self._folder / 'data', {'http': '127.0.0.1:0', **(settings or {})}, port=free_port()
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def address(self) -> str:
        return self._process.address

    @property
    def http(self) -> str:
        return self._process.http

    def start(self) -> float:
        begun = time.monotonic()
        self._process.start(120)
        return wait_for_answer(self.address, begun)

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> float:
        return self._process.stop()

    def remove(self) -> None:
        self._process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class Kafka:
    """Apache Kafka: one node, its defaults, except for what `bench/kafka/kafka` sets (one replica, short waits)."""

    name = 'Kafka'

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix='kafka-', dir=folder))
        self._dir = self._folder / 'instance'
        self._port = free_port(also=10)
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._libs = run_launcher('fetch')

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> str:
        return f'127.0.0.1:{self._port}'

    @property
    def http(self) -> str:
        return ''

    def start(self) -> float:
        if not self._dir.exists():
            self._format()
        launcher_env = {**os.environ, 'KAFKA_LOG_LEVEL': 'warn'}
        command = ['java', '-Xmx512m', '-Xms512m', '-XX:+UseG1GC', '-XX:+ExitOnOutOfMemoryError']
        command += [f'-Dlog4j2.configurationFile={LAUNCHER.parent / "log4j2.properties"}', '-cp', f'{self._libs}/*']
        command += ['kafka.Kafka', str(self._dir / 'server-0.properties')]
        begun = time.monotonic()
        with (self._dir / 'server-0.log').open('ab') as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=launcher_env,
                start_new_session=True,
            )
        return wait_for_answer(self.address, begun)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> float:
        begun = time.monotonic()
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        return time.monotonic() - begun

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _format(self) -> None:
        sets = [word for name, value in self._settings.items() for word in ('--set', f'{name}={value}')]
        run_launcher('format', '--port', str(self._port), '--dir', str(self._dir), *sets)


def run_launcher(*arguments: str) -> str:
    """Run bench/kafka/kafka. Returns what it printed; raises RuntimeError with its stderr."""
    done = subprocess.run([str(LAUNCHER), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'bench/kafka/kafka {arguments[0]}: {done.stderr.strip()}')
    return done.stdout.strip()


def kafka_missing() -> str | None:
    """Why Kafka cannot be run here; None when it can."""
    for program in ('java', 'mvn'):
        if shutil.which(program) is None:
            return f'{program} is not installed'
    try:
        run_launcher('fetch')
    except RuntimeError as error:
        return f'its jars cannot be had: {error}'
    return None


def wait_for_answer(address: str, begun: float, timeout_s: float = 120.0) -> float:
    """Ask ApiVersions until it is answered. Returns the seconds since `begun`."""
    host, _, port = address.rpartition(':')
    while time.monotonic() < begun + timeout_s:
        try:
            with socket.create_connection((host, int(port)), 1.0) as connection:
                connection.settimeout(5.0)
                connection.sendall(struct.pack('>i', len(API_VERSIONS)) + API_VERSIONS)
                if connection.recv(4):
                    return time.monotonic() - begun
        except OSError:
            time.sleep(0.002)
    raise TimeoutError(f'no answer from {address} within {timeout_s} s')


def free_port(also: int = 0) -> int:
    """A port that is free now, and so is the one `also` above it."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(('127.0.0.1', 0))
            port: int = one.getsockname()[1]
            if not also:
                return port
            try:
                other.bind(('127.0.0.1', port + also))
            except OSError:
                continue
            return port


def cpu_seconds(server: Server) -> float:
    return usage.cpu_seconds(server.pid)


def resident_mb(server: Server) -> float:
    return usage.resident_bytes(server.pid) / 1e6


SERVERS: Sequence[type[Acklog] | type[Kafka]] = (Acklog, Kafka)
