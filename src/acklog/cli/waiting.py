"""`acklog waiting`: records of a group that wait for a time."""

from __future__ import annotations

import click

from acklog.cli.http import (
    Change,
    HttpServer,
    change,
    dry_run_option,
    json_option,
    limit_option,
    listed,
    reaches_http,
    yes_option,
)
from acklog.cli.output import as_local_time, show_json, show_table
from acklog.cli.places import ALL, METAVAR, NAMING, Place, bodies, chosen, name_of, partition_place, place
from acklog.cli.times import WHEN, instant_ahead

NOUN = 'waiting record'


@click.group(epilog=NAMING)
def waiting() -> None:
    """Records that wait for a time: list them, deliver them now, move them, give them up."""


@waiting.command(
    'list', epilog='Examples: acklog waiting list billing;  acklog waiting list billing orders/2 --limit 1000 --json'
)
@click.argument('group')
@click.argument('where', required=False, type=partition_place, metavar='[TOPIC[/PARTITION]]')
@limit_option
@json_option
@reaches_http
def list_(server: HttpServer, group: str, where: Place | None, limit: int, as_json: bool) -> None:
    """List records of GROUP that wait.

    By topic, partition and offset."""
    from acklog.client.http import path_of

    topic, partition, *_ = where or ALL
    items = listed(server, path_of('groups', group, 'waiting'), limit, topic=topic, partition=partition)
    if as_json:
        show_json(items)
        return
    rows = [[name_of(item), as_local_time(item['due_ms']), item['attempts']] for item in items]
    show_table(['RECORD', 'DUE', 'FAILED ATTEMPTS'], rows, none='nothing waits')


@waiting.command(
    epilog='Examples: acklog waiting now billing orders/2/1042;  acklog waiting now billing --all --dry-run'
)
@click.argument('group')
@click.argument('places', nargs=-1, type=place, metavar=f'[{METAVAR}]...')
@click.option('--all', 'everything', is_flag=True, help='All that wait in the group.')
@dry_run_option
@yes_option
@json_option
@reaches_http
def now(
    server: HttpServer,
    group: str,
    places: tuple[Place, ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Deliver records that wait now.

    Asks, unless each offset is named."""
    from acklog.client.http import path_of

    path = path_of('groups', group, 'waiting', 'now')
    requests = [(path, body) for body in bodies(chosen(places, everything))]
    what = Change('Deliver now', 'made due now', NOUN, group)
    change(server, what, requests, dry_run=dry_run, yes=yes, as_json=as_json)


@waiting.command(
    epilog='Examples: acklog waiting move billing orders/2/1042 --to 10m;  '
    'acklog waiting move billing orders --to 2026-07-01T06:00'
)
@click.argument('group')
@click.argument('places', nargs=-1, type=place, metavar=f'[{METAVAR}]...')
@click.option(
    '--to', 'due', required=True, type=instant_ahead, metavar=WHEN, help='When, or how long from now: 90s, 15m, 2h, 7d.'
)
@click.option('--all', 'everything', is_flag=True, help='All that wait in the group.')
@dry_run_option
@yes_option
@json_option
@reaches_http
def move(
    server: HttpServer,
    group: str,
    places: tuple[Place, ...],
    due: int,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Deliver records that wait at another time.

    Asks, unless each offset is named."""
    from acklog.client.http import path_of

    path = path_of('groups', group, 'waiting', 'move')
    requests = [(path, {**body, 'due_ms': due}) for body in bodies(chosen(places, everything))]
    what = Change(f'Move to {as_local_time(due)}', f'moved to {as_local_time(due)}', NOUN, group)
    change(server, what, requests, dry_run=dry_run, yes=yes, as_json=as_json)


@waiting.command(epilog='Example: acklog waiting discard billing orders/2/1000-1099')
@click.argument('group')
@click.argument('places', nargs=-1, type=place, metavar=f'[{METAVAR}]...')
@click.option('--all', 'everything', is_flag=True, help='All that wait in the group.')
@dry_run_option
@yes_option
@json_option
@reaches_http
def discard(
    server: HttpServer,
    group: str,
    places: tuple[Place, ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Give up records that wait.

    They are dead then, and may be redriven. Asks, unless --yes."""
    from acklog.client.http import path_of

    path = path_of('groups', group, 'waiting', 'discard')
    requests = [(path, body) for body in bodies(chosen(places, everything))]
    what = Change('Give up', 'given up', NOUN, group, always_ask=True)
    change(server, what, requests, dry_run=dry_run, yes=yes, as_json=as_json)
