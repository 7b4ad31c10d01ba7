"""10,000 partitions: start after a clean stop, memory and CPU when idle. acklog only."""

from __future__ import annotations

import time
from collections.abc import Callable

from servers import Server, cpu_seconds, resident_mb

from acklog.testing.stock_client import create_topic

TOPICS, PARTITIONS = 10, 1000
ONLY = 'acklog'
IDLE_S = 5.0


def measure_server(factory: Callable[[], Server], scale: float) -> dict[str, float]:
    server = factory()
    try:
        server.start()
        for number in range(max(1, int(TOPICS * scale))):
            create_topic(server.address, f'many-{number}', PARTITIONS)
        server.stop()
        seconds = server.start()
        time.sleep(1.0)
        memory, cpu = resident_mb(server), cpu_seconds(server)
        time.sleep(IDLE_S)
        return {
            'many_start': seconds,
            'many_mb': memory,
            'many_idle_cpu': (cpu_seconds(server) - cpu) / IDLE_S * 100,
        }
    finally:
        server.remove()
