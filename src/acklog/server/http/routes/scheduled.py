"""Records published for later: list them, cancel them, move them to another time, until they are delivered."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from acklog.broker.operations import Changed, ScheduledRecord, Selection
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.routes.choosing import check_offsets, unclear
from acklog.server.http.routes.waiting import CHANGED_EXAMPLE
from acklog.server.http.values import MOST_RECORDS, DryRun, GroupName, Index, Instant, Next, Offset, Paging, TopicName

OneGroup = Annotated[
    GroupName | None, Meta(description='Only for this group; without: for all, those that come later too.')
]


class ScheduledPlace(Paging):
    """Which part of the list."""

    partition: Index | None = None
    group: Annotated[GroupName | None, Meta(description='As this group has them.')] = None


class ScheduledPage(Struct):
    """Records whose time has not come, by partition and offset."""

    items: list[ScheduledRecord]
    next: Next = None


class ScheduledChoice(Struct, forbid_unknown_fields=True, kw_only=True):
    """Some records of the topic: of a partition, of a range of its offsets (both ends included) or of a list of them.
    Or `all`."""

    partition: Index | None = None
    first: Offset | None = None
    last: Offset | None = None
    offsets: Annotated[list[Offset], Meta(min_length=1, max_length=MOST_RECORDS)] | None = None
    all: Annotated[bool, Meta(description='Of all partitions; nothing else is said then.')] = False
    group: OneGroup = None
    dry_run: DryRun = False


class ScheduledMove(ScheduledChoice, kw_only=True):
    """Some records, and when they shall come."""

    due_ms: Instant


PLACE_EXAMPLE = {'topic': 'orders', 'partition': 0, 'offset': 1042, 'due_ms': 1_767_225_600_000}
CHOICE_EXAMPLE = {'partition': 0, 'first': 1042, 'last': 1042}


def _selection(topic: str, choice: ScheduledChoice) -> Selection:
    """What it means. Raises Problem."""
    if choice.all == (choice.partition is not None):
        raise unclear('/partition', 'either a partition or all')
    check_offsets(choice.partition, choice.first, choice.last, choice.offsets)
    return Selection(topic, choice.partition, choice.first, choice.last, choice.offsets)


@endpoint(
    'GET',
    '/v1/topics/{topic}/scheduled',
    tag='scheduled',
    refuses=(404, 422),
    examples=(None, {'items': [PLACE_EXAMPLE], 'next': None}),
)
async def list_scheduled(call: Call, topic: TopicName, query: ScheduledPlace) -> ScheduledPage:
    """List records that were published for later and whose time has not come, by partition and offset."""
    page = await call.broker.operations.scheduled(
        call.caller, topic, query.partition, query.group, query.cursor, query.limit
    )
    return ScheduledPage(page.items, page.next)


@endpoint(
    'POST',
    '/v1/topics/{topic}/scheduled/cancel',
    tag='scheduled',
    refuses=(404, 422),
    examples=(CHOICE_EXAMPLE, CHANGED_EXAMPLE),
)
async def cancel_scheduled(call: Call, topic: TopicName, body: ScheduledChoice) -> Changed:
    """Never deliver records that were published for later: to no group, or not to one.

    Those whose time has come are left alone."""
    chosen = _selection(topic, body)
    return await call.broker.operations.scheduled_cancel(call.caller, chosen, body.group, body.dry_run)


@endpoint(
    'POST',
    '/v1/topics/{topic}/scheduled/move',
    tag='scheduled',
    refuses=(404, 422),
    examples=(CHOICE_EXAMPLE | {'due_ms': 1_767_229_200_000}, CHANGED_EXAMPLE),
)
async def move_scheduled(call: Call, topic: TopicName, body: ScheduledMove) -> Changed:
    """Deliver records that were published for later at another time: to all groups, or to one.

    A time that has come means now. Those whose own time has come are left alone."""
    chosen = _selection(topic, body)
    return await call.broker.operations.scheduled_move(call.caller, chosen, body.due_ms, body.group, body.dry_run)


SCHEDULED = (list_scheduled, cancel_scheduled, move_scheduled)
