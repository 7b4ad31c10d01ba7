"""The conformance command, with a folder of suites whose two commands are a few lines each."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from acklog.testing import conformance
from acklog.testing.listed_tests import ListedTest, read_tests

RUN = """#!/bin/sh
shift 2
echo "ran: $*"
: > "$JUNIT_XML"
"""
COMPARE = """#!/bin/sh
echo 'fail  t.py::a[x y]'
echo '          AssertionError: no'
echo 'skip  t.py::b'
echo '          not today'
echo 'on Kafka: 3 pass'
exit 1
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / 'suites'
    (folder / 'one').mkdir(parents=True)
    (folder / 'one/suite.sh').touch()
    for name, text in (('run', RUN), ('compare', COMPARE)):
        command = folder / name
        command.write_text(text)
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return folder


def listing(tmp_path: Path, text: str) -> str:
    file = tmp_path / 'listing.txt'
    file.write_text(text)
    return str(file)


def test_lists_have_reasons_and_ids_with_blanks(tmp_path: Path) -> None:
    file = listing(tmp_path, '# of old\none t.py::free\n\n[no groups]\none t.py::a[x y]\ntwo  u.py::C::b\n')
    assert read_tests(Path(file)) == [
        ListedTest('one', 't.py::free', ''),
        ListedTest('one', 't.py::a[x y]', 'no groups'),
        ListedTest('two', 'u.py::C::b', 'no groups'),
    ]


def run(suites: Path, *options: str) -> int:
    return conformance.main(['--suites', str(suites), '--bootstrap', '127.0.0.1:1', *options])


def test_what_is_worse_than_on_kafka_is_shown(suites: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(suites) == 1
    said = capfd.readouterr().out
    assert 'AssertionError: no' in said
    assert 'not as on Kafka: one' in said


def test_what_is_allowed_not_to_pass_is_counted(
    suites: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    allowed = listing(tmp_path, '[no groups]\none t.py::a[x y]\none t.py::b\none t.py::passes\n')
    assert run(suites, '--allowed', allowed) == 0
    said = capfd.readouterr().out
    assert 'AssertionError' not in said
    assert '2 allowed not to: no groups' in said
    assert 'allowed not to pass, and passes: t.py::passes' in said


def test_what_is_left_out_is_not_run(suites: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(suites, '--allowed', listing(tmp_path, '[left out: it crashes]\none t.py::crashes\n'))
    said = capfd.readouterr().out
    assert 'ran: --deselect=t.py::crashes' in said
    assert 'passes: t.py::crashes' not in said


def test_only_the_tests_that_a_file_names(suites: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(suites, '--tests', listing(tmp_path, 'one t.py::b\none t.py::c\n'))
    assert 'ran: t.py::b t.py::c' in capfd.readouterr().out


def test_what_cannot_be_run_is_named(suites: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(suites, 'other') == 2
    assert 'has no suite other; it has: one' in capfd.readouterr().err
    assert run(suites, '--tests', listing(tmp_path, 'one nonsense\n')) == 2
    assert 'line 1: not SUITE NODE-ID: one nonsense' in capfd.readouterr().err
