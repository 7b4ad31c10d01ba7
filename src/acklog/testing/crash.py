"""`python -m acklog.testing.crash --rounds 50 --seed 1`: kill -9 of a server under load, again and again.

Strategy: publishers and subscribers work without a pause, from before the first kill until after the last. In each
round the server runs for a random while under load and is killed; sometimes it is killed again while it is still
starting, and sometimes a subscriber is killed too, so that others take over what it held. In the end the publishers
finish, everything is signed off, and the checker (acklog.testing.checker) must have found nothing lost and nothing
delivered again after a confirmed accept. The times of the kills come from the seed; what the processes do meanwhile
does not, so a seed repeats a schedule, not a run.

Exit code 0 when nothing was found, 1 when something was (the folder of the run is kept), 2 when it could not be run.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from acklog.testing.load import Load, Plan
from acklog.testing.process import ServerFailed, ServerProcess
from acklog.testing.stock_client import NoStockClient, require, stored_places
from acklog.testing.verdict import Verdict

SUBSCRIBER_DIES = 0.5  # of the rounds
DIES_WHILE_STARTING = 0.15  # of the rounds
HISTOGRAM_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)
TAKEOVER_TIMEOUT_S = 15.0
RATE = 6000.0  # records per second
LIFE_S = (0.05, 1.5)  # of a server under load
AGAIN_TIMEOUT_S = 30.0  # until something is confirmed after a kill
FINISH_TIMEOUT_S = 120.0

Say = Callable[[str], None]


@dataclass(slots=True)
class CrashReport:
    """What came out of all rounds. Times in seconds."""

    verdict: Verdict = field(default_factory=Verdict)
    server_kills: int = 0
    subscriber_kills: int = 0
    restarts: list[float] = field(default_factory=list)  # until the server was ready
    takeovers: list[float] = field(default_factory=list)  # per record, from the kill of its subscriber
    not_taken_over: int = 0  # records that nobody had TAKEOVER_TIMEOUT_S after the kill of their subscriber
    stalled: list[str] = field(default_factory=list)  # where nothing went on in time
    tracebacks: int = 0

    @property
    def ok(self) -> bool:
        return self.verdict.ok and not (self.stalled or self.tracebacks or self.not_taken_over)


class CrashTest:
    """The rounds, over a `server` that is not started yet."""

    def __init__(self, server: ServerProcess, plan: Plan, folder: Path, say: Say) -> None:
        self._server, self._plan, self._folder, self._say = server, plan, folder, say
        self._random = random.Random(plan.seed)
        self._report = CrashReport()

    def run(self, rounds: int) -> CrashReport:
        self._server.start()
        with Load(self._plan, self._server.address, self._folder) as load:
            load.prepare()
            load.begin()
            load.until(lambda: load.checker.accepted > 0, AGAIN_TIMEOUT_S)
            for number in range(1, rounds + 1):
                self._round(load, number)
            if not load.finish(FINISH_TIMEOUT_S):
                self._report.stalled.append(f'in the end, with {load.checker.open()} records not signed off')
            load.end_subscribers()
            load.checker.compare_log(stored_places(self._server.address, self._plan.topic))
            self._report.verdict = load.checker.verdict()
        self._report.tracebacks = self._server.tracebacks()
        self._server.stop()
        return self._report

    def _round(self, load: Load, number: int) -> None:
        life = self._random.uniform(*LIFE_S)
        subscriber_dies = self._random.random() < SUBSCRIBER_DIES
        dies_while_starting = self._random.random() < DIES_WHILE_STARTING
        until = time.monotonic() + life
        load.until(lambda: time.monotonic() >= until, life + 1)
        if subscriber_dies:
            self._kill_subscriber(load)
        self._server.kill()
        self._report.server_kills += 1
        if dies_while_starting:
            self._die_while_starting()
        checker = load.checker
        checker.mark(time.monotonic())
        self._report.restarts.append(self._server.start())
        if not load.until(lambda: bool(checker.confirms.first and checker.accepts.first), AGAIN_TIMEOUT_S):
            self._report.stalled.append(f'in round {number}')
        self._say(
            f'round {number}: lived {life:.2f} s, ready {self._report.restarts[-1]:.2f} s after its new start; '
            f'{checker.confirmed:,} published, {checker.accepted:,} signed off'
        )

    def _kill_subscriber(self, load: Load) -> None:
        before = len(load.checker.takeovers)
        load.kill_subscriber_at_work(wait_s=2.0)
        load.until(lambda: not load.checker.waiting_for_takeover(), TAKEOVER_TIMEOUT_S)
        self._report.not_taken_over += load.checker.waiting_for_takeover()
        self._report.takeovers += load.checker.takeovers[before:]
        self._report.subscriber_kills += 1
        load.add_subscriber()

    def _die_while_starting(self) -> None:
        process = ServerProcess(self._server.directory, self._server.settings, port=self._server.port)
        with contextlib.suppress(ServerFailed):  # not ready yet when it is killed, which is what this is about
            process.start(self._random.uniform(0.01, 0.3))
        process.kill()
        self._report.server_kills += 1


def histogram(times: Sequence[float]) -> str:
    """How long takeovers took, in words and bars."""
    if not times:
        return '  no records were taken over'
    lines, left = [], sorted(times)
    for limit in HISTOGRAM_MS:
        below = [t for t in left if t * 1000 < limit]
        left = left[len(below) :]
        lines.append(f'  < {limit:>5} ms {len(below):>7}  {"#" * round(50 * len(below) / len(times))}')
    lines.append(f'  longer    {len(left):>8}')
    ordered = sorted(times)
    p50, p99 = statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return '\n'.join([*lines, f'  p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, max {ordered[-1] * 1000:.1f} ms'])


def as_text(report: CrashReport) -> str:
    """The figures and what is wrong, for people."""
    rows = {**asdict(report.verdict), 'server_kills': report.server_kills, 'subscriber_kills': report.subscriber_kills}
    rows.pop('examples')
    lines = [f'  {name.replace("_", " "):<22} {value:>10,}' for name, value in rows.items()]
    if report.restarts:
        lines.append(f'  {"slowest restart":<22} {max(report.restarts):>9.2f}s')
    lines += ['takeover of the records of a killed subscriber:', histogram(report.takeovers)]
    lines += [f'NOT RIGHT: nothing went on {where}' for where in report.stalled]
    lines += [f'NOT RIGHT: {kind}: records {records}' for kind, records in report.verdict.examples.items()]
    if report.not_taken_over:
        lines.append(f'NOT RIGHT: {report.not_taken_over} records of killed subscribers came to nobody in time')
    if report.tracebacks:
        lines.append(f'NOT RIGHT: the server printed {report.tracebacks} tracebacks')
    lines.append('nothing lost, nothing delivered again after its accept' if report.ok else 'FAILED')
    return '\n'.join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog='acklog.testing.crash', description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--rounds', type=int, default=50)
    parser.add_argument('--seed', type=int, default=None, help='of the schedule (random, and printed)')
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    try:
        require()
    except NoStockClient as error:
        sys.stderr.write(f'{error}\n')
        return 2
    folder = Path(tempfile.mkdtemp(prefix='acklog-crash-'))
    server = ServerProcess(folder / 'data')

    def say(words: str) -> None:
        sys.stdout.write(words + '\n')
        sys.stdout.flush()

    say(f'{options.rounds} rounds, seed {seed}')
    report = None
    try:
        # Publishers are held back, or subscribers would have to catch up for as long as the rounds took.
        plan = Plan(rate=RATE, work_ms=2.0, batch=500, seed=seed)
        report = CrashTest(server, plan, folder / 'diaries', say).run(options.rounds)
    finally:
        server.kill()
        if report is not None and report.ok:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            sys.stderr.write(f'kept: {folder}\n')
    say(as_text(report))
    return 0 if report.ok else 1


if __name__ == '__main__':
    sys.exit(main())
