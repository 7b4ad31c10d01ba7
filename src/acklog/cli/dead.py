"""`acklog dead`: records of a group that died."""

from __future__ import annotations

import click

from acklog.cli import names as complete
from acklog.cli.http import Change, How, HttpServer, change, change_options, reaches_http
from acklog.cli.of_group import Choice, Listing, choosing, listing
from acklog.cli.options import json_option
from acklog.cli.output import as_local_time, printable, show_json, show_table
from acklog.cli.places import NAMING, Place, name_of, record_place

NOUN = 'dead record'


@click.group(epilog=NAMING)
def dead() -> None:
    """Dead records of a group: list them, look at them, redrive them, discard them."""


@dead.command(
    'list', epilog='Examples: acklog dead list billing;  acklog dead list billing orders/2 --limit 1000 --json'
)
@listing
@reaches_http
def list_(server: HttpServer, listing: Listing) -> None:
    """List dead records of GROUP.

    By topic, partition and offset: when and why each died, and at which member."""
    items = listing.items(server, 'dead')
    if listing.as_json:
        show_json(items)
        return
    rows = [
        [
            name_of(item),
            as_local_time(item['died_ms']),
            item['attempts'],
            item['member'],
            _why(item['reason'], item['words']),
        ]
        for item in items
    ]
    show_table(['RECORD', 'DIED', 'FAILED', 'LAST MEMBER', 'WHY'], rows, none='nothing is dead')


def _why(reason: str | None, words: str | None) -> str:
    return f'{reason or "-"}: {words}' if words else reason or '-'


@dead.command(epilog='Example: acklog dead show billing orders/2/1042')
@click.argument('group', shell_complete=complete.groups)
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


def _rate(text: str) -> float:
    """For `type=` of click's parameter."""
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.001 <= rate <= 1_000_000:
        raise click.BadParameter(f'{text!r} is not 0.001 to 1000000 records a second.')
    return rate


@dead.command(
    epilog='Examples: acklog dead redrive billing orders/2/1042;  acklog dead redrive billing --all --rate 100'
)
@choosing('are dead')
@click.option(
    '--rate',
    type=_rate,
    metavar='N',
    help='At most so many records a second.  [default: all at once]',
)
@change_options
@reaches_http
def redrive(
    server: HttpServer,
    choice: Choice,
    rate: float | None,
    how: How,
) -> None:
    """Let dead records come again.

    To this group only, in their order, as if never delivered. Asks, unless each offset is named."""
    requests = choice.requests('dead', 'redrive', **({} if rate is None else {'rate': rate}))
    if rate is not None and len(requests) > 1:  # the rate holds for a request
        raise click.UsageError('--rate goes with one topic, partition, range or list of offsets, or with --all.')
    change(server, Change('Redrive', 'redriven', NOUN, choice.group), requests, how)


@dead.command(epilog='Example: acklog dead discard billing orders/2/1000-1099')
@choosing('are dead')
@change_options
@reaches_http
def discard(
    server: HttpServer,
    choice: Choice,
    how: How,
) -> None:
    """Be done with dead records for good.

    They are settled, and cannot be redriven. Asks, unless --yes."""
    requests = choice.requests('dead', 'discard')
    what = Change('Discard', 'discarded', NOUN, choice.group, always_ask=True)
    change(server, what, requests, how)
