"""docs/command-line.md and the names in docs/python-client.md against the code."""

from __future__ import annotations

import re
from pathlib import Path

import click

import acklog.client
from acklog.cli.exit_codes import Exit
from acklog.cli.main import root

DOCS = Path(__file__).parents[2] / 'docs'
COMMAND_LINE = (DOCS / 'command-line.md').read_text()
PYTHON_CLIENT = (DOCS / 'python-client.md').read_text()


def test_exit_codes() -> None:
    documented = {int(code) for code in re.findall(r'^\| (\d+) \|', COMMAND_LINE, re.MULTILINE)}
    assert documented == {int(code) for code in Exit}


def test_commands() -> None:
    def leaves(command: click.Command, path: str) -> list[str]:
        if not isinstance(command, click.Group):
            return [path]
        context = click.Context(command)
        found: list[str] = []
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            found += leaves(child, f'{path} {name}')
        return found

    missing = [leaf for leaf in leaves(root, 'acklog') if f'| `{leaf}' not in COMMAND_LINE]
    assert missing == []


def test_names_of_the_client() -> None:
    table = PYTHON_CLIENT.split('| Raised |')[1].split('\n\n')[0]
    assert [name for name in re.findall(r'`([A-Z]\w+)`', table) if not hasattr(acklog.client, name)] == []
    admin = PYTHON_CLIENT.split('`client.admin` has')[1].split('. ')[0]
    assert [name for name in re.findall(r'`(\w+)`', admin) if not hasattr(acklog.client.Admin, name)] == []


def test_public_names_are_there() -> None:
    assert sorted(acklog.client.__all__) == sorted(set(acklog.client.__all__))
    assert all(hasattr(acklog.client, name) for name in acklog.client.__all__)
