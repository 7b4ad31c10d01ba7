"""What is asked before something is destroyed, and what an answer does."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.cli.run import acklog, command, environment

from acklog.cli.http import Change
from acklog.client.http import HttpClient, path_of

if TYPE_CHECKING:
    from tests.conftest import Shared


@pytest.mark.parametrize(
    ('change', 'question'),
    [
        (Change('Discard', 'discarded', 'dead record', 'billing'), 'Discard 1 dead record of billing?'),
        (Change('Move', 'moved', 'record', 'orders', how=' to noon'), 'Move 1 record of orders to noon?'),
    ],
)
def test_the_question(change: Change, question: str) -> None:
    assert change.question(1) == question


@pytest.fixture
def there(shared: Shared, name: str) -> str:
    """A topic and a group of that name."""
    assert acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address).code == 0
    HttpClient(shared.http).post(path_of('groups'), {'name': name})
    return name


@pytest.mark.system
@pytest.mark.parametrize('kind', ['topic', 'group'])
@pytest.mark.parametrize('answer', [b'n\n', b'\n', b'y\n'])
def test_an_answer(shared: Shared, there: str, kind: str, answer: bytes) -> None:
    """A no changes nothing and is a failure."""
    ours, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            command(kind, 'delete', there), stdin=terminal, stderr=subprocess.PIPE, env=environment(shared.address)
        )
        os.write(ours, answer)
        _, err = process.communicate(timeout=20)
    finally:
        os.close(ours)
        os.close(terminal)
    question, last = err.decode().rsplit(': ', 1)[0], err.decode().splitlines()[-1]
    assert question.startswith(f'Delete {there} with all')
    yes = answer == b'y\n'
    assert process.returncode == (0 if yes else 1)
    assert last.endswith(f"{kind} '{there}' deleted" if yes else 'acklog: nothing was changed')
    assert acklog(kind, 'describe', there, bootstrap=shared.address).code == (4 if yes else 0)


@pytest.mark.system
@pytest.mark.parametrize('kind', ['topic', 'group'])
def test_nobody_can_be_asked(shared: Shared, there: str, kind: str) -> None:
    ran = acklog(kind, 'delete', there, bootstrap=shared.address)
    assert ran.code == 2
    assert ran.err.endswith('Nobody can be asked here: say --yes.\n')
    assert acklog(kind, 'describe', there, bootstrap=shared.address).code == 0


@pytest.mark.system
@pytest.mark.parametrize('kind', ['topic', 'group'])
def test_nobody_is_asked_about_what_is_not_there(shared: Shared, there: str, kind: str) -> None:
    gone = f"there is no {kind} '{there}-gone'"
    code = 'UNKNOWN_TOPIC_OR_PARTITION' if kind == 'topic' else 'GROUP_ID_NOT_FOUND'
    for yes in ([], ['--yes']):
        ran = acklog(kind, 'delete', f'{there}-gone', *yes, bootstrap=shared.address)
        assert ran == (4, '', f'acklog: {gone} ({code})\n')
        ran = acklog(kind, 'delete', f'{there}-gone', '--if-there', *yes, bootstrap=shared.address)
        assert ran == (0, '', f'{gone}\n')
    assert acklog(kind, 'delete', there, f'{there}-gone', bootstrap=shared.address).code == 4
    assert acklog(kind, 'describe', there, bootstrap=shared.address).code == 0
    both = acklog(kind, 'delete', there, there, f'{there}-gone', '--if-there', '-y', bootstrap=shared.address)
    assert both == (0, '', f"{kind} '{there}' deleted\n{gone}\n")


@pytest.mark.system
def test_nobody_is_asked_about_a_group_that_has_members(shared: Shared, there: str) -> None:
    member = {'member': 'm', 'topics': [there]}
    HttpClient(shared.http).post(path_of('groups', there, 'acquire'), member)
    for yes in ([], ['--yes']):
        ran = acklog('group', 'delete', there, *yes, bootstrap=shared.address)
        why = f"group '{there}' has members: stop its subscribers first (NON_EMPTY_GROUP)"
        assert ran == (1, '', f'acklog: {why}\n')
