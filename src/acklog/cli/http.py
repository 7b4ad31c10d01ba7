"""How a command reaches the server's HTTP API: the options for it, and what asking and changing there have in common.

`--http` comes from the option, behind or before the command's name, else from ACKLOG_API, else it is
http://127.0.0.1:8080.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from acklog.cli.confirm import confirm
from acklog.cli.output import count, note, show_json

if TYPE_CHECKING:
    from acklog.client.http import HttpClient

F = TypeVar('F', bound=Callable[..., Any])

DEFAULT = 'http://127.0.0.1:8080'


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Where the API is and how long to wait for an answer."""

    address: str
    timeout: float

    def client(self) -> HttpClient:
        """A client for it."""
        from acklog.client.http import HttpClient

        return HttpClient(self.address, self.timeout)


def reaches_http(command: F) -> F:
    """Give a command the options `--http` and `--timeout`, and with them its argument `server`."""

    def wrapped(http: str, timeout: float, **others: Any) -> Any:
        return command(HttpServer(_address(http), timeout), **others)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__click_params__ = getattr(command, '__click_params__', [])  # type: ignore[attr-defined]
    with_timeout = click.option(
        '--timeout',
        type=click.FloatRange(min=0.1, max=3600),
        default=10.0,
        show_default=True,
        metavar='SECONDS',
        help='How long to wait for an answer.',
    )(wrapped)
    return click.option(
        '--http',
        envvar='ACKLOG_API',
        default=DEFAULT,
        show_default=True,
        show_envvar=True,
        metavar='URL',
        help="Address of the server's HTTP API.",
    )(with_timeout)  # type: ignore[return-value]


def _address(own: str) -> str:
    """The command's own `--http`, or the one that was written before the command's name."""
    context = click.get_current_context()
    before = context.find_root().params.get('http')
    given = context.get_parameter_source('http') is click.core.ParameterSource.COMMANDLINE
    return own if given or not before else str(before)


# -- options that many commands have -----------------------------------------------------------------------------------

json_option = click.option('--json', 'as_json', is_flag=True, help='One JSON document.')
dry_run_option = click.option('-n', '--dry-run', is_flag=True, help='Change nothing; say what would come of it.')
yes_option = click.option('-y', '--yes', is_flag=True, help='Do not ask.')
limit_option = click.option(
    '--limit',
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar='N',
    help='How many to list at most.',
)


# -- lists -------------------------------------------------------------------------------------------------------------


def listed(server: HttpServer, path: str, limit: int, **query: Any) -> list[dict[str, Any]]:
    """The first `limit` items of a list; that there are more is said on stderr."""
    from acklog.client.http import LONGEST_PAGE

    found = server.client().items(path, **query, limit=min(limit + 1, LONGEST_PAGE))
    items = list(islice(found, limit + 1))
    if len(items) > limit:
        note(f'these are the first {limit:,}; there are more: --limit')
    return items[:limit]


# -- changes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """What a command does to records, in words: `verb` for the question ('Discard 3 dead records of billing?'), `done`
    for the report ('3 dead records of billing discarded'), `noun` what they are, `owner` whose.

    `always_ask`: not only where more is changed than the offsets that were named."""

    verb: str
    done: str
    noun: str
    owner: str
    always_ask: bool = False

    def report(self, records: int, *, dry_run: bool = False) -> str:
        """What was done, or would be."""
        return f'{count(records, self.noun)} of {self.owner} {"would be " if dry_run else ""}{self.done}'


Request = tuple[str, dict[str, Any]]  # a path and the body for it


def change(
    server: HttpServer, what: Change, requests: Iterable[Request], *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Ask, saying how many records it is, where it has to be asked; then do it and report."""
    wanted = list(requests)
    client = server.client()
    named = all('offsets' in body for _, body in wanted)
    if not (yes or dry_run) and (what.always_ask or not named):
        number, _ = _ask(client, wanted, what, dry_run=True)
        if number:
            confirm(f'{what.verb} {count(number, what.noun)} of {what.owner}?', yes)
    number, pending = _ask(client, wanted, what, dry_run=dry_run)
    if as_json:
        show_json({'records': number, 'pending': pending, 'dry_run': dry_run})
        return
    later = f', {pending:,} of them later, at the rate asked for' if pending else ''
    note(what.report(number, dry_run=dry_run) + later)


def _ask(client: HttpClient, requests: Iterable[Request], what: Change, *, dry_run: bool) -> tuple[int, int]:
    """Records that were or would be changed, how many of these come later. What was done before an error is said."""
    from acklog.client.errors import ClientError

    records = pending = 0
    for path, body in requests:
        try:
            answer = client.post(path, {**body, 'dry_run': dry_run})
        except ClientError:
            if records and not dry_run:
                note(f'{what.report(records)}; then:')
            raise
        records += answer['records']
        pending += answer['pending']
    return records, pending
