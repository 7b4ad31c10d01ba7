"""Run one measurement in this process: `client.py MEASURE ADDRESS PID SCALE CPUS`; prints its figures as JSON.

The process is pinned to the same cores for every server, and its own processes inherit that."""

from __future__ import annotations

import importlib
import json
import os
import sys

from stock import Target


def main() -> None:
    name, address, pid, scale, cpus = sys.argv[1:6]
    os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(',')})
    measure = importlib.import_module(f'measures.{name}').measure
    print(json.dumps(measure(Target(address, int(pid), float(scale)))))


if __name__ == '__main__':
    main()
