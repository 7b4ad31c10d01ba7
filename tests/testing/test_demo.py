"""The demo's command where it cannot do its work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    assert "pip install 'acklog[demo]'" in done.stderr
    assert 'Traceback' not in done.stderr


def test_wrong_options_are_refused() -> None:
    for options in (['--records', '0'], ['--seconds', '-1'], ['--nonsense']):
        done = demo(*options)
        assert done.returncode == 2
        assert options[0] in done.stderr
