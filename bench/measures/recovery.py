"""From the start after a kill -9 under load to the first answer, with 1 GB in 100 partitions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from servers import Server

GIGABYTE, SIZE, PARTITIONS = 1_000_000_000, 1000, 100
WRITER = Path(__file__).parents[1] / 'writer.py'


def measure_server(factory: Callable[[], Server], scale: float) -> dict[str, float]:
    server = factory()
    try:
        server.start()
        count = int(GIGABYTE / SIZE * scale)
        command = [sys.executable, str(WRITER), server.address, str(count), str(SIZE), str(PARTITIONS)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            if not writer.stdout.readline().startswith('written'):
                raise RuntimeError('the writer gave up')
            server.kill()  # it is still writing
            writer.kill()
        return {'recovery': server.start()}
    finally:
        server.remove()
