"""Measure redelivery, waiting, holding and redrive, and the own client: `python bench/redelivery.py` (or
`make bench-redelivery`).

Each measurement has a fresh server with its defaults and a client process of its own, with the own client or the stock
client as it says. One table comes out: the figures, their goals, and whether these are reached. Wall times mean
something only on a machine that has nothing else to do: four processes are at work here, for a few minutes.

    --quick          a tenth of the records: a look, not a measurement
    --only NAMES     some measurements, with commas between
    --rounds N       so many rounds (1); the table has their medians
    --json FILE      write all values there too
    --cpus LIST      the cores of the client processes (all); the server may use any
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from figures import REDELIVERY
from report import Results, arguments, report, say
from servers import Acklog

from client import figures_of

MEASURES = (
    'released', 'later', 'million_waiting', 'storm', 'held', 'redriven', 'questions', 'python_client',
)  # fmt: skip


def measure(name: str, options: argparse.Namespace, folder: Path, results: Results) -> str | None:
    """Note its figures; what went wrong comes back."""
    begun = time.monotonic()
    server = Acklog(folder)
    try:
        server.start()
        figures = figures_of(name, server, 0.1 if options.quick else 1.0, options.cpus)
    except (AssertionError, OSError, RuntimeError, TimeoutError) as error:
        return f'{name}: {error}'
    finally:
        server.remove()
    for figure, value in figures.items():
        results[server.name][figure].append(value)
    say(f'{name} measured in {time.monotonic() - begun:.0f} s')
    return None


def main() -> int:
    options = arguments('bench/redelivery.py', __doc__, MEASURES, rounds=1).parse_args()
    results: Results = defaultdict(lambda: defaultdict(list))
    failures = []
    folder = Path(tempfile.mkdtemp(prefix='acklog-bench-', dir=options.folder))
    try:
        for name in options.only * options.rounds:
            if (failure := measure(name, options, folder, results)) is not None:
                failures.append(failure)
                say(failure)
    except KeyboardInterrupt:
        say('stopped; this is what there is')
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report(REDELIVERY, results, failures, options.rounds, options)


if __name__ == '__main__':
    sys.exit(main())
