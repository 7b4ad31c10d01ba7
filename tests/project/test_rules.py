"""Rules of the project that no linter knows."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMELESS = ('core', 'wire', 'log', 'broker')


@pytest.mark.parametrize('layer', TIMELESS)
def test_nobody_below_the_server_sets_a_timer_on_the_loop(layer: str) -> None:
    files = (ROOT / 'src/acklog' / layer).rglob('*.py')
    assert [f.name for f in files if re.search(r'\.(call_later|call_at)\(|loop\(\)\.time\(', f.read_text())] == []


@pytest.mark.parametrize('name', ['demo.txt', 'dev.txt'])
def test_lock_files_pin_by_hash_and_name_no_host(name: str) -> None:
    lock = (ROOT / 'requirements' / name).read_text()
    pins = re.split(r'\n(?=\w)', lock)[1:]
    assert pins
    assert [pin for pin in pins if '==' not in pin or '--hash=sha256:' not in pin] == []
    assert '://' not in lock


@pytest.mark.parametrize('name', ['demo.txt', 'dev.txt'])
def test_lock_files_hold_what_the_package_and_its_build_need(name: str) -> None:
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())
    needed = [*project['build-system']['requires'], *project['project']['dependencies']]
    pinned = set(re.findall(r'^([\w-]+)==', (ROOT / 'requirements' / name).read_text(), re.MULTILINE))
    assert {re.split('[=><]', requirement)[0] for requirement in needed} <= pinned


def test_dev_pins_what_demo_pins() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r'^[\w-]+==\S+', (ROOT / 'requirements' / name).read_text(), re.MULTILINE))

    assert pins('demo.txt') <= pins('dev.txt')


def test_an_old_python_is_told_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (ROOT / 'requirements/install.py').read_text().removesuffix('main()\n')
    install: dict[str, object] = {'__file__': str(ROOT / 'requirements/install.py'), '__name__': 'install'}
    exec(compile(source, 'install.py', 'exec'), install)
    monkeypatch.setattr(sys, 'version_info', (3, 9, 1))
    check = install['check_python']
    assert callable(check)
    with pytest.raises(SystemExit, match=r'(?s)3\.11 or newer is needed.*Cure: install Python') as stopped:
        check()
    assert stopped.value.code
