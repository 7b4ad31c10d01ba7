"""From the start of the process to its first answer, with an empty directory; and the memory it has then, idle."""

from __future__ import annotations

import time
from collections.abc import Callable

from servers import Server, resident_mb

SETTLE_S = 2.0


def measure_server(factory: Callable[[], Server], scale: float) -> dict[str, float]:
    server = factory()
    try:
        seconds = server.start()
        time.sleep(SETTLE_S)
        return {'start': seconds, 'idle_mb': resident_mb(server)}
    finally:
        server.remove()
