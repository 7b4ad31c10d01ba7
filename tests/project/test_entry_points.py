"""What the installed package offers to others by name."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / 'pyproject.toml').read_text())['project']


def test_pytest_finds_the_fixtures() -> None:
    fixtures = import_module(PROJECT['entry-points']['pytest11']['acklog'])
    assert hasattr(fixtures, 'acklog_server') and hasattr(fixtures, 'acklog_process')
