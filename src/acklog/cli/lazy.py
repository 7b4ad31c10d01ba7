"""Command groups whose commands are imported when they run, so that `acklog --help` stays fast.

A group lists its commands with their one-line help; the module of a command is imported when it is invoked, or asked
for its own help.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click


class Lazy(NamedTuple):
    """Where a command is, and what the group's help says about it."""

    module: str
    name: str  # of the click command in that module
    help: str


class LazyGroup(click.Group):
    """A click group over a table of `Lazy` commands, listed in the table's order."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.module), entry.name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but what it suggests after a typing error comes from the table."""
        name = args[0]
        if name not in self.lazy and not name.startswith('-') and not ctx.resilient_parsing:
            near = get_close_matches(name, self.lazy, n=1)
            hint = f'Did you mean {near[0]!r}?' if near else f'There are {", ".join(self.lazy)}.'
            ctx.fail(f'No such command {name!r}. {hint}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section('Commands'):
            formatter.write_dl([(name, entry.help) for name, entry in self.lazy.items()])
