"""`topic config` and `group config`: shown, set, and taken back to the default, in the same way for both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

import click

from acklog.cli.assignments import METAVAR, assignment
from acklog.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from acklog.client import Config

F = TypeVar('F', bound=Callable[..., Any])

SECRET = '(secret)'


def config_options(command: F) -> F:
    """The arguments and options of a `config` command: `changes`, `unset`, `show_all` and `as_json`."""
    options = (
        click.argument('changes', nargs=-1, type=assignment, metavar=f'[{METAVAR}]...'),
        click.option(
            '--unset', multiple=True, metavar='NAME', help='Take this config back to its default (repeatable).'
        ),
        click.option(
            '--all', 'show_all', is_flag=True, help='Show the defaults too; with --json also what each means.'
        ),
        click.option('--json', 'as_json', is_flag=True, help='One JSON document; all configs with their sources.'),
    )
    for option in reversed(options):
        command = option(command)
    return command


async def show_or_change(
    subject: str,
    changes: Sequence[tuple[str, str]],
    unset: Sequence[str],
    *,
    show_all: bool,
    as_json: bool,
    alter: Callable[[Mapping[str, str | None]], Awaitable[None]],
    configs: Callable[[], Awaitable[Sequence[Config]]],
) -> None:
    """Make the changes, if any; then show the configs (only when asked for, if there were changes)."""
    wanted: dict[str, str | None] = {**dict(changes), **dict.fromkeys(unset)}
    named = [*(name for name, _ in changes), *unset]
    if twice := next((name for name in wanted if named.count(name) > 1), None):
        raise click.UsageError(f'{twice} is named twice')
    if wanted:
        if unset:
            _check_names(unset, {config.name for config in await configs()})
        await alter(wanted)
        done = ', '.join(f'{name}={value}' if value is not None else f'{name} unset' for name, value in wanted.items())
        note(f'{subject}: {done}')
        if not (show_all or as_json):
            return
    show(await configs(), subject, show_all=show_all, as_json=as_json)


def _check_names(names: Sequence[str], known: Set[str]) -> None:
    """The server, as Kafka, takes back any name to its default: without this a misspelt one would seem to be done."""
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known)
            raise click.UsageError(f'there is no config {name!r}' + (f'; did you mean {near[0]}?' if near else ''))


def show(configs: Sequence[Config], subject: str, *, show_all: bool, as_json: bool) -> None:
    """Print configs: those that are set, or all of them."""
    if as_json:
        show_json([_fields(config) for config in configs])
        return
    rows = [
        [config.name, SECRET if config.value is None else config.value, config.source]
        for config in configs
        if show_all or config.is_set
    ]
    show_table(['CONFIG', 'VALUE', 'SOURCE'], rows, none=f'{subject} has the defaults only; --all shows them')


def _fields(config: Config) -> dict[str, object]:
    return {
        'name': config.name,
        'value': config.value,
        'is_set': config.is_set,
        'source': config.source,
        'read_only': config.read_only,
        'documentation': config.documentation,
    }
