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
import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from figures import REDELIVERY
from run import Results, machine, names_in, say
from servers import Acklog
from table import render

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
    options = _arguments()
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
    print(f'\n{machine()}; {options.rounds} round{"s" * (options.rounds > 1)}{", quick" * options.quick}\n')
    print(render(REDELIVERY, results))
    for failure in failures:
        print(f'FAILED {failure}')
    if options.json:
        Path(options.json).write_text(json.dumps({'machine': machine(), 'rounds': results}, indent=1) + '\n')
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='bench/redelivery.py', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--only', type=names_in(MEASURES), default=list(MEASURES), metavar='NAMES')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--folder', help='where the servers keep their files (a temporary directory)')
    parser.add_argument('--cpus', default=','.join(map(str, sorted(os.sched_getaffinity(0)))))
    return parser.parse_args()


if __name__ == '__main__':
    sys.exit(main())
