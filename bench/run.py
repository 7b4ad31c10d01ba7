"""Compare acklog with Apache Kafka on this machine: `python bench/run.py` (or `make bench`).

Both are measured in turn, the same way, by the same stock client, in rounds that alternate between them; each round has
fresh servers with empty directories, warmed up alike. One table with the medians of all rounds comes out. Without Java
and Maven that is said, and acklog is measured alone. Nothing but the table stays behind.

    --quick          one round with a tenth of the records: a look, not a measurement
    --only NAMES     some measurements: those in bench/measures, with commas between
    --rounds N       so many rounds (5)
    --json FILE      write all values there too
    --cpus LIST      the cores of the client processes (all); the servers may use any
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import ModuleType

from disk import fdatasync_us
from figures import FIGURES
from loopback import loopback_us
from report import Results, arguments, report, say
from servers import Acklog, Kafka, Server, kafka_missing, resident_mb

from client import figures_of

MEASURES = (
    'start', 'publish', 'share', 'pair', 'small', 'sync_latency', 'end_to_end', 'new_member', 'takeover', 'recovery',
    'many_partitions',
)  # fmt: skip


class Benchmark:
    """All rounds; a measurement that fails is reported and left out, the others go on."""

    def __init__(self, options: argparse.Namespace, kinds: list[type[Acklog] | type[Kafka]], folder: Path) -> None:
        self._scale = 0.1 if options.quick else 1.0
        self._names: list[str] = options.only
        self._cpus, self._kinds, self._folder = options.cpus, kinds, folder
        self.results: Results = defaultdict(lambda: defaultdict(list))
        self.failures: list[str] = []

    def round(self, number: int) -> None:
        # The order changes from round to round, so that neither is always the one after the other's writes.
        for kind in self._kinds if number % 2 else reversed(self._kinds):
            begun = time.monotonic()
            for name, value in {**fdatasync_us(self._folder), **loopback_us()}.items():
                self.results[kind.name][name].append(value)
            modules = {name: importlib.import_module(f'measures.{name}') for name in self._names}
            for name, module in modules.items():
                if hasattr(module, 'measure_server') and getattr(module, 'ONLY', kind.name) == kind.name:
                    self._measure_server(kind, name, module)
            clients = [name for name, module in modules.items() if hasattr(module, 'measure')]
            if clients:
                self._measure_with_clients(kind, clients)
            say(f'round {number}: {kind.name} measured in {time.monotonic() - begun:.0f} s')

    def _measure_server(self, kind: type[Acklog] | type[Kafka], name: str, module: ModuleType) -> None:
        try:
            self._note(kind.name, module.measure_server(lambda: kind(self._folder), self._scale))
        except (AssertionError, OSError, RuntimeError, TimeoutError) as error:
            self._failed(kind.name, name, str(error))

    def _measure_with_clients(self, kind: type[Acklog] | type[Kafka], names: list[str]) -> None:
        server: Server = kind(self._folder)
        try:
            server.start()
            self._client(server, 'warm_up')
            for name in names:
                self._client(server, name)
            self._note(kind.name, {'after_mb': resident_mb(server)})
        except (AssertionError, OSError, RuntimeError, TimeoutError) as error:
            self._failed(kind.name, 'its start', str(error))
        finally:
            server.remove()

    def _client(self, server: Server, name: str) -> None:
        try:
            self._note(server.name, figures_of(name, server, self._scale, self._cpus))
        except RuntimeError as error:
            self._failed(server.name, name, str(error))

    def _note(self, server: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.results[server][name].append(value)

    def _failed(self, server: str, name: str, words: str) -> None:
        self.failures.append(f'{server}, {name}: {words}')
        say(f'{server}: {name} failed: {words}')


def main() -> int:
    options = _arguments()
    kinds: list[type[Acklog] | type[Kafka]] = [Acklog]
    missing = 'left out, as asked' if options.alone else kafka_missing()
    if missing is None:
        kinds.append(Kafka)
    else:
        say(f'Apache Kafka is not compared: {missing}')
    rounds = 1 if options.quick and not options.rounds else options.rounds or 5
    folder = Path(tempfile.mkdtemp(prefix='acklog-bench-', dir=options.folder))
    benchmark = Benchmark(options, kinds, folder)
    try:
        for number in range(1, rounds + 1):
            benchmark.round(number)
    except KeyboardInterrupt:
        say('stopped; this is what there is')
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report(FIGURES, benchmark.results, benchmark.failures, rounds, options)


def _arguments() -> argparse.Namespace:
    parser = arguments('bench/run.py', __doc__, MEASURES, rounds=0)
    parser.add_argument('--alone', action='store_true', help='acklog only')
    return parser.parse_args()


if __name__ == '__main__':
    sys.exit(main())
