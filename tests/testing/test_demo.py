"""The demo's command where it cannot do its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import acklog

SOURCES = Path(acklog.__file__).parents[1]


def demo(*arguments: str, without_packages: bool = False) -> subprocess.CompletedProcess[str]:
    code = f'import sys; sys.path.insert(0, {str(SOURCES)!r}); from acklog.demo.run import main; sys.exit(main())'
    command = [sys.executable, *(['-I', '-S'] if without_packages else []), '-c', code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_missing_stock_client_is_named_with_the_cure() -> None:
    done = demo(without_packages=True)
    assert done.returncode == 2
    assert done.stdout == ''
    assert "pip install 'confluent-kafka>=2.16'" in done.stderr
    assert 'Traceback' not in done.stderr


def test_wrong_options_are_refused() -> None:
    for options in (['--records', '0'], ['--seconds', '-1'], ['--nonsense']):
        done = demo(*options)
        assert done.returncode == 2
        assert options[0] in done.stderr


@pytest.mark.system
@pytest.mark.parametrize(('number', 'code'), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_ended_leaves_nothing_behind(tmp_path: Path, number: int, code: int) -> None:
    environment = {**os.environ, 'TMPDIR': str(tmp_path)}
    command = [sys.executable, '-m', 'acklog', 'demo', '--records', '5000']
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        while 'publishers publish' not in process.stdout.readline():
            pass
        process.send_signal(number)
        process.stdout.read()
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run(['pgrep', '-f', str(tmp_path)], stdout=subprocess.DEVNULL, check=False).returncode == 1
