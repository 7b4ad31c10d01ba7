"""Run one measurement in a process of its own: `client.py MEASURE ADDRESS HTTP PID SCALE CPUS`; prints its figures as
JSON.

The process is pinned to the same cores for every server, and its own processes inherit that."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys

from servers import Server
from stock import Target

TIMEOUT_S = 900


def figures_of(name: str, server: Server, scale: float, cpus: str) -> dict[str, float]:
    """What a measurement gives. Raises RuntimeError with what it wrote to stderr."""
    command = [sys.executable, __file__, name, server.address, server.http, str(server.pid), str(scale), cpus]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f'not done after {TIMEOUT_S} s') from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(error.stderr.strip().splitlines()[-1]) from None
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    name, address, http, pid, scale, cpus = sys.argv[1:7]
    os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(',')})
    measure = importlib.import_module(f'measures.{name}').measure
    print(json.dumps(measure(Target(address, int(pid), float(scale), http))))


if __name__ == '__main__':
    main()
