"""`acklog dead`: records of a group that died."""

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
from acklog.cli.output import as_local_time, printable, show_json, show_table
from acklog.cli.places import ALL, METAVAR, NAMING, Place, bodies, chosen, name_of, partition_place, place, record_place

NOUN = 'dead record'


@click.group(epilog=NAMING)
def dead() -> None:
    """Dead records of a group: list them, look at them, redrive them, discard them."""


@dead.command(
    'list', epilog='Examples: acklog dead list billing;  acklog dead list billing orders/2 --limit 1000 --json'
)
@click.argument('group')
@click.argument('where', required=False, type=partition_place, metavar='[TOPIC[/PARTITION]]')
@limit_option
@json_option
@reaches_http
def list_(server: HttpServer, group: str, where: Place | None, limit: int, as_json: bool) -> None:
    """List dead records of GROUP.

    By topic, partition and offset: when and why each died, and at which member."""
    from acklog.client.http import path_of

    topic, partition, *_ = where or ALL
    items = listed(server, path_of('groups', group, 'dead'), limit, topic=topic, partition=partition)
    if as_json:
        show_json(items)
        return
    rows = [
        [
            name_of(item),
            as_local_time(item['died_ms']),
            _why(item['reason'], item['words']),
            item['attempts'],
            item['member'],
        ]
        for item in items
    ]
    show_table(['RECORD', 'DIED', 'WHY', 'FAILED ATTEMPTS', 'LAST MEMBER'], rows, none='nothing is dead')


def _why(reason: str | None, words: str | None) -> str:
    return f'{reason or "-"}: {words}' if words else reason or '-'


@dead.command(epilog='Example: acklog dead show billing orders/2/1042')
@click.argument('group')
@click.argument('where', type=record_place, metavar='TOPIC/PARTITION/OFFSET')
@json_option
@reaches_http
def show(server: HttpServer, group: str, where: Place, as_json: bool) -> None:
    """Show a dead record: why it died, and its key, headers and value."""
    from acklog.cli.record import as_fields, fetch, show_record
    from acklog.client.errors import ClientError
    from acklog.client.http import HttpNotFound, path_of

    server.client().get(path_of('groups', group))  # a group that does not exist is said to be that
    found = fetch(server, where)
    state = next((each for each in found['groups'] if each['group'] == group), None)
    name = name_of(found)
    if state is None:
        raise HttpNotFound(404, f'{group} has not taken from {where.topic}/{where.partition}')
    if state['state'] != 'dead':
        raise ClientError(f'{name} is not dead in {group}: it is {state["state"]}')
    if as_json:
        show_json({**as_fields(found), 'groups': [state]})
        return
    click.echo(f'record     {name}')
    click.echo(f'died       {as_local_time(state["died_ms"]) or "-"}')
    click.echo(f'why        {printable(_why(state["reason"], state["words"]))}')
    click.echo(f'attempts   {state["attempts"]} failed')
    click.echo(f'member     {printable(state["member"] or "-")}')
    show_record(found)


@dead.command(
    epilog='Examples: acklog dead redrive billing orders/2/1042;  acklog dead redrive billing --all --rate 100'
)
@click.argument('group')
@click.argument('places', nargs=-1, type=place, metavar=f'[{METAVAR}]...')
@click.option('--all', 'everything', is_flag=True, help='All that are dead in the group.')
@click.option(
    '--rate',
    type=click.FloatRange(min=0.001, max=1_000_000),
    metavar='N',
    help='At most so many records a second.  [default: all at once]',
)
@dry_run_option
@yes_option
@json_option
@reaches_http
def redrive(
    server: HttpServer,
    group: str,
    places: tuple[Place, ...],
    everything: bool,
    rate: float | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Let dead records come again.

    To this group only, in their order, as if never delivered. Asks, unless each offset is named."""
    from acklog.client.http import path_of

    path = path_of('groups', group, 'dead', 'redrive')
    extra = {} if rate is None else {'rate': rate}
    requests = [(path, {**body, **extra}) for body in bodies(chosen(places, everything))]
    if extra and len(requests) > 1:  # the rate holds for a request
        raise click.UsageError('--rate goes with one topic, partition, range or list of offsets, or with --all.')
    change(server, Change('Redrive', 'redriven', NOUN, group), requests, dry_run=dry_run, yes=yes, as_json=as_json)


@dead.command(epilog='Example: acklog dead discard billing orders/2/1000-1099')
@click.argument('group')
@click.argument('places', nargs=-1, type=place, metavar=f'[{METAVAR}]...')
@click.option('--all', 'everything', is_flag=True, help='All that are dead in the group.')
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
    """Be done with dead records for good.

    They are settled, and cannot be redriven. Asks, unless --yes."""
    from acklog.client.http import path_of

    path = path_of('groups', group, 'dead', 'discard')
    requests = [(path, body) for body in bodies(chosen(places, everything))]
    what = Change('Discard', 'discarded', NOUN, group, always_ask=True)
    change(server, what, requests, dry_run=dry_run, yes=yes, as_json=as_json)
