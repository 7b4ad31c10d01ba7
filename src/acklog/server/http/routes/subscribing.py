"""Taking records as a member of a group, and signing them off.

A consumer over HTTP is a member like any other. What it holds it holds by a lock: a token that comes with each record,
and that counts until the record is settled, the lock has run out, or somebody moved the group away from under it.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from acklog.broker.operations import Ack, AckResult, Delivery
from acklog.broker.operations.exchanged import Action
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.problems import Problem
from acklog.server.http.values import (
    MOST_RECORDS,
    Bytes,
    Delay,
    GroupName,
    Header,
    Index,
    Instant,
    MemberName,
    Offset,
    TopicName,
    shown,
    shown_headers,
)

MOST_TOPICS = 100
MOST_TAKEN = 1_000
MOST_BYTES = 16 << 20
LONGEST_WAIT_MS = 60_000
LONGEST_WORDS = 1_024

Lock = Annotated[str, Meta(min_length=1, max_length=256, description='The token that came with the record.')]


class Acquisition(Struct, forbid_unknown_fields=True):
    """What a member wants."""

    member: MemberName
    topics: Annotated[list[TopicName], Meta(min_length=1, max_length=MOST_TOPICS)]
    count: Annotated[int, Meta(ge=1, le=MOST_TAKEN, description='Most records.')] = 1
    max_bytes: Annotated[
        int, Meta(ge=1, le=MOST_BYTES, description='Most bytes of records, though one record always fits.')
    ] = 1 << 20
    wait_ms: Annotated[
        int, Meta(ge=0, le=LONGEST_WAIT_MS, description='How long to wait for a record where there is none.')
    ] = 0


class DeliveryView(Struct):
    """A record handed to a member, who holds it until `lock_until_ms`.

    `deliveries`: how often it was handed out, this time included; `attempts`: how many of these failed."""

    topic: str
    partition: int
    offset: int
    lock: str
    deliveries: int
    attempts: int
    timestamp_ms: int
    key: Bytes
    value: Bytes
    headers: list[Header]
    lock_until_ms: int


class Acquired(Struct):
    """Records; none when nothing came in time."""

    records: list[DeliveryView]


class Acknowledgement(Struct, forbid_unknown_fields=True):
    """What became of a record.

    accept: it is done. release: it comes again, after `after_ms` or at `at_ms`, or when the group's backoff says.
    reject: it is dead. renew: the lock begins anew."""

    lock: Lock
    action: Action
    after_ms: Delay | None = None
    at_ms: Annotated[Instant | None, Meta(description='Not before that instant.')] = None
    reason: (
        Annotated[str, Meta(max_length=LONGEST_WORDS, description='Your own words, kept with the record.')] | None
    ) = None


class Acknowledgements(Struct, forbid_unknown_fields=True):
    """Each counts for itself."""

    acknowledgements: Annotated[list[Acknowledgement], Meta(min_length=1, max_length=MOST_RECORDS)]


class Renewal(Struct, forbid_unknown_fields=True):
    """Locks that begin anew."""

    locks: Annotated[list[Lock], Meta(min_length=1, max_length=MOST_RECORDS)]


class Results(Struct):
    """One for each, in their order."""

    results: list[AckResult]


class Deferral(Struct, forbid_unknown_fields=True):
    """When a record that somebody holds comes again if this delivery of it fails: one of `at_ms` and `after_ms`."""

    topic: TopicName
    partition: Index
    offset: Offset
    at_ms: Instant | None = None
    after_ms: Delay | None = None
    deliveries: (
        Annotated[int, Meta(ge=1, le=32_767, description='The delivery it is about, where you know its number.')] | None
    ) = None


LOCK = 'ezq0b0NKSJqDkZ0q3bT1wQ-0-1042-7-1'
DELIVERY_EXAMPLE = {
    'topic': 'orders',
    'partition': 0,
    'offset': 1042,
    'lock': LOCK,
    'deliveries': 1,
    'attempts': 0,
    'timestamp_ms': 1_767_225_600_000,
    'key': 'customer-7',
    'value': '{"order": 1042}',
    'headers': [],
    'lock_until_ms': 1_767_225_630_000,
}
RESULTS_EXAMPLE = {'results': [{'lock': LOCK, 'ok': True, 'code': 'ok', 'detail': '', 'lock_until_ms': None}]}


@endpoint(
    'POST',
    '/v1/groups/{group}/acquire',
    tag='subscribing',
    refuses=(404, 409, 422),
    waits=True,
    examples=(
        {'member': 'worker-1', 'topics': ['orders'], 'count': 10, 'wait_ms': 30_000},
        {'records': [DELIVERY_EXAMPLE]},
    ),
)
async def acquire(call: Call, group: GroupName, body: Acquisition) -> Acquired:
    """Take records.

    The group is made if there is none, and the member joins it. A member that is not heard of for the group's session
    timeout is lost, and what it holds has failed: acquire, acknowledge or renew in time. It may take more before what
    it holds is settled. When nothing is there, the answer waits up to `wait_ms` for something to come. Who hangs up
    before the whole answer has gone out takes nothing: the records go back, not counted as failed."""
    if call.listener.unsent.too_much:
        raise Problem(503, 'There are as many bytes of answers as acklog.queued.max.answer.bytes allows.')
    topics = list(dict.fromkeys(body.topics))
    deliveries = await call.broker.operations.acquire(
        call.caller, group, body.member, topics, body.count, body.max_bytes, body.wait_ms
    )
    if deliveries:
        call.unsent = partial(call.broker.operations.unsent, deliveries)
    return Acquired([_shown(delivery) for delivery in deliveries])


def _shown(delivery: Delivery) -> DeliveryView:
    return DeliveryView(
        delivery.topic,
        delivery.partition,
        delivery.offset,
        delivery.lock,
        delivery.deliveries,
        delivery.attempts,
        delivery.timestamp,
        shown(delivery.key),
        shown(delivery.value),
        shown_headers(delivery.headers),
        delivery.lock_until_ms,
    )


@endpoint(
    'POST',
    '/v1/groups/{group}/acknowledge',
    tag='subscribing',
    refuses=(404, 422),
    examples=(
        {
            'acknowledgements': [
                {'lock': LOCK, 'action': 'accept'},
                {'lock': LOCK, 'action': 'release', 'after_ms': 60_000, 'reason': 'the bank is closed'},
            ]
        },
        RESULTS_EXAMPLE,
    ),
)
async def acknowledge(call: Call, group: GroupName, body: Acknowledgements) -> Results:
    """Sign records off.

    Each has its own result. `lost`: the lock does not count any more, and nothing was changed: the record is with
    somebody else, or will be. `settled`: by this lock it was settled before, in another way. One that is sent again
    gives the same result."""
    acks = [_ack(index, ack) for index, ack in enumerate(body.acknowledgements)]
    return Results(await call.broker.operations.acknowledge(call.caller, group, acks))


def _ack(index: int, ack: Acknowledgement) -> Ack:
    if ack.after_ms is not None and ack.at_ms is not None:
        raise _one_of(f'/acknowledgements/{index}')
    if ack.action != 'release' and (ack.after_ms is not None or ack.at_ms is not None):
        raise _wrong(f'/acknowledgements/{index}', 'after_ms and at_ms are for release')
    return Ack(ack.lock, ack.action, ack.after_ms, ack.at_ms, ack.reason)


@endpoint(
    'POST',
    '/v1/groups/{group}/renew',
    tag='subscribing',
    refuses=(404, 422),
    examples=({'locks': [LOCK]}, RESULTS_EXAMPLE),
)
async def renew(call: Call, group: GroupName, body: Renewal) -> Results:
    """Keep records for longer: their locks begin anew, for as long as the group's locks last."""
    return Results(
        await call.broker.operations.acknowledge(call.caller, group, [Ack(lock, 'renew') for lock in body.locks])
    )


@endpoint(
    'POST',
    '/v1/groups/{group}/defer',
    tag='subscribing',
    refuses=(404, 409, 422),
    examples=({'topic': 'orders', 'partition': 0, 'offset': 1042, 'after_ms': 3_600_000}, None),
)
async def defer(call: Call, group: GroupName, body: Deferral) -> None:
    """Name the time of the next delivery of a record that somebody holds, should this one fail.

    For consumers of the Kafka protocol that cannot say so themselves: defer, then release as ever. It is about the
    current delivery, whoever has it, and ends with it. 409: nobody holds the record."""
    if (body.at_ms is None) == (body.after_ms is None):
        raise _one_of('')
    await call.broker.operations.defer(
        call.caller,
        group,
        body.topic,
        body.partition,
        body.offset,
        body.at_ms,
        body.deliveries,
        after_ms=body.after_ms or 0,
    )


@endpoint('DELETE', '/v1/groups/{group}/members/{member}', tag='subscribing', refuses=(404,))
async def leave(call: Call, group: GroupName, member: MemberName) -> None:
    """Leave the group: what the member holds goes back at once, not counted as failed."""
    await call.broker.operations.leave(call.caller, group, member)


def _one_of(pointer: str) -> Problem:
    return _wrong(pointer, 'one of at_ms and after_ms')


def _wrong(pointer: str, words: str) -> Problem:
    return Problem(422, f'{pointer or "the body"}: {words}', faults=[{'pointer': pointer, 'detail': words}])


SUBSCRIBING = (acquire, acknowledge, renew, defer, leave)
