"""Records: publish, and look at one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from acklog.broker.operations import NewRecord, RecordInGroup
from acklog.server.http.endpoint import JSON, OCTETS, Call, Raw, endpoint
from acklog.server.http.problems import Problem
from acklog.server.http.values import (
    MOST_RECORDS,
    Bytes,
    Header,
    Index,
    Instant,
    Offset,
    TopicName,
    shown,
    shown_headers,
    to_bytes,
)

KEY_HEADER = 'Idempotency-Key'
LONGEST_KEY = 255

Acks = Annotated[
    Literal['all', 'written'],
    Meta(description='When it is answered: all: it is on disk; written: the operating system has it.'),
]
DeliverAt = Annotated[
    Instant | None,
    Meta(description='Not before that instant; on topics with `acklog.deliver.at.enable=true`.'),
]


class RecordToPublish(Struct, forbid_unknown_fields=True):
    """A record. Without `partition`: the one of its key as Kafka finds it, or without key the same for all of a
    publication, another the next time."""

    value: Bytes
    key: Bytes = None
    headers: Annotated[list[Header], Meta(max_length=1000)] = []
    partition: Index | None = None
    timestamp_ms: Annotated[Instant | None, Meta(description='Its time; without: now.')] = None
    deliver_at_ms: DeliverAt = None


class Publication(Struct, forbid_unknown_fields=True):
    """Records to be appended to a topic."""

    records: Annotated[list[RecordToPublish], Meta(min_length=1, max_length=MOST_RECORDS)]
    acks: Acks = 'all'


class RawPublication(Struct, forbid_unknown_fields=True):
    """What there is to say of a record whose value is the body itself."""

    key: Annotated[str | None, Meta(description='Of a record in a raw body: its key, as text.')] = None
    partition: Annotated[Index | None, Meta(description='Of a record in a raw body.')] = None
    timestamp_ms: Annotated[Instant | None, Meta(description='Of a record in a raw body: its time.')] = None
    deliver_at_ms: DeliverAt = None
    acks: Acks = 'all'


class Place(Struct):
    """Where a record is."""

    partition: int
    offset: int


class Published(Struct):
    """Where the records are, in their order."""

    items: list[Place]


class RecordView(Struct):
    """A record in its log, and what it is to each group."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Bytes
    value: Bytes
    headers: list[Header]
    groups: list[RecordInGroup]
    due_ms: Annotated[
        int | None, Meta(description='When it comes, if it was published for later and its time has not come.')
    ] = None
    cancelled: Annotated[bool, Meta(description='Cancelled before its time: no group gets it.')] = False


ACKS = {'all': -1, 'written': 1}

PUBLICATION_EXAMPLE = {
    'records': [
        {
            'key': 'customer-7',
            'value': '{"order": 1042}',
            'headers': [{'name': 'trace', 'value': {'base64': '/wAB'}}],
        }
    ]
}
RECORD_EXAMPLE = {
    'topic': 'orders',
    'partition': 0,
    'offset': 1042,
    'timestamp_ms': 1_767_225_600_000,
    'key': 'customer-7',
    'value': '{"order": 1042}',
    'headers': [],
    'groups': [{'group': 'billing', 'state': 'waiting', 'attempts': 1, 'deliveries': 1, 'due_ms': 1_767_225_610_000}],
}


@endpoint(
    'POST',
    '/v1/topics/{topic}/records',
    tag='records',
    refuses=(404, 409, 422),
    headers={
        KEY_HEADER: (
            'Any text that names this publication. When it is sent again with the same key, the answer is that of the '
            'first time, and nothing is appended; with other records it is refused. Keys are remembered for a day.',
            f'^[!-~]{{1,{LONGEST_KEY}}}$',
        )
    },
    examples=(PUBLICATION_EXAMPLE, {'items': [{'partition': 0, 'offset': 1042}]}),
)
async def publish(call: Call, topic: TopicName, query: RawPublication, body: Publication | bytes) -> Published:
    """Publish records.

    JSON: one or more records. Any other value than text is `{"base64": "..."}`. `application/octet-stream`: the value
    of one record as it is; the query says the rest of it.

    Records of one publication that go to the same partition are appended together, all or none; those of several
    partitions each for itself, so after an error some may be there: publish again with the same Idempotency-Key."""
    if isinstance(body, bytes):
        records = [
            NewRecord(
                body,
                key=None if query.key is None else query.key.encode(),
                partition=query.partition,
                timestamp=query.timestamp_ms,
                deliver_at=query.deliver_at_ms,
            )
        ]
        acks = query.acks
    else:
        _check_no_query(query)
        records, acks = [_new(record) for record in body.records], body.acks
    places = await call.broker.operations.publish(call.caller, topic, records, ACKS[acks], _idempotency_key(call))
    return Published([Place(partition, offset) for partition, offset in places])


def _new(record: RecordToPublish) -> NewRecord:
    return NewRecord(
        to_bytes(record.value),
        to_bytes(record.key),
        [(header.name, to_bytes(header.value)) for header in record.headers],
        record.partition,
        record.timestamp_ms,
        record.deliver_at_ms,
    )


def _check_no_query(query: RawPublication) -> None:
    if query != RawPublication():
        words = f'These parameters are for a body that is {OCTETS}; in JSON each record says it.'
        raise Problem(422, words)


def _idempotency_key(call: Call) -> str | None:
    key = call.headers.get(KEY_HEADER.lower())
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY or not all('!' <= char <= '~' for char in key):
        words = f'1 to {LONGEST_KEY} visible ASCII characters'
        raise Problem(400, f'{KEY_HEADER}: {words}', faults=[{'parameter': KEY_HEADER, 'detail': words}])
    return key


@endpoint(
    'GET',
    '/v1/topics/{topic}/partitions/{partition}/records/{offset}',
    tag='records',
    refuses=(404,),
    media_types=(JSON, OCTETS),
    examples=(None, RECORD_EXAMPLE),
)
async def show_record(call: Call, topic: TopicName, partition: Index, offset: Offset) -> RecordView:
    """Show a record, and what it is to each group.

    With `Accept: application/octet-stream`: its value as it is."""
    found = await call.broker.operations.record(call.caller, topic, partition, offset)
    if _wants_bytes(call):
        return Raw(found.value or b'', OCTETS)  # type: ignore[return-value]
    return RecordView(
        found.topic,
        found.partition,
        found.offset,
        found.timestamp,
        shown(found.key),
        shown(found.value),
        shown_headers(found.headers),
        found.groups,
        found.due_ms,
        found.cancelled,
    )


def _wants_bytes(call: Call) -> bool:
    accepted: Sequence[str] = call.headers.get('accept', '').lower().split(',')
    types = [entry.partition(';')[0].strip() for entry in accepted]
    return OCTETS in types and JSON not in types


RECORDS = (publish, show_record)
