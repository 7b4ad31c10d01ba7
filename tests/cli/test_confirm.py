"""What is asked before something is destroyed, and what an answer does."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from tests.cli.run import command, environment

from acklog.cli.http import Change


@pytest.mark.parametrize(
    ('change', 'question'),
    [
        (Change('Discard', 'discarded', 'dead record', 'billing'), 'Discard 1 dead record of billing?'),
        (Change('Move', 'moved', 'record', 'orders', how=' to noon'), 'Move 1 record of orders to noon?'),
    ],
)
def test_the_question(change: Change, question: str) -> None:
    assert change.question(1) == question


@pytest.mark.parametrize('answer', [b'n\n', b'\n'])
def test_a_no_changes_nothing_and_is_a_failure(answer: bytes) -> None:
    ours, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            command('topic', 'delete', 'orders'), stdin=terminal, stderr=subprocess.PIPE, env=environment('127.0.0.1:1')
        )
        os.write(ours, answer)
        _, err = process.communicate(timeout=20)
    finally:
        os.close(ours)
        os.close(terminal)
    assert process.returncode == 1  # and not 3: the server was not asked for anything
    assert err.decode().splitlines()[-1].endswith('acklog: nothing was changed')
