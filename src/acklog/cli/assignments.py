"""`NAME=VALUE` on the command line."""

from __future__ import annotations

import click

METAVAR = 'NAME=VALUE'


def assignment(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a pair; the value may be empty and may contain `=`. For `type=` of click's parameters."""
    name, equals, value = text.partition('=')
    if not equals or not name.strip():
        raise click.BadParameter(f'{text!r} is not {METAVAR}')
    return name.strip(), value
