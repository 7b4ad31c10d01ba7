"""Groups and their members: list, create, look at, delete, leave."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct

from acklog.broker.api import Refused
from acklog.broker.catalog.catalog import Group
from acklog.core.membership import Member
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.routes.topics import page_of_names
from acklog.server.http.values import GroupName, Next, Paging


class GroupToCreate(Struct, forbid_unknown_fields=True):
    """A group. One is also made when it first takes records."""

    name: GroupName


class GroupView(Struct):
    """A group. `configs`: its own ones."""

    name: str
    members: Annotated[int, Meta(description='How many there are.')]
    configs: dict[str, str]


class GroupPage(Struct):
    """Groups by name."""

    items: list[GroupView]
    next: Next = None


class Assigned(Struct):
    """Partitions of a topic."""

    topic: str
    partitions: list[int]


class MemberView(Struct):
    """A member of a group: what it calls itself, where it is, what it subscribes to, what it is assigned."""

    member: str
    client: str
    host: str
    topics: list[str]
    assigned: list[Assigned]


class MemberPage(Struct):
    """Members by name."""

    items: list[MemberView]
    next: Next = None


EXAMPLE = {'name': 'billing', 'members': 2, 'configs': {'acklog.retry.backoff': '1s,10s,1m'}}
MEMBER_EXAMPLE = {
    'member': 'worker-1',
    'client': 'python-httpx/0.28.1',
    'host': '127.0.0.1:51312',
    'topics': ['orders'],
    'assigned': [{'topic': 'orders', 'partitions': [0, 1]}],
}


@endpoint('GET', '/v1/groups', tag='groups', examples=(None, {'items': [EXAMPLE], 'next': None}))
async def list_groups(call: Call, query: Paging) -> GroupPage:
    """List groups, by name."""
    names = [name for name in sorted(call.broker.catalog.groups) if _may_see(call, name)]
    page, following = page_of_names(names, query.cursor, query.limit)
    return GroupPage([_view(call, call.broker.catalog.groups[name]) for name in page], following)


def _may_see(call: Call, name: str) -> bool:
    try:
        call.broker.authorize(call.caller, 'DESCRIBE', 'GROUP', name)
    except Refused:
        return False
    return True


@endpoint(
    'POST',
    '/v1/groups',
    tag='groups',
    status=201,
    refuses=(422,),
    examples=({'name': 'billing'}, EXAMPLE | {'members': 0}),
)
async def create_group(call: Call, body: GroupToCreate) -> GroupView:
    """Create a group, if there is none of that name.

    Where it begins to read is decided when it first takes records (`share.auto.offset.reset`)."""
    call.broker.authorize(call.caller, 'READ', 'GROUP', body.name)
    group = await call.broker.groups.ensure(body.name)
    call.location = f'/v1/groups/{quote(group.name, safe="")}'
    return _view(call, group)


@endpoint('GET', '/v1/groups/{group}', tag='groups', refuses=(404,), examples=(None, EXAMPLE))
async def show_group(call: Call, group: GroupName) -> GroupView:
    """Show a group."""
    call.broker.authorize(call.caller, 'DESCRIBE', 'GROUP', group)
    return _view(call, call.broker.groups.existing(group))


@endpoint('DELETE', '/v1/groups/{group}', tag='groups', refuses=(404, 409))
async def remove_group(call: Call, group: GroupName) -> None:
    """Delete a group without members: what it has taken and signed off is forgotten; its configs stay."""
    call.broker.authorize(call.caller, 'DELETE', 'GROUP', group)
    await call.broker.groups.delete(group)


@endpoint(
    'GET',
    '/v1/groups/{group}/members',
    tag='groups',
    refuses=(404,),
    examples=(None, {'items': [MEMBER_EXAMPLE], 'next': None}),
)
async def list_members(call: Call, group: GroupName, query: Paging) -> MemberPage:
    """List the members of a group, by name."""
    call.broker.authorize(call.caller, 'DESCRIBE', 'GROUP', group)
    call.broker.groups.existing(group)
    members = {member.id: member for member in call.broker.groups.members.of(group)}
    page, following = page_of_names(sorted(members), query.cursor, query.limit)
    return MemberPage([_member(members[name]) for name in page], following)


def _member(member: Member) -> MemberView:
    assigned = [Assigned(topic.name, list(indexes)) for topic, indexes in member.assignment.items()]
    host = member.client_host.lstrip('/')
    return MemberView(member.id, member.client_id, host, sorted(member.topics), assigned)


def _view(call: Call, group: Group) -> GroupView:
    return GroupView(group.name, len(call.broker.groups.members.of(group.name)), group.configs)


GROUPS = (list_groups, create_group, show_group, remove_group, list_members)
