"""`acklog topic`: topics and their configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acklog.cli import names as complete
from acklog.cli.assignments import METAVAR, assignment
from acklog.cli.connect import Server, reaches_server, run
from acklog.cli.named import config_command, delete_command
from acklog.cli.options import json_option
from acklog.cli.output import count, note, show_json, show_table, topic_id
from acklog.cli.places import MOST_PARTITIONS
from acklog.wire.error_words import exists

if TYPE_CHECKING:
    from acklog.client import Admin


@click.group()
def topic() -> None:
    """Create, list, describe, configure and delete topics."""


@topic.command(
    epilog='Example: acklog topic create orders --partitions 8 --config retention.ms=86400000',
)
@click.argument('names', nargs=-1, required=True, metavar='NAME...')
@click.option(
    '-p',
    '--partitions',
    type=click.IntRange(min=1, max=MOST_PARTITIONS),
    help="How many partitions.  [default: the server's num.partitions]",
)
@click.option(
    '-c',
    '--config',
    'settings',
    type=assignment,
    metavar=METAVAR,
    multiple=True,
    help='A config of the topic (repeatable).',
)
@click.option('--if-missing', is_flag=True, help='Succeed when the topic is there already.')
@reaches_server
def create(
    server: Server,
    names: tuple[str, ...],
    partitions: int | None,
    settings: tuple[tuple[str, str], ...],
    if_missing: bool,
) -> int:
    """Create topics."""

    async def command() -> None:
        from acklog.client import AlreadyExists

        async with server.client() as client:
            for name in names:
                try:
                    made = await client.admin.create_topic(name, partitions=partitions, configs=dict(settings))
                except AlreadyExists:
                    if not if_missing:
                        raise
                    note(exists(f'topic {name!r}'))
                else:
                    note(f'topic {name!r} created with {count(made.partitions, "partition")}')

    return run(command())


@topic.command('list')
@click.option('--internal', is_flag=True, help='Also those that the server keeps for itself.')
@json_option
@reaches_server
def list_(server: Server, internal: bool, as_json: bool) -> int:
    """List topics."""

    async def command() -> None:
        async with server.client() as client:
            topics = await client.admin.list_topics(internal=internal)
        if as_json:
            show_json(
                [
                    {'name': t.name, 'id': topic_id(t.id), 'partitions': t.partitions, 'internal': t.internal}
                    for t in topics
                ]
            )
        else:
            rows = [[t.name, t.partitions, topic_id(t.id)] for t in topics]
            show_table(['TOPIC', 'PARTITIONS', 'ID'], rows, none='no topics; "acklog topic create NAME" makes one')

    return run(command())


@topic.command()
@click.argument('names', nargs=-1, required=True, metavar='NAME...', shell_complete=complete.topics)
@json_option
@reaches_server
def describe(server: Server, names: tuple[str, ...], as_json: bool) -> int:
    """Show topics with their partitions, offsets and configs."""

    async def command() -> None:
        async with server.client() as client:
            described = [await client.admin.describe_topic(name) for name in names]
        if as_json:
            show_json(
                [
                    {
                        'name': t.name,
                        'id': topic_id(t.id),
                        'internal': t.internal,
                        'configs': dict(t.configs),
                        'partitions': [
                            {'partition': p.index, 'leader': p.leader, 'start': p.start, 'end': p.end}
                            for p in t.partitions
                        ],
                    }
                    for t in described
                ]
            )
            return
        for position, found in enumerate(described):
            if position:
                click.echo()
            click.echo(f'topic   {found.name}')
            click.echo(f'id      {topic_id(found.id)}')
            for name, value in found.configs.items():
                click.echo(f'config  {name}={value}')
            rows = [[p.index, p.leader, p.start, p.end, p.end - p.start] for p in found.partitions]
            show_table(['PARTITION', 'LEADER', 'START', 'END', 'OFFSETS'], rows, none='no partitions')

    return run(command())


config = config_command(
    'topic',
    'NAME',
    help='Show the configs of a topic, or change them.',
    epilog='Example: acklog topic config orders retention.ms=604800000 --unset retention.bytes',
    show=lambda admin, name: admin.topic_configs(name),
    alter=lambda admin, name, wanted: admin.alter_topic_configs(name, wanted),
)


async def _check_there(admin: Admin, name: str) -> None:
    """Raises NotFound."""
    from acklog.client.errors import refusal
    from acklog.wire.error_code import ErrorCode

    if all(topic.name != name for topic in await admin.list_topics()):
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic {name!r}')


delete = delete_command(
    'topic',
    'NAME',
    help='Delete topics with all their records.',
    question='Delete {} with all records, for all groups?',
    check=_check_there,
    delete=lambda admin, name: admin.delete_topic(name),
)

for command in (config, delete):
    topic.add_command(command)
