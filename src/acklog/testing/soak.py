"""`python -m acklog.testing.soak --seconds 600 --seed 1`: everything at once, for as long as you like.

Strategy: publishers, and subscribers with the stock client and with ours, work on one topic for a group that gives
records back until a time, rejects and redrives; a second group reads the same records and is moved by seeks. Meanwhile
the server and subscribers are killed with kill -9, at random. In the end the second group is moved to the beginning,
dead records are redriven until none is left, and acklog.testing.promises reads all diaries: nothing lost, early, held
by two, or delivered after its accept. What is done when comes from the seed; what the processes do meanwhile does not.

Exit code 0 when nothing was found, 1 when something was (the folder of the run is kept), 2 when it could not be run.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from acklog.client.errors import ClientError
from acklog.client.http import HttpClient, path_of
from acklog.testing.crash import Say, histogram
from acklog.testing.diary import Entry
from acklog.testing.load import Load, Plan
from acklog.testing.process import ServerProcess
from acklog.testing.promises import Events, Findings, Promises, Span
from acklog.testing.stock_client import NoStockClient, configure_group, require, stored_places
from acklog.testing.wall_clock import WallClock

GROUP, MOVED_GROUP = 'billing', 'audit'
RATE = 500.0  # records per second
LIMIT = 12  # failed attempts
LOCK_MS = 10_000
BACKOFF = 'exponential:50ms..1s ~20%'
PAUSE_S = (0.3, 1.8)  # between what is done
OWN = ('--reject', 0.004, '--release', 0.05, '--hold', 0.03)
FINISH_TIMEOUT_S = 120.0

Deed = Literal['kill the server', 'kill a subscriber', 'redrive', 'seek']
DEEDS: tuple[Deed, ...] = ('kill the server', 'kill a subscriber', 'redrive', 'seek', 'redrive', 'kill a subscriber')


@dataclass(slots=True)
class SoakReport:
    """What came out: of the group that works, and of the one that is moved."""

    working: Findings = field(default_factory=Findings)
    moved: Findings = field(default_factory=Findings)
    done: dict[str, int] = field(default_factory=dict)
    redriven: int = 0
    stalled: list[str] = field(default_factory=list)
    missing_in_log: int = 0
    tracebacks: int = 0
    clock_set_s: float = 0.0  # the wall clock, meanwhile: instants are told by it, and measured by the other one

    @property
    def ok(self) -> bool:
        return self.working.ok and self.moved.ok and not (self.stalled or self.missing_in_log or self.tracebacks)


class Soak:
    """One run, over a `server` that is not started yet; with HTTP on."""

    def __init__(self, server: ServerProcess, folder: Path, seed: int, say: Say, rate: float = RATE) -> None:
        self._server, self._folder, self._say = server, folder, say
        self._random = random.Random(seed)
        self._plan = Plan(
            publishers=2, subscribers=2, rate=rate, work_ms=5, release=0.03, lock_ms=LOCK_MS, seed=seed, group=GROUP
        )
        self._moved_plan = Plan(publishers=0, subscribers=1, work_ms=2, release=0, seed=seed, group=MOVED_GROUP)
        self._history: list[tuple[str, Entry]] = []
        self._moved_history: list[tuple[str, Entry]] = []
        self._seeks: list[Span] = []
        self._redrives: list[Span] = []
        self._downs: list[Span] = []
        self._killed: dict[str, float] = {}
        self._bag: list[Deed] = []
        self._wall_clock = WallClock()
        self._report = SoakReport()

    def run(self, seconds: float) -> SoakReport:
        self._server.start()
        address = self._server.address
        with (
            Load(self._plan, address, self._folder / GROUP, self._history) as load,
            Load(self._moved_plan, address, self._folder / MOVED_GROUP, self._moved_history) as moved,
        ):
            load.prepare()
            # Who is killed while the server is down leaves no connection behind: its session has to run out.
            configs: dict[str, str] = {'share.session.timeout.ms': '6000', 'share.heartbeat.interval.ms': '1000'}
            configure_group(address, MOVED_GROUP, {'share.auto.offset.reset': 'earliest', **configs})
            configs |= {'acklog.retry.backoff': BACKOFF, 'share.delivery.count.limit': str(LIMIT)}
            configure_group(address, GROUP, configs)
            load.begin()
            load.add_subscriber('own_subscriber', OWN)
            load.add_subscriber('own_subscriber', OWN)
            moved.begin()
            moved.add_subscriber('own_subscriber')
            load.until(lambda: load.checker.accepted > 0, 30)
            self._work(load, moved, seconds)
            self._finish(load, moved)
        self._report.tracebacks = self._server.tracebacks()
        self._server.stop()
        self._judge()
        return self._report

    def _work(self, load: Load, moved: Load, seconds: float) -> None:
        ends = time.monotonic() + seconds
        told = time.monotonic()
        while time.monotonic() < ends:
            until = min(ends, time.monotonic() + self._random.uniform(*PAUSE_S))
            load.until(lambda until=until: time.monotonic() >= until, seconds)  # type: ignore[misc]
            moved.watch()
            if not self._bag:  # each kind of deed has its turn, in short runs too
                self._bag = self._random.sample(DEEDS, len(DEEDS))
            deed = self._bag.pop()
            self._do(deed, load)
            self._report.done[deed] = self._report.done.get(deed, 0) + 1
            if time.monotonic() - told > 10:
                told = time.monotonic()
                left = max(0, round(ends - told))
                self._say(f'{left} s left: {load.checker.confirmed:,} published, {load.checker.accepted:,} signed off')

    def _do(self, deed: Deed, load: Load) -> None:
        if deed == 'kill the server':
            begun = time.monotonic()
            self._server.kill()
            self._server.start()
            self._downs.append(Span(begun, time.monotonic()))
        elif deed == 'kill a subscriber':
            own = self._random.random() < 0.5
            victim = self._random.choice(load.subscribers)
            self._killed[victim.name] = load.kill_subscriber(victim)
            if own:
                load.add_subscriber('own_subscriber', OWN)
            else:
                load.add_subscriber()
        elif deed == 'redrive':
            self._redrive()
        else:
            when = round((time.time() - self._random.uniform(1, 20)) * 1000)
            self._seek(self._random.choice([{'to': 'earliest'}, {'to': 'latest'}, {'time_ms': when}]))

    # --- over HTTP

    def _post(self, spans: list[Span], body: dict[str, Any], *path: str) -> Any:
        """The answer; None where none came, and it may or may not have been done. When is written down."""
        begun = time.monotonic()
        try:
            return HttpClient(self._server.http).post(path_of(*path), body)
        except ClientError as error:
            self._say(f'{path[-1]}: {error}')
            return None
        finally:
            spans.append(Span(begun, time.monotonic()))

    def _redrive(self) -> int:
        answer = self._post(self._redrives, {'all': True}, 'groups', GROUP, 'dead', 'redrive')
        redriven = 0 if answer is None else int(answer['records'])
        self._report.redriven += redriven
        return redriven

    def _seek(self, target: dict[str, Any]) -> None:
        self._post(self._seeks, target, 'groups', MOVED_GROUP, 'seek')

    def _lag(self) -> int:
        answer = HttpClient(self._server.http).get(path_of('groups', MOVED_GROUP, 'lag'))
        return sum(int(item['lag']) for item in answer['topics'])

    # --- the end

    def _finish(self, load: Load, moved: Load) -> None:
        """Dead records are redriven while the rest is signed off; then the other group reads all once more."""
        deadline = time.monotonic() + FINISH_TIMEOUT_S
        while not load.finish(1.0):
            self._redrive()
            if time.monotonic() > deadline:
                self._report.stalled.append(f'{GROUP}, with {load.checker.open()} records not signed off')
                break
        self._say(f'{GROUP}: all signed off {FINISH_TIMEOUT_S - deadline + time.monotonic():.1f} s later')
        load.end_subscribers()
        self._seek({'to': 'earliest'})
        if not moved.until(lambda: self._lag() == 0, FINISH_TIMEOUT_S):
            self._report.stalled.append(f'{MOVED_GROUP}, with {self._lag()} records not signed off')
        moved.end_subscribers()
        self._say(f'{MOVED_GROUP}: read all once more, {FINISH_TIMEOUT_S - deadline + time.monotonic():.1f} s later')
        load.checker.compare_log(stored_places(self._server.address, self._plan.topic))
        self._report.missing_in_log = load.checker.verdict().missing_in_log

    def _judge(self) -> None:
        published = [(who, entry) for who, entry in self._history if entry.what in ('confirmed', 'failed')]
        set_by = self._report.clock_set_s = self._wall_clock.set_by_s()
        events = Events((), self._redrives, self._downs, self._killed, LIMIT, LOCK_MS / 1000, abs(set_by))
        self._report.working = Promises(events).read(self._history)
        events = Events(self._seeks, (), self._downs)
        self._report.moved = Promises(events).read([*published, *self._moved_history])


def as_text(report: SoakReport) -> str:
    """The figures and what is wrong, for people."""
    lines = [f'  {name:<36} {number:>10,}' for name, number in report.done.items()]
    lines.append(f'  {"records redriven":<36} {report.redriven:>10,}')
    for group, found in ((GROUP, report.working), (MOVED_GROUP, report.moved)):
        rows = {**asdict(found.verdict), 'released until a time': found.named_times, 'rejected': found.rejected}
        rows.pop('examples')
        rows |= {'early': len(found.early), 'again after reject': len(found.again_after_reject)}
        rows['held by two'] = len(found.held_by_two)
        lines += [f'  {group + ": " + name.replace("_", " "):<36} {number:>10,}' for name, number in rows.items()]
    lines += ['how late records came that were released until an instant:', histogram(report.working.lateness)]
    if report.clock_set_s:
        lines.append(f'the wall clock was set by {report.clock_set_s:+.3f} s meanwhile, which is not in these')
    for group, found in ((GROUP, report.working), (MOVED_GROUP, report.moved)):
        lines += [f'NOT RIGHT: {group}: {kind}: records {records}' for kind, records in found.wrong().items()]
    lines += [f'NOT RIGHT: nothing went on in the end: {where}' for where in report.stalled]
    if report.missing_in_log:
        lines.append(f'NOT RIGHT: {report.missing_in_log} published records are not in the log')
    if report.tracebacks:
        lines.append(f'NOT RIGHT: the server printed {report.tracebacks} tracebacks')
    good = 'nothing lost, early, held by two, or delivered after its accept'
    return '\n'.join([*lines, good if report.ok else 'FAILED'])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog='acklog.testing.soak', description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=600.0)
    parser.add_argument('--rate', type=float, default=RATE, help='records published per second')
    parser.add_argument('--seed', type=int, default=None, help='of what is done when (random, and printed)')
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    try:
        require()
    except NoStockClient as error:
        sys.stderr.write(f'{error}\n')
        return 2
    folder = Path(tempfile.mkdtemp(prefix='acklog-soak-'))
    server = ServerProcess(folder / 'data', {'http': '127.0.0.1:0'})

    def say(words: str) -> None:
        sys.stdout.write(words + '\n')
        sys.stdout.flush()

    say(f'{options.seconds:g} s, seed {seed}')
    report = None
    try:
        report = Soak(server, folder / 'diaries', seed, say, options.rate).run(options.seconds)
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
