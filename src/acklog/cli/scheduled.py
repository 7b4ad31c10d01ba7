"""`acklog scheduled`: records that were published for later, on topics with `acklog.deliver.at.enable=true`."""

from __future__ import annotations

from typing import Any

import click

from acklog.cli.http import Change, How, HttpServer, Request, change, change_options, listed, reaches_http
from acklog.cli.options import json_option, limit_option
from acklog.cli.output import as_local_time, show_json, show_table
from acklog.cli.places import METAVAR, NAMING, Place, bodies, name_of, partition_place, place
from acklog.cli.times import WHEN, instant_ahead

NOUN = 'scheduled record'

group_option = click.option('--group', metavar='GROUP', help='Only for this group.  [default: for all]')


@click.group(epilog=NAMING)
def scheduled() -> None:
    """Records published for later whose time has not come: list, cancel and move them."""


@scheduled.command(
    'list', epilog='Examples: acklog scheduled list orders;  acklog scheduled list orders/2 --group billing'
)
@click.argument('where', type=partition_place, metavar='TOPIC[/PARTITION]')
@click.option('--group', metavar='GROUP', help='As this group has them.')
@limit_option
@json_option
@reaches_http
def list_(server: HttpServer, where: Place, group: str | None, limit: int, as_json: bool) -> None:
    """List records that were published for later.

    By partition and offset."""
    from acklog.client.http import path_of

    assert where.topic is not None
    path = path_of('topics', where.topic, 'scheduled')
    items = listed(server, path, limit, partition=where.partition, group=group)
    if as_json:
        show_json(items)
        return
    rows = [[name_of(item), as_local_time(item['due_ms'])] for item in items]
    show_table(['RECORD', 'DUE'], rows, none='nothing is scheduled')


@scheduled.command(epilog='Examples: acklog scheduled cancel orders/2/1042;  acklog scheduled cancel orders --dry-run')
@click.argument('places', nargs=-1, required=True, type=place, metavar=f'{METAVAR}...')
@group_option
@change_options
@reaches_http
def cancel(server: HttpServer, places: tuple[Place, ...], group: str | None, how: How) -> None:
    """Never deliver them.

    Records that were published for later, and whose time has not come. Asks, unless --yes."""
    what = Change('Cancel', 'cancelled', NOUN, _owner(places, group), always_ask=True)
    change(server, what, _requests('cancel', places, group), how)


@scheduled.command(
    epilog='Examples: acklog scheduled move orders/2/1042 --to 2h;  '
    'acklog scheduled move orders/2 --to 2026-07-01T06:00 --group billing'
)
@click.argument('places', nargs=-1, required=True, type=place, metavar=f'{METAVAR}...')
@click.option(
    '--to', 'due', required=True, type=instant_ahead, metavar=WHEN, help='When, or how long from now: 90s, 15m, 2h, 7d.'
)
@group_option
@change_options
@reaches_http
def move(
    server: HttpServer,
    places: tuple[Place, ...],
    due: int,
    group: str | None,
    how: How,
) -> None:
    """Deliver them at another time.

    Records that were published for later, and whose time has not come. Asks, unless each offset is named."""
    time = as_local_time(due)
    what = Change('Move', f'moved to {time}', NOUN, _owner(places, group), how=f' to {time}')
    requests = _requests('move', places, group, due_ms=due)
    change(server, what, requests, how)


def _owner(places: tuple[Place, ...], group: str | None) -> str:
    topics = ', '.join(sorted({str(each.topic) for each in places}))
    return f'{topics} for {group}' if group else topics


def _requests(verb: str, places: tuple[Place, ...], group: str | None, **extra: Any) -> list[Request]:
    """Here the topic is in the path, and all of it is `all`."""
    from acklog.client.http import path_of

    requests: list[Request] = []
    for body in bodies(places):
        path = path_of('topics', body.pop('topic'), 'scheduled', verb)
        for_group = {} if group is None else {'group': group}
        requests.append((path, {**(body or {'all': True}), **for_group, **extra}))
    return requests
