"""Dead records of a group: list them, let them come again, or be done with them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from acklog.broker.operations import Changed, DeadRecord
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.routes.choosing import Choice, Place, check_place, selection
from acklog.server.http.routes.waiting import CHANGED_EXAMPLE, CHOICE_EXAMPLE
from acklog.server.http.values import GroupName, Next


class DeadPage(Struct):
    """Dead records, by topic, partition and offset."""

    items: list[DeadRecord]
    next: Next = None


class Redrive(Choice, kw_only=True):
    """Some dead records, and how fast they shall come."""

    rate: (
        Annotated[float, Meta(ge=0.001, le=1_000_000, description='Most records a second; without: all at once.')]
        | None
    ) = None


DEAD_EXAMPLE = {
    'topic': 'orders',
    'partition': 0,
    'offset': 1042,
    'reason': 'rejected',
    'words': 'no such customer',
    'died_ms': 1_767_225_600_000,
    'attempts': 0,
    'member': 'worker-1',
}


@endpoint(
    'GET',
    '/v1/groups/{group}/dead',
    tag='dead',
    refuses=(404, 422),
    examples=(None, {'items': [DEAD_EXAMPLE], 'next': None}),
)
async def list_dead(call: Call, group: GroupName, query: Place) -> DeadPage:
    """List dead records, by topic, partition and offset: why and when each died, and where.

    The record itself is at `/v1/topics/{topic}/partitions/{partition}/records/{offset}`."""
    check_place(query)
    operations = call.broker.operations
    page = await operations.dead(call.caller, group, query.topic, query.partition, query.cursor, query.limit)
    return DeadPage(page.items, page.next)


@endpoint(
    'POST',
    '/v1/groups/{group}/dead/redrive',
    tag='dead',
    refuses=(404, 409, 422),
    examples=(CHOICE_EXAMPLE | {'rate': 100}, CHANGED_EXAMPLE),
)
async def redrive(call: Call, group: GroupName, body: Redrive) -> Changed:
    """Let dead records come again, to this group only, in their order, as if never delivered."""
    return await call.broker.operations.redrive(call.caller, group, selection(body), body.rate, body.dry_run)


@endpoint(
    'POST',
    '/v1/groups/{group}/dead/discard',
    tag='dead',
    refuses=(404, 422),
    examples=(CHOICE_EXAMPLE, CHANGED_EXAMPLE),
)
async def discard(call: Call, group: GroupName, body: Choice) -> Changed:
    """Be done with dead records: they are settled, and cannot be redriven."""
    return await call.broker.operations.discard(call.caller, group, selection(body), body.dry_run)


DEAD = (list_dead, redrive, discard)
