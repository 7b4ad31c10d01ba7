"""How a command reaches the server's HTTP API: the options for it, and what asking and changing there have in common.

`--http` comes from the option, behind or before the command's name, else from ACKLOG_API, else it is
http://127.0.0.1:8080.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from acklog.cli.confirm import confirm
from acklog.cli.connect import with_cure
from acklog.cli.options import dry_run_option, gathered, json_option, own_or_root, timeout_option, yes_option
from acklog.cli.output import count, note, show_json

if TYPE_CHECKING:
    from acklog.client.http import HttpClient

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


def _server(http: str, timeout: float) -> HttpServer:
    return HttpServer(own_or_root('http', http), timeout)


reaches_http = gathered(
    'server',
    _server,
    click.option(
        '--http',
        envvar='ACKLOG_API',
        default=DEFAULT,
        show_default=True,
        show_envvar=True,
        metavar='URL',
        help="Address of the server's HTTP API.",
    ),
    timeout_option,
    within=lambda: with_cure('--http or ACKLOG_API'),
)


# -- lists -------------------------------------------------------------------------------------------------------------


def listed(server: HttpServer, path: str, limit: int, **query: Any) -> list[dict[str, Any]]:
    """The first `limit` items of a list; that there are more is said on stderr."""
    from acklog.client.http import LONGEST_PAGE

    found = server.client().items(path, **query, limit=min(limit + 1, LONGEST_PAGE))
    items = list(islice(found, min(limit + 1, sys.maxsize)))
    if len(items) > limit:
        note(f'these are the first {limit:,}; there are more: --limit')
    return items[:limit]


# -- changes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """What a command does to records, in words: `verb` and `how` for the question ('Move 3 dead records of billing to
    noon?'), `done` for the report ('3 dead records of billing moved to noon'), `noun` what they are, `owner` whose.

    `always_ask`: not only where more is changed than the offsets that were named."""

    verb: str
    done: str
    noun: str
    owner: str
    how: str = ''
    always_ask: bool = False

    def question(self, records: int) -> str:
        """What the person is asked."""
        return f'{self.verb} {count(records, self.noun)} of {self.owner}{self.how}?'

    def report(self, records: int, *, dry_run: bool = False) -> str:
        """What was done, or would be."""
        return f'{count(records, self.noun)} of {self.owner} {"would be " if dry_run else ""}{self.done}'


Request = tuple[str, dict[str, Any]]  # a path and the body for it


class How(NamedTuple):
    """How a change is made."""

    dry_run: bool
    yes: bool
    as_json: bool


change_options = gathered('how', How, dry_run_option, yes_option, json_option)


def change(server: HttpServer, what: Change, requests: Iterable[Request], how: How) -> None:
    """Ask, saying how many records it is, where it has to be asked; then do it and report."""
    wanted = list(requests)
    client = server.client()
    named = all('offsets' in body for _, body in wanted)
    if not (how.yes or how.dry_run) and (what.always_ask or not named):
        number, _ = _ask(client, wanted, what, dry_run=True)
        if number:
            confirm(what.question(number), how.yes)
    number, pending = _ask(client, wanted, what, dry_run=how.dry_run)
    if how.as_json:
        show_json({'records': number, 'pending': pending, 'dry_run': how.dry_run})
        return
    later = f', {pending:,} of them later, at the rate asked for' if pending else ''
    note(what.report(number, dry_run=how.dry_run) + later)


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
