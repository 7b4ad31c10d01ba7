"""What the disk itself takes for a small append and its fdatasync: no acks=all that keeps its word can be faster."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from stock import percentile

TIMES, BYTES = 1000, 200


def fdatasync_us(folder: Path) -> dict[str, float]:
    times = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(TIMES):
            os.write(file.fileno(), b'x' * BYTES)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begun) * 1e6)
    return {'fdatasync_p50': percentile(times, 50), 'fdatasync_p99': percentile(times, 99)}
