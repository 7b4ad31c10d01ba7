"""From the publish call to the delivery in a share consumer of another process, at 1,000 records per second."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from stock import Target, first_batch, member, percentile

RATE, RECORDS, WARM_UP = 1000, 5_000, 500
SENDER = Path(__file__).parents[1] / 'sender.py'


def measure(target: Target) -> dict[str, float]:
    count = WARM_UP + target.records(RECORDS)
    topic = target.topic(1)
    times: list[float] = []
    command = [sys.executable, str(SENDER), target.address, topic, str(count), str(RATE)]
    with member(target, topic) as consumer, subprocess.Popen(command, stdin=subprocess.PIPE) as sender:
        first_batch(consumer)  # the sender sends one to begin with, and waits until it has arrived
        consumer.commit_sync(10.0)
        assert sender.stdin is not None
        sender.stdin.write(b'\n')
        sender.stdin.close()
        deadline = time.monotonic() + 60
        while len(times) < count and time.monotonic() < deadline:
            messages = consumer.poll(1.0)
            now = time.monotonic_ns()
            times += [(now - int(message.value())) / 1e3 for message in messages]
        sender.wait(30)
    times = times[WARM_UP:]
    return {'end_to_end_p50': percentile(times, 50), 'end_to_end_p99': percentile(times, 99)}
