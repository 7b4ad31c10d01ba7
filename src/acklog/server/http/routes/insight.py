"""Where the records of a group are, and why it gets nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from acklog.broker.operations import GroupStatus, PartitionStatus, Why
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.values import GroupName, MemberName


class TopicLag(Struct):
    """The records of a topic, of all its partitions together, as the group has them.

    `lag`: not settled. Of these `available` may be taken now, `waiting` wait for a time, `acquired` are held, and of
    `dying` ones the dead letter is still to be written.
    `oldest_unsettled_ms`: the time of the oldest that is not settled, null when all are."""

    topic: str
    lag: int
    available: int
    waiting: int
    acquired: int
    dying: int
    dead: int
    settled: int
    oldest_unsettled_ms: int | None


class GroupLag(Struct):
    """What a group has not settled, topic by topic."""

    group: str
    paused: Annotated[str | None, Meta(description='Why it is paused; null: it is not.')]
    lag: int
    topics: list[TopicLag]


class Asking(Struct, forbid_unknown_fields=True):
    """Who asks."""

    member: Annotated[MemberName | None, Meta(description='Why this member gets nothing; without: any.')] = None


class Reasons(Struct):
    """One for each partition."""

    items: list[Why]


def by_topic(partitions: Iterable[PartitionStatus]) -> list[TopicLag]:
    """The sums over partitions, by name of the topic."""
    topics: dict[str, TopicLag] = {}
    for each in partitions:
        total = topics.get(each.topic)
        if total is None:
            total = topics[each.topic] = TopicLag(each.topic, 0, 0, 0, 0, 0, 0, 0, None)
        total.lag += each.lag
        total.available += each.available + max(each.log_end - each.end, 0)  # and what nobody has taken yet
        total.waiting += each.waiting
        total.acquired += each.acquired + each.pending
        total.dying += each.dying
        total.dead += each.dead
        total.settled += each.settled
        oldest = each.oldest_unsettled_ms
        if oldest is not None and (total.oldest_unsettled_ms is None or oldest < total.oldest_unsettled_ms):
            total.oldest_unsettled_ms = oldest
    return [topics[name] for name in sorted(topics)]


PARTITION_EXAMPLE = {
    'topic': 'orders',
    'partition': 0,
    'start': 1040,
    'end': 1050,
    'log_end': 1052,
    'available': 3,
    'acquired': 5,
    'pending': 0,
    'dying': 0,
    'waiting': 1,
    'next_due': 1_767_225_610_000,
    'dead': 1,
    'settled': 1043,
    'lag': 9,
    'oldest_unsettled_ms': 1_767_225_590_000,
    'holders': [
        {'member': 'worker-1', 'records': 5, 'since_ms': 1_767_225_600_000, 'lock_until_ms': 1_767_225_630_000}
    ],
}
LAG_EXAMPLE = {
    'topic': 'orders',
    'lag': 9,
    'available': 3,
    'waiting': 1,
    'acquired': 5,
    'dying': 0,
    'dead': 1,
    'settled': 1043,
    'oldest_unsettled_ms': 1_767_225_590_000,
}
WHY_EXAMPLE = {
    'topic': 'orders',
    'partition': 0,
    'reason': 'held',
    'detail': 'All 5 records are held by worker-1.',
    'until_ms': 1_767_225_630_000,
    'members': ['worker-1'],
}


@endpoint(
    'GET',
    '/v1/groups/{group}/status',
    tag='insight',
    refuses=(404,),
    examples=(None, {'group': 'billing', 'paused': None, 'partitions': [PARTITION_EXAMPLE]}),
)
async def show_status(call: Call, group: GroupName) -> GroupStatus:
    """Show where the records of a group are, partition by partition, and who holds them."""
    return await call.broker.operations.status(call.caller, group)


@endpoint(
    'GET',
    '/v1/groups/{group}/lag',
    tag='insight',
    refuses=(404,),
    examples=(None, {'group': 'billing', 'paused': None, 'lag': 9, 'topics': [LAG_EXAMPLE]}),
)
async def show_lag(call: Call, group: GroupName) -> GroupLag:
    """Show how many records a group has not settled, topic by topic.

    These are counted one by one: a single record that is held back is a lag of one, not of all behind it."""
    status = await call.broker.operations.status(call.caller, group)
    topics = by_topic(status.partitions)
    return GroupLag(group, status.paused, sum(topic.lag for topic in topics), topics)


@endpoint(
    'GET',
    '/v1/groups/{group}/why',
    tag='insight',
    refuses=(404,),
    examples=(None, {'items': [WHY_EXAMPLE]}),
)
async def explain(call: Call, group: GroupName, query: Asking) -> Reasons:
    """Say why a group, or one of its members, gets nothing, partition by partition."""
    return Reasons(await call.broker.operations.why(call.caller, group, query.member))


INSIGHT = (show_status, show_lag, explain)
