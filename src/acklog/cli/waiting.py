"""`acklog waiting`: records of a group that wait for a time."""

from __future__ import annotations

import click

from acklog.cli.http import Change, How, HttpServer, change, change_options, reaches_http
from acklog.cli.of_group import Choice, Listing, choosing, listing
from acklog.cli.output import as_local_time, show_json, show_table
from acklog.cli.places import NAMING, name_of
from acklog.cli.times import WHEN, instant_ahead

NOUN = 'waiting record'


@click.group(epilog=NAMING)
def waiting() -> None:
    """Records that wait for a time: list them, deliver them now, move them, give them up."""


@waiting.command(
    'list', epilog='Examples: acklog waiting list billing;  acklog waiting list billing orders/2 --limit 1000 --json'
)
@listing
@reaches_http
def list_(server: HttpServer, listing: Listing) -> None:
    """List records of GROUP that wait.

    By topic, partition and offset."""
    items = listing.items(server, 'waiting')
    if listing.as_json:
        show_json(items)
        return
    rows = [[name_of(item), as_local_time(item['due_ms']), item['attempts']] for item in items]
    show_table(['RECORD', 'DUE', 'FAILED'], rows, none='nothing waits')


@waiting.command(
    epilog='Examples: acklog waiting now billing orders/2/1042;  acklog waiting now billing --all --dry-run'
)
@choosing('wait')
@change_options
@reaches_http
def now(
    server: HttpServer,
    choice: Choice,
    how: How,
) -> None:
    """Deliver records that wait now.

    Asks, unless each offset is named."""
    requests = choice.requests('waiting', 'now')
    what = Change('Deliver', 'made due now', NOUN, choice.group, how=' now')
    change(server, what, requests, how)


@waiting.command(
    epilog='Examples: acklog waiting move billing orders/2/1042 --to 10m;  '
    'acklog waiting move billing orders --to 2026-07-01T06:00'
)
@choosing('wait')
@click.option(
    '--to', 'due', required=True, type=instant_ahead, metavar=WHEN, help='When, or how long from now: 90s, 15m, 2h, 7d.'
)
@change_options
@reaches_http
def move(
    server: HttpServer,
    choice: Choice,
    due: int,
    how: How,
) -> None:
    """Deliver records that wait at another time.

    Asks, unless each offset is named."""
    requests = choice.requests('waiting', 'move', due_ms=due)
    to = f' to {as_local_time(due)}'
    what = Change('Move', f'moved{to}', NOUN, choice.group, how=to)
    change(server, what, requests, how)


@waiting.command(epilog='Example: acklog waiting discard billing orders/2/1000-1099')
@choosing('wait')
@change_options
@reaches_http
def discard(
    server: HttpServer,
    choice: Choice,
    how: How,
) -> None:
    """Give up records that wait.

    They are dead then, and may be redriven. Asks, unless --yes."""
    requests = choice.requests('waiting', 'discard')
    what = Change('Give up', 'given up', NOUN, choice.group, always_ask=True)
    change(server, what, requests, how)
