"""The main job from the first record to the last accept, with everything killed that can be killed.

Strategy: publishers and subscribers work all the time (acklog.testing.load). Meanwhile, at fixed parts of the
publishing time: a subscriber that holds records is killed with kill -9 and another one joins, the server is killed with
kill -9 and started again, and once more a subscriber. When all is signed off, three witnesses are heard: the checker,
which has followed every confirmation; the log, read from its start; and a new member of the group, which must get
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from acklog.testing.load import Load, Plan
from acklog.testing.stock_client import stored_places
from acklog.testing.verdict import Verdict

FIRST_SUBSCRIBER_DIES, SERVER_DIES, SECOND_SUBSCRIBER_DIES = 0.25, 0.5, 0.75  # of the publishing time
TAKEOVER_TIMEOUT_S = 15.0
FINISH_TIMEOUT_S = 40.0
NEW_MEMBER_WAITS_S = 1.0

Say = Callable[[str], None]


class Server(Protocol):
    """What is killed and started again (acklog.testing.process.ServerProcess)."""

    @property
    def address(self) -> str: ...

    def start(self) -> float: ...

    def restart(self) -> float: ...

    def stop(self) -> float: ...

    def tracebacks(self) -> int: ...


@dataclass(slots=True)
class Outcome:
    """What came out. Times in seconds."""

    verdict: Verdict = field(default_factory=Verdict)
    start_s: float = 0.0  # of the server, until it was ready
    restart_s: float = 0.0  # after the kill, until it was ready
    confirmed_again_s: float = 0.0  # from the server's kill until the next publish was confirmed
    accepted_again_s: float = 0.0  # from the server's kill until the next accept was confirmed
    stop_s: float = 0.0
    publish_s: float = 0.0  # until the last record was confirmed
    work_s: float = 0.0  # until the last record was signed off
    subscribers_killed: int = 0
    held_when_killed: int = 0
    takeovers: list[float] = field(default_factory=list)
    read_back: int = 0  # records found in the log
    new_member_got: int = 0
    complete: bool = True  # everything was signed off in time
    tracebacks: int = 0

    @property
    def ok(self) -> bool:
        return self.verdict.ok and self.complete and not self.new_member_got and not self.tracebacks


class MainJob:
    """One run over `server`, with the workers' diaries in `folder`; `say` gets a line for each thing that happens."""

    def __init__(self, server: Server, plan: Plan, folder: Path, say: Say) -> None:
        self._server, self._plan, self._folder, self._tell = server, plan, folder, say
        self._outcome = Outcome()
        self._begun = 0.0

    def run(self) -> Outcome:
        outcome, plan = self._outcome, self._plan
        self._begun = time.monotonic()
        outcome.start_s = self._server.start()
        self._say(f'server ready at {self._server.address} after {outcome.start_s:.2f} s')
        with Load(plan, self._server.address, self._folder) as load:
            load.prepare()
            load.begin()
            begun, seconds = time.monotonic(), plan.records / plan.rate
            self._say(f'{plan.publishers} publishers publish, {plan.subscribers} subscribers take and sign off')
            load.until(lambda: load.checker.accepted > 0, TAKEOVER_TIMEOUT_S)
            self._watch_until(load, begun + seconds * FIRST_SUBSCRIBER_DIES)
            self._kill_a_subscriber(load)
            self._watch_until(load, begun + seconds * SERVER_DIES)
            self._kill_the_server(load)
            self._watch_until(load, begun + seconds * SECOND_SUBSCRIBER_DIES)
            self._kill_a_subscriber(load)
            outcome.complete = load.finish(FINISH_TIMEOUT_S + seconds)
            outcome.publish_s = load.checker.confirms.latest - begun
            outcome.work_s = load.checker.accepts.latest - begun
            self._hear_witnesses(load)
        outcome.tracebacks = self._server.tracebacks()
        outcome.stop_s = self._server.stop()
        return outcome

    def _kill_a_subscriber(self, load: Load) -> None:
        before = len(load.checker.takeovers)
        victim = load.kill_subscriber_at_work()
        held = load.checker.waiting_for_takeover()
        self._outcome.subscribers_killed += 1
        self._outcome.held_when_killed += held
        self._say(f'kill -9 {victim.name}, which was working on {held} records')
        load.until(lambda: not load.checker.waiting_for_takeover(), TAKEOVER_TIMEOUT_S)
        times = load.checker.takeovers[before:]
        self._outcome.takeovers += times
        if times:
            self._say(
                f'others had its first record {min(times) * 1000:.0f} ms, its last {max(times) * 1000:.0f} ms later'
            )
        joined = load.add_subscriber()
        self._say(f'{joined.name} joins')

    def _kill_the_server(self, load: Load) -> None:
        outcome, checker = self._outcome, load.checker
        killed_at = time.monotonic()
        outcome.restart_s = self._server.restart()
        self._say(f'kill -9 the server; ready again {outcome.restart_s:.2f} s after its new start')
        checker.mark(time.monotonic() - outcome.restart_s)  # what is confirmed after that, the new server confirmed
        load.until(lambda: bool(checker.confirms.first and checker.accepts.first), TAKEOVER_TIMEOUT_S)
        outcome.confirmed_again_s = checker.confirms.first - killed_at
        outcome.accepted_again_s = checker.accepts.first - killed_at
        self._say('publishers and subscribers go on')

    def _hear_witnesses(self, load: Load) -> None:
        outcome, checker = self._outcome, load.checker
        self._say(f'{checker.confirmed:,} records published, {checker.accepted:,} signed off; all subscribers leave')
        load.end_subscribers()
        before = checker.deliveries
        load.add_subscriber()
        self._watch_until(load, time.monotonic() + NEW_MEMBER_WAITS_S)
        outcome.new_member_got = checker.deliveries - before
        load.end_subscribers()
        stored = stored_places(self._server.address, self._plan.topic)
        outcome.read_back = len(stored)
        checker.compare_log(stored)
        outcome.verdict = checker.verdict()

    def _watch_until(self, load: Load, at: float) -> None:
        load.until(lambda: time.monotonic() >= at, max(0.0, at - time.monotonic()) + 1)

    def _say(self, words: str) -> None:
        self._tell(f'{time.monotonic() - self._begun:6.1f} s  {words}')
