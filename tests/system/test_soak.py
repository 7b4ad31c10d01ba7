"""Everything at once, for a few seconds. More of it: `python -m acklog.testing.soak`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from acklog.testing.process import ServerProcess
from acklog.testing.soak import Soak, as_text

pytestmark = pytest.mark.system


@pytest.mark.timeout(180)
def test_twelve_seconds_of_everything(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / 'server' / 'data', {'http': '127.0.0.1:0'})
    lines: list[str] = []
    try:
        report = Soak(server, tmp_path / 'diaries', 4, lines.append, rate=300).run(12)
    finally:
        server.kill()
        sys.stderr.write('\n'.join([*lines, server.last_words(100)]))
    assert report.ok, as_text(report)
    assert report.done['kill the server'] and report.done['seek'] and report.done['kill a subscriber']
    assert report.working.verdict.accepted > 500
    assert report.working.named_times and report.working.lateness
