"""`acklog group why` and `status`: where the records of a group are, and why it gets nothing."""

from __future__ import annotations

from typing import Any

import click

from acklog.cli import names as complete
from acklog.cli.http import HttpServer, reaches_http
from acklog.cli.options import json_option
from acklog.cli.output import as_local_time, note, printable, show_json, show_table


@click.command(
    short_help='Say why a group gets nothing.',
    epilog='Examples: acklog group why billing;  acklog group why billing --member worker-1',
)
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@click.option('--member', metavar='MEMBER', help='Why this member gets nothing.  [default: any]')
@json_option
@reaches_http
def why(server: HttpServer, name: str, member: str | None, as_json: bool) -> None:
    """Say why a group, or one of its members, gets nothing, by partition."""
    from acklog.client.http import path_of

    items = server.client().get(path_of('groups', name, 'why'), member=member)['items']
    if as_json:
        show_json(items)
        return
    rows = [
        [each['topic'], each['partition'], each['reason'], as_local_time(each['until_ms']), _details(each)]
        for each in items
    ]
    none = f'{name} has no partitions: nobody has subscribed to a topic'
    show_table(['TOPIC', 'PARTITION', 'REASON', 'UNTIL', 'IN WORDS'], rows, none=none)
    if rows and all(each['reason'] == 'nothing new' for each in items):
        back = f'acklog group seek {printable(name)} --to earliest'
        note(
            f'what is settled (not what was cancelled), or older than the group, comes again after: {back} (--dry-run)'
        )


def _details(each: dict[str, Any]) -> str:
    members = ', '.join(each['members'])
    return f'{each["detail"]} ({members})' if members else str(each['detail'])


@click.command(
    short_help='Show where its records are, and who holds them.', epilog='Example: acklog group status billing --json'
)
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@json_option
@reaches_http
def status(server: HttpServer, name: str, as_json: bool) -> None:
    """Show where the records of a group are, by partition, and who holds them."""
    from acklog.client.http import path_of

    found = server.client().get(path_of('groups', name, 'status'))
    if as_json:
        show_json(found)
        return
    if found['paused'] is not None:
        note(f'{name} is paused: {printable(found["paused"])}')
    for part in found['partitions']:
        if part['dying_reason'] is not None:
            place = f'{part["topic"]}/{part["partition"]}'
            note(f'{part["dying"]} dead letters of {place} cannot be written: {printable(part["dying_reason"])}')
    rows = [
        [
            part['topic'],
            part['partition'],
            part['start'],
            part['lag'],
            part['available'] + max(part['log_end'] - part['end'], 0),  # with those that nobody has looked at yet
            part['acquired'] + part['pending'],
            part['waiting'],
            as_local_time(part['next_due']),
            part['dead'],
            as_local_time(part['oldest_unsettled_ms']),
        ]
        for part in found['partitions']
    ]
    head = ['TOPIC', 'PARTITION', 'START', 'LAG', 'AVAILABLE', 'HELD', 'WAITING', 'NEXT DUE', 'DEAD', 'OLDEST']
    show_table(head, rows, none=f'{name} has not taken any records yet')
    held = [
        [
            each['member'],
            f'{part["topic"]}/{part["partition"]}',
            each['records'],
            as_local_time(each['since_ms']),
            as_local_time(each['lock_until_ms']),
        ]
        for part in found['partitions']
        for each in part['holders']
    ]
    if held:
        click.echo()
        show_table(['MEMBER', 'HOLDS OF', 'RECORDS', 'SINCE', 'LOCKED UNTIL'], held, none='')
