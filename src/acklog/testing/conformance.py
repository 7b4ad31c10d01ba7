"""`python -m acklog.testing.conformance --suites FOLDER [--bootstrap HOST:PORT] [NAMES]`: outside clients' own tests.

The folder holds, for each client's suite, how to run it against an address (`run NAME ADDRESS`) and how it fares on
Apache Kafka (`compare NAME REPORT`). What passes there and not here is listed. Without an address each suite gets an
acklog of its own, set as that suite wants its server.

Two files name tests (see `listed_tests`): `--tests FILE` those to be run, instead of all; `--allowed FILE` those that
are known not to pass, with the reasons. Of these only the number is shown, by reason, and which ones pass meanwhile;
those whose reason begins with `left out`, and others whose ids begin like theirs, are not run with the rest (one that
crashes its client ends the run, one that waits in vain takes minutes).

Exit code 0 when everything that passes on Kafka passes here or is allowed not to, 1 when not, 2 when the folder or a
file is not what it must be.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from acklog.testing.listed_tests import by_suite, read_tests
from acklog.testing.process import ServerProcess

WORSE = re.compile(r'(?:fail|skip|flaky) +(\S.*)')  # how `compare` names a test

LEFT_OUT = 'left out'

# What the suites want of a server beyond its defaults.
SETTINGS: Mapping[str, Mapping[str, object]] = {
    'confluent-share': {'group.share.record.lock.duration.ms': 1000, 'group.share.heartbeat.interval.ms': 1000},
    'aiokafka': {'num.partitions': 2},
}


def names_in(suites: Path) -> list[str]:
    """The suites that the folder holds."""
    return sorted(path.parent.name for path in suites.glob('*/suite.sh'))


def run_suite(
    suites: Path, name: str, address: str, report: Path, tests: Sequence[str], allowed: Mapping[str, str]
) -> bool:
    """Run one suite and compare it with Kafka; what it says goes to stdout. `allowed`: reasons by test. Returns whether
    nothing is worse than on Kafka or than allowed."""
    environment = {**os.environ, 'JUNIT_XML': str(report)}
    subprocess.run([str(suites / 'run'), name, address, *tests], env=environment, check=False)
    if not report.exists():
        print(f'{name}: no report, so it has not run')
        return False
    compare = [str(suites / 'compare'), name, str(report)]
    compared = subprocess.run(compare, stdout=subprocess.PIPE, text=True, check=False)
    worse, rest = _worse(compared.stdout)
    for test, words in worse.items():
        if test not in allowed:
            print(words)
    print(rest)
    reasons = Counter(allowed[test] for test in worse if test in allowed)
    for reason, count in reasons.most_common():
        print(f'{count} allowed not to: {reason}')
    if all(test.startswith('-') for test in tests):
        for test in sorted(allowed.keys() - worse.keys()):
            if not allowed[test].startswith(LEFT_OUT):
                print(f'allowed not to pass, and passes: {test}')
    return compared.returncode in (0, 1) and worse.keys() <= allowed.keys()


def _worse(compared: str) -> tuple[dict[str, str], str]:
    """What `compare` says of each test that is worse than on Kafka, and what it says besides."""
    worse: dict[str, str] = {}
    rest: list[str] = []
    test = ''
    for line in compared.splitlines():
        if found := WORSE.match(line):
            test = found[1]
            worse[test] = line
        elif test and line.startswith(' '):
            worse[test] += f'\n{line}'
        else:
            test = ''
            rest.append(line)
    return worse, '\n'.join(rest)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='acklog.testing.conformance')
    parser.add_argument('--suites', type=Path, required=True, help='the folder of the suites')
    parser.add_argument('--bootstrap', help='the server, HOST:PORT; without it one is started for each suite')
    parser.add_argument('--reports', type=Path, help='where the JUnit reports go (a temporary folder)')
    parser.add_argument('--tests', type=Path, help='a file that names the tests to be run')
    parser.add_argument('--allowed', type=Path, help='a file that names tests which are known not to pass, and why')
    parser.add_argument('--test', action='append', default=[], help='only this test, as `compare` prints it')
    parser.add_argument('names', nargs='*', help='the suites (all)')
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    options = _options(arguments)
    try:
        chosen = by_suite(read_tests(options.tests)) if options.tests else {}
        allowed = by_suite(read_tests(options.allowed)) if options.allowed else {}
    except (OSError, ValueError) as error:
        sys.stderr.write(f'{error}\n')
        return 2
    known = names_in(options.suites)
    names = options.names or list(chosen) or known
    unknown = [name for name in names if name not in known]
    if not known or unknown:
        sys.stderr.write(f'{options.suites} has no suite {" ".join(unknown)}; it has: {" ".join(known) or "none"}\n')
        return 2
    worse = []
    with tempfile.TemporaryDirectory(prefix='acklog-conformance-') as temporary:
        folder = Path(temporary)
        reports = (options.reports or folder).resolve()
        reports.mkdir(parents=True, exist_ok=True)
        for name in names:
            print(f'--- {name}', flush=True)
            tests = [*options.test, *(test.id for test in chosen.get(name, ()))]
            reasons = {test.id: test.reason for test in allowed.get(name, ())}
            if not tests:
                tests = [f'--deselect={test}' for test, reason in reasons.items() if reason.startswith(LEFT_OUT)]
            with ExitStack() as stack:
                own = None
                if not options.bootstrap:
                    own = stack.enter_context(ServerProcess(folder / name / 'data', SETTINGS.get(name, {})))
                address = own.address if own else options.bootstrap
                report = reports / f'{name}.xml'
                if not run_suite(options.suites.resolve(), name, address, report, tests, reasons):
                    worse.append(name)
                    if own:
                        print(f'the last words of its server:\n{own.last_words()}')
    print(f'not as on Kafka: {" ".join(worse) or "nothing"}')
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())
