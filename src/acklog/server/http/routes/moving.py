"""Moving a group to another place in the log, stopping it, letting it go on."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from acklog.broker.operations import Changed, Sought, Target
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.problems import Problem
from acklog.server.http.routes.waiting import CHANGED_EXAMPLE
from acklog.server.http.values import DryRun, GroupName, Index, Instant, Offset, TopicName

LONGEST_WORDS = 1_024


class Seek(Struct, forbid_unknown_fields=True):
    """Where to: one of `to`, `offset` and `time_ms`. Which partitions: one, those of a topic, or all of the group."""

    to: Literal['earliest', 'latest'] | None = None
    offset: Offset | None = None
    time_ms: Annotated[Instant | None, Meta(description='The first record at or after that time.')] = None
    topic: TopicName | None = None
    partition: Index | None = None
    dry_run: DryRun = False


class SoughtPartitions(Struct):
    """How each partition was, or would be, moved."""

    items: list[Sought]


class Replay(Struct, forbid_unknown_fields=True):
    """A range of settled records; both ends included."""

    topic: TopicName
    partition: Index
    first: Offset
    last: Offset
    dry_run: DryRun = False


class Pause(Struct, forbid_unknown_fields=True):
    """Why."""

    reason: Annotated[str, Meta(max_length=LONGEST_WORDS, description='For whoever asks why nothing comes.')] = (
        'paused by an operator'
    )


SOUGHT_EXAMPLE = {'topic': 'orders', 'partition': 0, 'before': 1040, 'after': 0, 'brings': 1040, 'drops': 0}


@endpoint(
    'POST',
    '/v1/groups/{group}/seek',
    tag='moving',
    refuses=(404, 409, 422),
    examples=({'to': 'earliest', 'topic': 'orders', 'dry_run': True}, {'items': [SOUGHT_EXAMPLE]}),
)
async def seek(call: Call, group: GroupName, body: Seek) -> SoughtPartitions:
    """Let a group go on from another place, with members or without.

    What members hold is fenced, what waits or is dead is forgotten: everything from the target on is available, and
    everything before it is settled. `brings`: settled records that come again; `drops`: records not settled that do
    not come."""
    if body.partition is not None and body.topic is None:
        raise _wrong('/partition', 'a partition needs a topic')
    moved = await call.broker.operations.seek(
        call.caller, group, _target(body), body.topic, body.partition, body.dry_run
    )
    return SoughtPartitions(moved)


def _target(body: Seek) -> Target:
    if [body.to, body.offset, body.time_ms].count(None) != 2:
        raise _wrong('', 'one of to, offset and time_ms')
    if body.to is not None:
        return Target(body.to)
    if body.offset is not None:
        return Target('offset', body.offset)
    return Target('time', body.time_ms or 0)


@endpoint(
    'POST',
    '/v1/groups/{group}/replay',
    tag='moving',
    refuses=(404, 422),
    examples=({'topic': 'orders', 'partition': 0, 'first': 1000, 'last': 1099}, CHANGED_EXAMPLE),
)
async def replay(call: Call, group: GroupName, body: Replay) -> Changed:
    """Let settled records of a range come again, dead ones too, as if never delivered; the others stay as they are."""
    if body.first > body.last:
        raise _wrong('/last', 'not before first')
    return await call.broker.operations.replay(
        call.caller, group, body.topic, body.partition, body.first, body.last, body.dry_run
    )


@endpoint(
    'POST',
    '/v1/groups/{group}/pause',
    tag='moving',
    refuses=(404, 422),
    examples=({'reason': 'the payment service is down'}, None),
)
async def pause(call: Call, group: GroupName, body: Pause) -> None:
    """Deliver nothing to a group until it is resumed. What its members hold they may settle."""
    await call.broker.operations.pause(call.caller, group, body.reason)


@endpoint('POST', '/v1/groups/{group}/resume', tag='moving', refuses=(404,))
async def resume(call: Call, group: GroupName) -> None:
    """Deliver to a group again, if it was paused."""
    await call.broker.operations.resume(call.caller, group)


def _wrong(pointer: str, words: str) -> Problem:
    return Problem(422, f'{pointer or "the body"}: {words}', faults=[{'pointer': pointer, 'detail': words}])


MOVING = (seek, replay, pause, resume)
