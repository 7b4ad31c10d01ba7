"""Records of a group that share a state, waiting or dead: the commands that list and change them have the same
arguments and make the same kind of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from acklog.cli import names as complete
from acklog.cli.http import HttpServer, Request, listed
from acklog.cli.options import F, gathered, json_option, limit_option
from acklog.cli.places import ALL, METAVAR, Place, bodies, chosen, partition_place, place


class Listing(NamedTuple):
    """What is to be listed: so many records of a group, of all partitions or of some."""

    group: str
    where: Place | None
    limit: int
    as_json: bool

    def items(self, server: HttpServer, state: str) -> list[dict[str, Any]]:
        """Those in that state."""
        from acklog.client.http import path_of

        topic, partition, *_ = self.where or ALL
        return listed(server, path_of('groups', self.group, state), self.limit, topic=topic, partition=partition)


listing = gathered(
    'listing',
    Listing,
    click.argument('group', shell_complete=complete.groups),
    click.argument('where', required=False, type=partition_place, metavar='[TOPIC[/PARTITION]]'),
    limit_option,
    json_option,
)


class Choice(NamedTuple):
    """Which records of a group are to be changed: some places, or all in their state."""

    group: str
    places: tuple[Place, ...]
    everything: bool

    def requests(self, *path: str, **fields: Any) -> list[Request]:
        """To the group's `path`, one for each place, with these fields besides. Raises UsageError."""
        from acklog.client.http import path_of

        to = path_of('groups', self.group, *path)
        return [(to, {**body, **fields}) for body in bodies(chosen(self.places, self.everything))]


def choosing(those: str) -> Callable[[F], F]:
    """Give a command the arguments that choose, of a group, `those`; with them its argument `choice`."""
    return gathered(
        'choice',
        Choice,
        click.argument('group', shell_complete=complete.groups),
        click.argument('places', nargs=-1, type=place, metavar=f'[{METAVAR}]...'),
        click.option('--all', 'everything', is_flag=True, help=f'All that {those} in the group.'),
    )
