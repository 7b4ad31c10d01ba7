"""`python -m acklog.testing.conformance --suites FOLDER [--bootstrap HOST:PORT] [NAMES]`: outside clients' own tests.

The folder holds, for each client's suite, how to run it against an address (`run NAME ADDRESS`) and how it fares on
Apache Kafka (`compare NAME REPORT`). What passes there and not here is listed. Without an address each suite gets an
acklog of its own, set as that suite wants its server.

Exit code 0 when everything that passes on Kafka passes here, 1 when not, 2 when the folder is not what it must be.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from acklog.testing.process import ServerProcess

# What the suites want of a server beyond its defaults.
SETTINGS: Mapping[str, Mapping[str, object]] = {
    'confluent-share': {'group.share.record.lock.duration.ms': 1000, 'group.share.heartbeat.interval.ms': 1000},
    'aiokafka': {'num.partitions': 2},
}


def names_in(suites: Path) -> list[str]:
    """The suites that the folder holds."""
    return sorted(path.parent.name for path in suites.glob('*/suite.sh'))


def run_suite(suites: Path, name: str, address: str, report: Path, tests: Sequence[str]) -> bool:
    """Run one suite and compare it with Kafka; what it says goes to stdout. Returns whether nothing is worse."""
    environment = {**os.environ, 'JUNIT_XML': str(report)}
    subprocess.run([str(suites / 'run'), name, address, *tests], env=environment, check=False)
    if not report.exists():
        print(f'{name}: no report, so it has not run')
        return False
    return subprocess.run([str(suites / 'compare'), name, str(report)], check=False).returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog='acklog.testing.conformance')
    parser.add_argument('--suites', type=Path, required=True, help='the folder of the suites')
    parser.add_argument('--bootstrap', help='the server, HOST:PORT; without it one is started for each suite')
    parser.add_argument('--reports', type=Path, help='where the JUnit reports go (a temporary folder)')
    parser.add_argument('--test', action='append', default=[], help='only this test, as `compare` prints it')
    parser.add_argument('names', nargs='*', help='the suites (all)')
    options = parser.parse_args(arguments)
    known = names_in(options.suites)
    unknown = [name for name in options.names if name not in known]
    if not known or unknown:
        sys.stderr.write(f'{options.suites} has no suite {" ".join(unknown)}; it has: {" ".join(known) or "none"}\n')
        return 2
    worse = []
    with tempfile.TemporaryDirectory(prefix='acklog-conformance-') as temporary:
        folder = Path(temporary)
        reports = (options.reports or folder).resolve()
        reports.mkdir(parents=True, exist_ok=True)
        for name in options.names or known:
            print(f'--- {name}', flush=True)
            with ExitStack() as stack:
                own = None
                if not options.bootstrap:
                    own = stack.enter_context(ServerProcess(folder / name / 'data', SETTINGS.get(name, {})))
                address = own.address if own else options.bootstrap
                if not run_suite(options.suites.resolve(), name, address, reports / f'{name}.xml', options.test):
                    worse.append(name)
                    if own:
                        print(f'the last words of its server:\n{own.last_words()}')
    print(f'not as on Kafka: {" ".join(worse) or "nothing"}')
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())
