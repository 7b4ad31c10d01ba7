"""`acklog group seek`, `replay`, `pause` and `resume`: move a group in the log, stop it, let it go on."""

from __future__ import annotations

from typing import Any

import click

from acklog.cli import names as complete
from acklog.cli.confirm import confirm
from acklog.cli.http import Change, How, HttpServer, change, change_options, reaches_http
from acklog.cli.options import json_option
from acklog.cli.output import count, note, show_json, show_table
from acklog.cli.places import LAST_OFFSET, Place, bodies, partition_place, range_place
from acklog.cli.times import METAVAR, instant_ago


def seek_target(text: str) -> dict[str, Any]:
    """`--to` as fields of the request. For `type=` of click's parameters."""
    if text.strip().lower() in ('earliest', 'latest'):
        return {'to': text.strip().lower()}
    return {'time_ms': instant_ago(text, 'earliest, latest, ')}


@click.command(
    short_help='Go on from another place in the log.',
    epilog='Examples: acklog group seek billing --to earliest --dry-run;  acklog group seek billing orders --to 2h;  '
    'acklog group seek billing orders/2 --offset 1000',
)
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@click.argument('where', required=False, type=partition_place, metavar='[TOPIC[/PARTITION]]')
@click.option(
    '--to',
    'target',
    type=seek_target,
    metavar=METAVAR,
    help='The earliest record, behind the latest, or a time: 2026-07-01T12:00, or so long ago: 90s, 15m, 2h, 7d.',
)
@click.option('--offset', type=click.IntRange(min=0, max=LAST_OFFSET), metavar='N', help='This offset.')
@change_options
@reaches_http
def seek(
    server: HttpServer,
    name: str,
    where: Place | None,
    target: dict[str, Any] | None,
    offset: int | None,
    how: How,
) -> None:
    """Let a group go on from another place in the log, with members or without.

    All from there on is available, what is before it is settled; what members hold is taken from them, and what waits
    or is dead is forgotten. Asks, unless --yes, and says how many records it brings and drops."""
    from acklog.client.http import path_of

    if (target is None) == (offset is None):
        raise click.UsageError('Say where to: either --to or --offset.')
    body = {'offset': offset} if target is None else dict(target)
    if where is not None:
        body.update(next(iter(bodies([where]))))
    client, path = server.client(), path_of('groups', name, 'seek')
    if not (how.yes or how.dry_run):
        plan = client.post(path, {**body, 'dry_run': True})['items']
        if plan:
            brought, dropped = (sum(each[field] for each in plan) for field in ('brings', 'drops'))
            what = f'{count(brought, "settled record")} would come again, {dropped:,} would not come any more'
            confirm(f'Move {name} in {count(len(plan), "partition")}? {what}.', how.yes)
    items = client.post(path, {**body, 'dry_run': how.dry_run})['items']
    if how.as_json:
        show_json(items)
        return
    rows = [[each[field] for field in ('topic', 'partition', 'before', 'after', 'brings', 'drops')] for each in items]
    show_table(['TOPIC', 'PARTITION', 'BEFORE', 'AFTER', 'BRINGS', 'DROPS'], rows, none='there was nothing to move')
    if how.dry_run:
        note('nothing was changed: --dry-run')


@click.command(
    short_help='Have settled records again.', epilog='Example: acklog group replay billing orders/2/1000-1099'
)
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@click.argument('places', nargs=-1, required=True, type=range_place, metavar='TOPIC/PARTITION/FIRST-LAST...')
@change_options
@reaches_http
def replay(server: HttpServer, name: str, places: tuple[Place, ...], how: How) -> None:
    """Let settled records of a range come again, dead ones too; the others stay as they are. Asks, unless --yes."""
    from acklog.client.http import path_of

    path = path_of('groups', name, 'replay')
    what = Change('Replay', 'made available again', 'settled record', name, always_ask=True)
    change(server, what, [(path, body) for body in bodies(places)], how)


@click.command(
    short_help='Deliver nothing until it is resumed.',
    epilog="Example: acklog group pause billing --reason 'the payment service is down'",
)
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@click.option('--reason', metavar='TEXT', help='Shown to whoever asks why nothing comes.')
@json_option
@reaches_http
def pause(server: HttpServer, name: str, reason: str | None, as_json: bool) -> None:
    """Deliver nothing to a group until it is resumed. What its members hold they may settle."""
    _set_paused(server, name, 'pause', {} if reason is None else {'reason': reason}, as_json)


@click.command(epilog='Example: acklog group resume billing')
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@json_option
@reaches_http
def resume(server: HttpServer, name: str, as_json: bool) -> None:
    """Deliver to a group again."""
    _set_paused(server, name, 'resume', {}, as_json)


def _set_paused(server: HttpServer, name: str, verb: str, body: dict[str, Any], as_json: bool) -> None:
    from acklog.client.http import path_of

    client = server.client()
    client.post(path_of('groups', name, verb), body if verb == 'pause' else None)
    if not as_json:
        note(f'group {name!r} {verb}d')
        return
    paused = client.get(path_of('groups', name, 'lag'))['paused']
    show_json({'group': name, 'paused': paused})
