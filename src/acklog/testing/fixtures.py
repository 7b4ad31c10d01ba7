"""Fixtures for pytest, there as soon as acklog is installed.

    def test_comes_back_after_six_hours(acklog_server):
        with acklog.connect_sync(acklog_server.address) as client:
            ...
            acklog_server.move(hours=6)

`acklog_server` is a server inside the test's process (acklog.testing.local), `acklog_process` one in a process of its
own that can be killed (acklog.testing.process). Each test has one of its own, empty, on a free port.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acklog.testing.local import LocalServer
    from acklog.testing.process import ServerProcess


@pytest.fixture
def acklog_server() -> Iterator[LocalServer]:
    """A server in this process, whose clock the test moves; everything is in memory."""
    from acklog.testing.local import LocalServer  # half a second that only those pay who use it

    with LocalServer() as server:
        yield server


@pytest.fixture
def acklog_process(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server in a process of its own."""
    from acklog.testing.process import ServerProcess

    with ServerProcess(tmp_path / 'acklog' / 'data') as server:
        yield server
