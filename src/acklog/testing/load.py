"""Publishers and subscribers on a server, all of them processes that can be killed, and the checker that watches them.

Strategy: the workers know nothing of each other or of the checker; each keeps its diary in the folder of the run.
`watch` reads on in all diaries, so the run sees what is confirmed, held and accepted while it goes on. A worker ends
when its stdin is closed: cleanly, by `finish` and `end_subscribers`, or because the run itself has died.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from acklog.testing.checker import Checker
from acklog.testing.diary import DiaryReader, Entry
from acklog.testing.stock_client import configure_group, create_topic

PUBLISHER_STRIDE = 1_000_000_000  # publisher n numbers its records from n times this
WATCH_S = 0.05
GLEAN_S = 1.5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: how many of whom, and what they do."""

    publishers: int = 3
    subscribers: int = 4
    partitions: int = 2
    records: int = 0  # in all; 0: until they are told to finish
    rate: float = 0.0  # records per second, all publishers together; 0: as fast as it goes
    size: int = 100  # bytes of a record's value
    batch: int = 200  # max.poll.records
    work_ms: float = 10.0  # how long a subscriber works on a batch
    release: float = 0.01  # part of the records that subscribers give back
    lock_ms: int = 10_000  # how long a delivered record is its subscriber's
    seed: int = 0
    topic: str = 'orders'
    group: str = 'billing'


@dataclass(slots=True, eq=False)
class Worker:
    """One process of the run."""

    name: str
    process: subprocess.Popen[bytes]
    diary: DiaryReader
    born: float


class Load:
    """The workers of one run against the server at `address`. As a context it leaves none of them behind."""

    def __init__(self, plan: Plan, address: str, folder: Path, history: list[tuple[str, Entry]] | None = None) -> None:
        """`history`: where all that the workers write down is kept, for who wants it after the run."""
        self.plan, self.address, self.folder = plan, address, folder
        self.checker = Checker()
        self._history = history
        self.publishers: list[Worker] = []
        self.subscribers: list[Worker] = []
        self.trouble: list[str] = []  # what the workers' clients complained about
        self._ended: list[Worker] = []
        self._names = 0
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in [*self.publishers, *self.subscribers, *self._ended]:
            worker.process.kill()
            worker.process.wait()
            _close(worker.process.stdin)

    def prepare(self) -> None:
        """Make the topic, and the group that begins with the topic's first record."""
        create_topic(self.address, self.plan.topic, self.plan.partitions)
        configs = {'share.auto.offset.reset': 'earliest', 'share.record.lock.duration.ms': str(self.plan.lock_ms)}
        configure_group(self.address, self.plan.group, configs)

    def begin(self) -> None:
        """Start all workers."""
        for _ in range(self.plan.subscribers):
            self.add_subscriber()
        for index in range(self.plan.publishers):
            self._add_publisher(index)

    def add_subscriber(self, kind: str = 'subscriber', options: Sequence[object] = ()) -> Worker:
        """Start one more; `kind`: the module that it runs, with these `options` beside those of the plan."""
        self._names += 1
        plan = self.plan
        given = ['--group', plan.group, '--batch', plan.batch, '--work-ms', plan.work_ms, '--release', plan.release]
        given += ['--seed', plan.seed + self._names, *options]
        worker = self._start(kind, f'subscriber-{self._names}', given)
        self.subscribers.append(worker)
        return worker

    def kill_subscriber_at_work(self, records: int = 20, wait_s: float = 5.0) -> Worker:
        """kill -9 of a subscriber that has at least so many records in hand; of any one if there is none in time.

        It is stopped first, so that it cannot sign them off between the look at its diary and the kill.
        """
        until = time.monotonic() + wait_s
        victim = self.subscribers[0]
        while time.monotonic() < until:
            victim = self._subscriber_holding(records, until) or victim
            victim.process.send_signal(signal.SIGSTOP)
            self.watch()
            if len(self.checker.held_by(victim.name)) >= records:
                break
            victim.process.send_signal(signal.SIGCONT)
        self.kill_subscriber(victim)
        return victim

    def kill_subscriber(self, worker: Worker) -> float:
        """kill -9. Returns when; what it held is watched from then on."""
        at = time.monotonic()
        worker.process.kill()
        worker.process.wait()
        self.subscribers.remove(worker)
        self._ended.append(worker)
        self._read(worker)  # before the others' diaries: what they got since the kill was its
        self.checker.killed(worker.name, at)
        return at

    def _subscriber_holding(self, records: int, until: float) -> Worker | None:
        while time.monotonic() < until:
            self.watch()
            for worker in self.subscribers:
                if len(self.checker.held_by(worker.name)) >= records:
                    return worker
            time.sleep(0.001)
        return None

    def watch(self) -> None:
        """Read what has been written into the diaries. Raises RuntimeError if a worker has ended by itself."""
        for worker in [*self.publishers, *self.subscribers, *self._ended]:
            self._read(worker)
        for worker in [*self.publishers, *self.subscribers]:
            code = worker.process.poll()
            if code:
                words = (self.folder / f'{worker.name}.stderr').read_text(errors='replace')
                raise RuntimeError(f'{worker.name} ended with {code}\n{words}')

    def _read(self, worker: Worker) -> None:
        entries = worker.diary.read()
        self.trouble.extend(f'{worker.name}: {entry.words}' for entry in entries if entry.what == 'trouble')
        self.checker.feed(worker.name, entries)
        if self._history is not None:
            self._history.extend((worker.name, entry) for entry in entries)

    def until(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Watch until `done()`; False when that takes longer than `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.watch()
            if done():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(WATCH_S)

    def finish(self, timeout_s: float = 60.0) -> bool:
        """Let the publishers finish, and wait until all is signed off. False if that takes too long.

        An accept that was never answered may not have been applied; then its record is still its subscriber's. So, if
        there are such, all subscribers leave, which gives back what they have, and a new one gets what there is.
        """
        deadline = time.monotonic() + timeout_s
        if not self.plan.records:
            for worker in self.publishers:
                _close(worker.process.stdin)
        if not self.until(self._published, timeout_s) or not self.until(self._settled, deadline - time.monotonic()):
            return False
        if not self.checker.unanswered():
            return True
        self.end_subscribers()
        self.add_subscriber()
        looked = time.monotonic() + GLEAN_S
        self.until(lambda: time.monotonic() > looked, GLEAN_S + 1)
        return self.until(self._settled, deadline - time.monotonic())

    def end_subscribers(self, timeout_s: float = 15.0) -> None:
        """Let all subscribers leave; those that do not in time are killed."""
        for worker in self.subscribers:
            _close(worker.process.stdin)
        deadline = time.monotonic() + timeout_s
        for worker in self.subscribers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                self.trouble.append(f'{worker.name} did not leave within {timeout_s} s')
        self._ended += self.subscribers
        self.subscribers = []
        self.watch()

    def _published(self) -> bool:
        return all(worker.process.poll() is not None for worker in self.publishers)

    def _settled(self) -> bool:
        return self.checker.open() == 0

    def _add_publisher(self, index: int) -> None:
        plan = self.plan
        share = plan.records // plan.publishers + (1 if index < plan.records % plan.publishers else 0)
        options = ['--first', index * PUBLISHER_STRIDE, '--records', share, '--rate', plan.rate / plan.publishers]
        self.publishers.append(self._start('publisher', f'publisher-{index + 1}', options))

    def _start(self, kind: str, name: str, options: Sequence[object]) -> Worker:
        diary = self.folder / f'{name}.diary'
        common = ['--address', self.address, '--topic', self.plan.topic, '--diary', diary, '--size', self.plan.size]
        command = [sys.executable, '-m', f'acklog.testing.{kind}', *map(str, [*common, *options])]
        with (self.folder / f'{name}.stderr').open('ab') as stderr:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=stderr, stderr=stderr, start_new_session=True
            )
        return Worker(name, process, DiaryReader(diary), time.monotonic())


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        stream.close()
