"""Standard streams that are not there, or take nothing: one line and an exit code, and no record is lost by it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.cli.run import Ran, acklog, command, environment

if TYPE_CHECKING:
    from tests.conftest import Shared

pytestmark = pytest.mark.system

CLOSED = 'acklog: the output cannot be written: it is closed'
FULL = 'acklog: the output cannot be written: No space left on device'


def shell(shared: Shared, arguments: str, streams: str) -> Ran:
    """Run it with streams as a shell redirects them."""
    script = f'exec "$@" {streams}'
    variables = {**environment(shared.address), 'ACKLOG_API': shared.http}
    done = subprocess.run(
        ['bash', '-c', script, 'bash', *command(*arguments.split())], env=variables, capture_output=True, timeout=30
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def topic(shared: Shared, name: str) -> str:
    """With one record."""
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, bootstrap=shared.address, stdin='one\n')
    return name


@pytest.mark.parametrize(
    'arguments', ['topic list', 'topic list --json', '--version', '--help', 'record show {}/0/0 --value', 'topic -h']
)
def test_a_full_disk(shared: Shared, topic: str, arguments: str) -> None:
    assert shell(shared, arguments.format(topic), '> /dev/full') == (1, '', f'{FULL}\n')


@pytest.mark.parametrize(('streams', 'why'), [('> /dev/full', FULL), ('>&-', CLOSED)])
def test_what_could_not_be_printed_is_not_accepted(shared: Shared, topic: str, streams: str, why: str) -> None:
    ran = shell(shared, f'subscribe {topic} {topic} --max 1', streams)
    assert (ran.code, ran.err.splitlines()[-1]) == (1, why)
    assert 'Traceback' not in ran.err
    ran = acklog('subscribe', topic, topic, '--max', '1', bootstrap=shared.address)
    assert (ran.code, ran.out.endswith('  one\n')) == (0, True)


def test_no_output_for_a_value(shared: Shared, topic: str) -> None:
    assert shell(shared, f'record show {topic}/0/0 --value', '>&-') == (1, '', f'{CLOSED}\n')


def test_no_input(shared: Shared, topic: str) -> None:
    assert shell(shared, f'publish {topic}', '<&-') == (0, '', 'no lines, nothing published\n')
    ran = shell(shared, f'topic delete {topic}', '<&-')
    assert (ran.code, ran.err.endswith('Nobody can be asked here: say --yes.\n')) == (2, True)
    ran = shell(shared, f'subscribe {topic} {topic} --ask', '<&-')
    assert (ran.code, ran.out) == (0, f'{topic}/0/0  one\n')
    assert ran.err.endswith('0 records: 0 accepted\n')


def test_nowhere_to_say_anything(shared: Shared, topic: str) -> None:
    assert shell(shared, f'publish {topic}', '2>&- <<< two') == (0, '', '')
    assert shell(shared, f'topic describe {topic}-gone', '2>&-') == (4, '', '')
    assert shell(shared, f'subscribe {topic} {topic} --max 2', '2>&-').out == f'{topic}/0/0  one\n{topic}/0/1  two\n'
