"""What topics and groups have in common on the command line: `config` and `delete`, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from acklog.cli import configs
from acklog.cli import names as complete
from acklog.cli.confirm import confirm
from acklog.cli.connect import Server, reaches_server, run
from acklog.cli.exit_codes import Exit
from acklog.cli.options import yes_option
from acklog.cli.output import note
from acklog.wire.error_words import no_such

if TYPE_CHECKING:
    from acklog.client import Admin, Config


def _complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    return complete.topics if kind == 'topic' else complete.groups


def config_command(
    kind: str,
    metavar: str,
    *,
    help: str,
    epilog: str,
    show: Callable[[Admin, str], Awaitable[Sequence[Config]]],
    alter: Callable[[Admin, str, Mapping[str, str | None]], Awaitable[None]],
) -> click.Command:
    """`acklog KIND config`."""

    @click.command('config', help=help, epilog=epilog)
    @click.argument('name', metavar=metavar, shell_complete=_complete(kind))
    @configs.config_options
    @reaches_server
    def config(
        server: Server,
        name: str,
        changes: tuple[tuple[str, str], ...],
        unset: tuple[str, ...],
        show_all: bool,
        as_json: bool,
    ) -> int:
        async def command() -> None:
            async with server.client() as client:
                await configs.show_or_change(
                    f'{kind} {name!r}',
                    changes,
                    unset,
                    show_all=show_all,
                    as_json=as_json,
                    alter=lambda wanted: alter(client.admin, name, wanted),
                    configs=lambda: show(client.admin, name),
                )

        return run(command())

    return config


def delete_command(
    kind: str,
    metavar: str,
    *,
    help: str,
    question: str,
    check: Callable[[Admin, str], Awaitable[None]],
    delete: Callable[[Admin, str], Awaitable[None]],
) -> click.Command:
    """`acklog KIND delete`. `question`: with the place where the names go. `check` raises what is known to keep one
    from being deleted: that is said before anybody is asked."""

    @click.command('delete', help=help)
    @click.argument('names', nargs=-1, required=True, metavar=f'{metavar}...', shell_complete=_complete(kind))
    @yes_option
    @click.option('--if-there', is_flag=True, help=f'Succeed when the {kind} does not exist.')
    @reaches_server
    def delete_them(server: Server, names: tuple[str, ...], yes: bool, if_there: bool) -> int:
        there = dict.fromkeys(names)

        async def each(do: Callable[[Admin, str], Awaitable[None]]) -> None:
            from acklog.client.errors import NotFound

            async with server.client() as client:
                for name in list(there):
                    try:
                        await do(client.admin, name)
                    except NotFound:
                        if not if_there:
                            raise
                        del there[name]
                        note(no_such(f'{kind} {name!r}'))

        async def delete_it(admin: Admin, name: str) -> None:
            await delete(admin, name)
            note(f'{kind} {name!r} deleted')

        if not yes:
            code = run(each(check))
            if code != Exit.OK or not there:
                return code
            confirm(question.format(', '.join(there)), yes)
        return run(each(delete_it))

    return delete_them
