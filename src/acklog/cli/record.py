"""`acklog record`: one record, and what it is to each group."""

from __future__ import annotations

import sys
from typing import Any

import click

from acklog.cli.http import HttpServer, reaches_http
from acklog.cli.options import json_option
from acklog.cli.output import as_local_time, as_time, check_output, printable, show_json, show_table
from acklog.cli.places import Place, name_of, record_place
from acklog.cli.records import field, text

NOT_COUNTED = ('done', 'not taken', 'cancelled')  # states in which nothing is known of deliveries, or no more


@click.group()
def record() -> None:
    """One record, and what it is to each group."""


@record.command(
    epilog='Examples: acklog record show orders/2/1042;  acklog record show orders/2/1042 --value > order.json'
)
@click.argument('where', type=record_place, metavar='TOPIC/PARTITION/OFFSET')
@click.option('--value', 'only_value', is_flag=True, help='Only the value, byte for byte.')
@json_option
@reaches_http
def show(server: HttpServer, where: Place, only_value: bool, as_json: bool) -> None:
    """Show a record, and its state in every group.

    Attempts, who holds it and until when, when it comes again, why it failed or died."""
    if only_value and as_json:
        raise click.UsageError('Either --value or --json.')
    found = fetch(server, where)
    if only_value:
        from acklog.client.http import to_bytes

        check_output()
        sys.stdout.buffer.write(to_bytes(found['value']) or b'')
        return
    if as_json:
        show_json(as_fields(found))
        return
    click.echo(f'record     {name_of(found)}')
    show_record(found)
    click.echo()
    show_table(
        ['GROUP', 'STATE', 'DELIVERIES', 'FAILED', 'MEMBER', 'UNTIL', 'WHY'],
        [
            [
                each['group'],
                each['state'],
                *([None, None] if each['state'] in NOT_COUNTED else [each['deliveries'], each['attempts']]),
                each['member'],
                as_local_time(_until(each)),
                ': '.join(part for part in (each['reason'], each['words']) if part) or None,
            ]
            for each in found['groups']
        ],
        none='no group has taken from this partition',
    )


def _until(state: dict[str, Any]) -> int | None:
    """When it comes again, or until when it is locked."""
    instant: int | None = state['lock_until_ms'] if state['due_ms'] is None else state['due_ms']
    return instant


def fetch(server: HttpServer, where: Place) -> dict[str, Any]:
    """The record, as the API gives it. Raises ClientError."""
    from acklog.client.http import path_of

    assert where.topic is not None and where.partition is not None
    path = path_of('topics', where.topic, 'partitions', where.partition, 'records', where.offsets[0])
    found: dict[str, Any] = server.client().get(path)
    return found


def as_fields(found: dict[str, Any]) -> dict[str, Any]:
    """The JSON document of a record: bytes as `subscribe --json` gives them."""
    from acklog.client.http import to_bytes

    return {
        'topic': found['topic'],
        'partition': found['partition'],
        'offset': found['offset'],
        'timestamp': as_time(found['timestamp_ms']) if found['timestamp_ms'] >= 0 else None,
        'timestamp_ms': found['timestamp_ms'],
        **field('key', to_bytes(found['key'])),
        **field('value', to_bytes(found['value'])),
        'headers': [{'name': h['name'], **field('value', to_bytes(h['value']))} for h in found['headers']],
        'due_ms': found['due_ms'],
        'cancelled': found['cancelled'],
        'groups': found['groups'],
    }


def show_record(found: dict[str, Any]) -> None:
    """Its own fields, a line each."""
    from acklog.client.http import to_bytes

    click.echo(f'published  {as_local_time(found["timestamp_ms"]) or "-"}')
    if found['cancelled']:
        click.echo('cancelled  before its time: no group gets it')
    elif found['due_ms'] is not None:
        click.echo(f'scheduled  {as_local_time(found["due_ms"])}')
    click.echo(f'key        {text(to_bytes(found["key"]))}')
    for header in found['headers']:
        click.echo(f'header     {printable(header["name"])}: {text(to_bytes(header["value"]))}')
    click.echo(f'value      {text(to_bytes(found["value"]))}')
