"""The line that a server says when it is ready."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system


def test_the_port_that_was_picked_is_said_also_where_clients_are_told_another_one(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / 'data', {'advertise': '127.0.0.1:1'}, host='0.0.0.0') as server:
        socket.create_connection(('127.0.0.1', server.port), timeout=5).close()
