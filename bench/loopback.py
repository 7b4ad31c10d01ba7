"""How long a few bytes take to another process of this machine and back: what each hop of a request costs by itself,
with nothing done in between."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from stock import percentile

TIMES, BYTES = 3000, 200
ECHO = """
import socket, sys
connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := connection.recv(65536):
    connection.sendall(data)
"""


def loopback_us() -> dict[str, float]:
    times = []
    with (
        socket.create_server(('127.0.0.1', 0)) as server,
        subprocess.Popen([sys.executable, '-c', ECHO, str(server.getsockname()[1])]),
        server.accept()[0] as connection,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(TIMES):
            begun = time.perf_counter()
            connection.sendall(b'x' * BYTES)
            connection.recv(65536)
            times.append((time.perf_counter() - begun) * 1e6)
    return {'loopback_p50': percentile(times, 50), 'loopback_p99': percentile(times, 99)}
