"""`acklog group`: share groups, their members, configs and lag; the commands over HTTP are in files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acklog.cli import names as complete
from acklog.cli.connect import Server, reaches_server, run
from acklog.cli.group_insight import status, why
from acklog.cli.group_moves import pause, replay, resume, seek
from acklog.cli.named import config_command, delete_command
from acklog.cli.options import json_option
from acklog.cli.output import note, printable, show_json, show_table

if TYPE_CHECKING:
    from acklog.client import Admin


@click.group()
def group() -> None:
    """Look after groups: their members, configs and lag, why nothing comes; move, pause and delete them."""


@group.command('list')
@click.option('--all', 'all_kinds', is_flag=True, help='Also groups that are no share groups.')
@json_option
@reaches_server
def list_(server: Server, all_kinds: bool, as_json: bool) -> int:
    """List groups."""

    async def command() -> None:
        async with server.client() as client:
            groups = await client.admin.list_groups(kinds=() if all_kinds else ('share',))
        if as_json:
            show_json([{'id': g.id, 'kind': g.kind, 'state': g.state} for g in groups])
        else:
            rows = [[g.id, g.kind, g.state] for g in groups]
            show_table(['GROUP', 'KIND', 'STATE'], rows, none='no groups; one begins with its first subscriber')

    return run(command())


@group.command()
@click.argument('names', nargs=-1, required=True, metavar='GROUP...', shell_complete=complete.groups)
@json_option
@reaches_server
def describe(server: Server, names: tuple[str, ...], as_json: bool) -> int:
    """Show groups with their members and the partitions each one has."""

    async def command() -> None:
        async with server.client() as client:
            described = [await client.admin.describe_group(name) for name in names]
        if as_json:
            show_json(
                [
                    {
                        'id': g.id,
                        'state': g.state,
                        'epoch': g.epoch,
                        'assignment_epoch': g.assignment_epoch,
                        'assignor': g.assignor,
                        'members': [
                            {
                                'id': m.id,
                                'client_id': m.client_id,
                                'host': m.host,
                                'epoch': m.epoch,
                                'topics': list(m.topics),
                                'assignment': {name: list(indexes) for name, indexes in m.assignment.items()},
                            }
                            for m in g.members
                        ],
                    }
                    for g in described
                ]
            )
            return
        for position, found in enumerate(described):
            if position:
                click.echo()
            click.echo(f'group  {printable(found.id)}')
            click.echo(f'state  {found.state}')
            rows = [
                [m.id, m.client_id, m.host, '; '.join(f'{t}: {_indexes(p)}' for t, p in m.assignment.items()) or '-']
                for m in found.members
            ]
            show_table(['MEMBER', 'CLIENT', 'HOST', 'PARTITIONS'], rows, none='no members')

    return run(command())


def _indexes(indexes: object) -> str:
    """Partition numbers, neighbours as a range: 0-3,5."""
    numbers = sorted(indexes) if isinstance(indexes, list | tuple | set | frozenset) else []
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] + 1 == number:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ','.join('-'.join(str(n) for n in part) for part in parts)


@group.command()
@click.argument('name', metavar='GROUP', shell_complete=complete.groups)
@json_option
@reaches_server
def lag(server: Server, name: str, as_json: bool) -> int:
    """Show how many records a group still has to sign off."""

    async def command() -> None:
        async with server.client() as client:
            parts = await client.admin.lag(name)
        total = sum(part.lag or 0 for part in parts)
        if as_json:
            show_json(
                {
                    'group': name,
                    'lag': total,
                    'partitions': [
                        {
                            'topic': p.topic,
                            'partition': p.partition,
                            'start': p.start,
                            'lag': p.lag,
                            'exact': p.exact,
                        }
                        for p in parts
                    ],
                }
            )
            return
        rows = [[p.topic, p.partition, p.start, p.lag] for p in parts]
        show_table(
            ['TOPIC', 'PARTITION', 'START', 'LAG'], rows, none=f'group {name!r} has not begun with any partition'
        )
        if len(parts) > 1:
            note(f'{total:,} in all')

    return run(command())


config = config_command(
    'group',
    'GROUP',
    help='Show the configs of a group, or change them. The group need not exist yet.',
    epilog='Example: acklog group config billing share.record.lock.duration.ms=60000 share.auto.offset.reset=earliest',
    show=lambda admin, name: admin.group_configs(name),
    alter=lambda admin, name, wanted: admin.alter_group_configs(name, wanted),
)


async def _check_deletable(admin: Admin, name: str) -> None:
    """Raises Refused. Of all kinds of groups: on Kafka the others are deleted in the same way."""
    from acklog.client.errors import refusal
    from acklog.wire.error_code import ErrorCode

    states = {group.id: group.state for group in await admin.list_groups()}
    if name not in states:
        raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f'group {name!r}')
    if states[name].lower() == 'stable':
        raise refusal(ErrorCode.NON_EMPTY_GROUP, f'group {name!r}')


delete = delete_command(
    'group',
    'GROUP',
    help='Delete groups without members, and what they have signed off.',
    question='Delete {} with all that was signed off?',
    check=_check_deletable,
    delete=lambda admin, name: admin.delete_group(name),
)

for command in (config, delete, why, status, seek, replay, pause, resume):
    group.add_command(command)
