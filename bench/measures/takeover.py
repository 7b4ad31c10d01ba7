"""kill -9 of a share consumer that holds records, until another member of its group has them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from confluent_kafka import ShareConsumer
from stock import Target, first_batch, member, percentile, publish

TIMES = 5
HOLDER = Path(__file__).parents[1] / 'holder.py'


def measure(target: Target) -> dict[str, float]:
    topic = target.topic(1)
    publish(target, topic, 1, 100)
    times = []
    with member(target, topic) as heir:
        first_batch(heir)
        for _ in range(TIMES):
            heir.commit_sync(10.0)
            times.append(_once(target, topic, heir) * 1e3)
    return {'takeover_p50': percentile(times, 50), 'takeover_max': max(times)}


def _once(target: Target, topic: str, heir: ShareConsumer) -> float:
    """Seconds from the kill until the heir has the records."""
    command = [sys.executable, str(HOLDER), target.address, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        while not holder.stdout.readline().startswith('member'):
            time.sleep(0.01)
        time.sleep(0.7)  # the heir's own long poll has ended: the records go to the holder
        publish(target, topic, 10, 100)
        holder.stdout.readline()  # it holds them
        killed_at: list[float] = []

        def kill() -> None:
            killed_at.append(time.perf_counter())
            holder.kill()

        timer = threading.Timer(0.1, kill)  # by then the heir waits in its poll
        timer.start()
        deadline = time.monotonic() + 60
        got = 0
        while got < 10 and time.monotonic() < deadline:
            got += len(heir.poll(1.0))
        arrived = time.perf_counter()
        timer.join()
    if got < 10:
        raise RuntimeError('nobody took over')
    return arrived - killed_at[0]
