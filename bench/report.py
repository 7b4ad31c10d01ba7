"""What the benchmarks that print a table have in common: their options, and what they say in the end."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from figures import Figure
from table import render

Results = dict[str, dict[str, list[float]]]  # by server and figure, a value for each round


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def arguments(prog: str, words: str | None, measures: Sequence[str], rounds: int) -> argparse.ArgumentParser:
    """The options that all of them have. `rounds`: how many, unless said otherwise."""
    parser = argparse.ArgumentParser(prog=prog, description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--only', type=_names_in(measures), default=list(measures), metavar='NAMES')
    parser.add_argument('--rounds', type=int, default=rounds)
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--folder', help='where the servers keep their files (a temporary directory)')
    parser.add_argument('--cpus', default=','.join(map(str, sorted(os.sched_getaffinity(0)))))
    return parser


def _names_in(measures: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names of `measures` with commas between."""

    def names(text: str) -> list[str]:
        names = text.split(',')
        unknown = [name for name in names if name not in measures]
        if unknown:
            raise argparse.ArgumentTypeError(f'no measurement {", ".join(unknown)}; there are: {", ".join(measures)}')
        return names

    return names


def _python() -> str:
    """Its version, and how fast it is: builds differ."""
    count = 200_000

    def add() -> float:
        begun, total = time.perf_counter(), 0
        for number in range(count):
            total += number
        return time.perf_counter() - begun

    return f'Python {platform.python_version()} ({count / min(add() for _ in range(20)) / 1e6:.0f} M additions/s)'


def report(
    figures: Sequence[Figure], results: Results, failures: Sequence[str], rounds: int, options: argparse.Namespace
) -> int:
    """Print the table and what failed, and write all values where they are asked for; returns the exit code."""
    machine = f'{os.cpu_count()} cores ({platform.machine()}), {platform.system()} {platform.release()}, {_python()}'
    many = f'medians of {rounds} rounds' if rounds > 1 else '1 round'
    print(f'\n{machine}; {many}{", quick" * options.quick}\n')
    print(render(figures, results))
    for failure in failures:
        print(f'FAILED {failure}')
    if options.json:
        Path(options.json).write_text(json.dumps({'machine': machine, 'rounds': results}, indent=1) + '\n')
    return 1 if failures else 0
