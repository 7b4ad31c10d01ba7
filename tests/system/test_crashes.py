"""kill -9 under load: nothing lost, nothing again after its accept. More of it: `python -m acklog.testing.crash`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from acklog.testing.crash import CrashTest, as_text
from acklog.testing.load import Load, Plan
from acklog.testing.process import ServerProcess

if TYPE_CHECKING:
    from tests.conftest import Shared

pytestmark = pytest.mark.system


@pytest.mark.timeout(180)
def test_three_kills_of_the_server_under_load(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / 'server' / 'data')
    lines: list[str] = []
    try:
        plan = Plan(rate=5000, work_ms=2, batch=500, seed=20)
        report = CrashTest(server, plan, tmp_path / 'diaries', lines.append).run(3)
    finally:
        server.kill()
        sys.stderr.write(server.last_words(200))
    assert report.ok, as_text(report)
    assert report.server_kills >= 3
    assert report.verdict.accepted > 1000


@pytest.mark.timeout(180)
def test_others_have_the_records_of_a_killed_subscriber_at_once(shared: Shared, tmp_path: Path, name: str) -> None:
    plan = Plan(
        publishers=1, subscribers=3, partitions=1, rate=2000, work_ms=5, batch=100, release=0, topic=name, group=name
    )
    with Load(plan, shared.address, tmp_path) as load:
        load.prepare()
        load.begin()
        assert load.until(lambda: load.checker.accepted > 0, 20)
        for _ in range(8):
            joined = load.add_subscriber()
            # A Python that starts takes a whole core: the next kill waits until it has done so.
            assert load.until(lambda joined=joined: bool(load.checker.held_by(joined.name)), 20)
            load.kill_subscriber_at_work(records=5)
            assert load.until(lambda: not load.checker.waiting_for_takeover(), 10), 'nobody has its records'
        assert load.finish()
        load.end_subscribers()
        verdict = load.checker.verdict()
    assert verdict.ok, verdict
    times = sorted(load.checker.takeovers)
    assert len(times) >= 20
    # The others work on a batch for 5 ms before they ask for more: that is part of the time.
    assert times[len(times) * 99 // 100] < 0.1, times[-20:]


@pytest.mark.timeout(120)
def test_the_demo_shows_the_main_job() -> None:
    command = [sys.executable, '-m', 'acklog', 'demo', '--records', '20000', '--seconds', '4', '--json']
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert figures['ok']
    assert figures['verdict']['published'] == 20000
    assert figures['verdict']['accepted'] + figures['verdict']['accept_unanswered'] == 20000
    assert figures['verdict']['lost'] == figures['verdict']['again_after_accept'] == 0
    assert figures['subscribers_killed'] == 2
    assert figures['verdict']['redelivered'] > 0
