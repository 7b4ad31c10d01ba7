"""Records of a group that wait for a time: list them, have them now, at another time, or give them up."""

from __future__ import annotations

from msgspec import Struct

from acklog.broker.operations import Changed, WaitingRecord
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.routes.choosing import Choice, Place, check_place, selection
from acklog.server.http.values import GroupName, Instant, Next


class WaitingPage(Struct):
    """Waiting records, by topic, partition and offset."""

    items: list[WaitingRecord]
    next: Next = None


class Move(Choice, kw_only=True):
    """Some records, and when they shall come."""

    due_ms: Instant


WAITING_EXAMPLE = {
    'topic': 'orders',
    'partition': 0,
    'offset': 1042,
    'due_ms': 1_767_225_610_000,
    'attempts': 1,
}
CHOICE_EXAMPLE = {'topic': 'orders', 'partition': 0, 'first': 1000, 'last': 1099}
CHANGED_EXAMPLE = {'records': 17, 'dry_run': False, 'pending': 0}


@endpoint(
    'GET',
    '/v1/groups/{group}/waiting',
    tag='waiting',
    refuses=(404, 422),
    examples=(None, {'items': [WAITING_EXAMPLE], 'next': None}),
)
async def list_waiting(call: Call, group: GroupName, query: Place) -> WaitingPage:
    """List waiting records, by topic, partition and offset."""
    check_place(query)
    operations = call.broker.operations
    page = await operations.waiting(call.caller, group, query.topic, query.partition, query.cursor, query.limit)
    return WaitingPage(page.items, page.next)


@endpoint(
    'POST',
    '/v1/groups/{group}/waiting/now',
    tag='waiting',
    refuses=(404, 422),
    examples=(CHOICE_EXAMPLE, CHANGED_EXAMPLE),
)
async def have_waiting_now(call: Call, group: GroupName, body: Choice) -> Changed:
    """Have waiting records delivered now."""
    return await call.broker.operations.waiting_now(call.caller, group, selection(body), body.dry_run)


@endpoint(
    'POST',
    '/v1/groups/{group}/waiting/move',
    tag='waiting',
    refuses=(404, 422),
    examples=(CHOICE_EXAMPLE | {'due_ms': 1_767_229_200_000}, CHANGED_EXAMPLE),
)
async def move_waiting(call: Call, group: GroupName, body: Move) -> Changed:
    """Have waiting records delivered at another time."""
    chosen = selection(body)
    return await call.broker.operations.waiting_move(call.caller, group, chosen, body.due_ms, body.dry_run)


@endpoint(
    'POST',
    '/v1/groups/{group}/waiting/discard',
    tag='waiting',
    refuses=(404, 422),
    examples=(CHOICE_EXAMPLE, CHANGED_EXAMPLE),
)
async def give_up_waiting(call: Call, group: GroupName, body: Choice) -> Changed:
    """Give waiting records up: they are dead then, and may be redriven."""
    return await call.broker.operations.waiting_discard(call.caller, group, selection(body), body.dry_run)


WAITING = (list_waiting, have_waiting_now, move_waiting, give_up_waiting)
