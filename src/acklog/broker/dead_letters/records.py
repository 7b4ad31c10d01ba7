"""Dead letters as records: Apache Kafka's headers (KIP-1191) and, where the group wants it, a copy of what died.

    __dlq.errors.topic, .partition, .offset   where the record is
    __dlq.errors.group                        whose dead record it is
    __dlq.errors.delivery.count               how often it was delivered
    __dlq.errors.message                      why it died
    acklog-words                              what its subscriber said about it, if anything (ours)

Values are text. A copy has the record's key and value, and its headers before these. What cannot be copied, because it
cannot be read or is too large for the topic, comes with its headers alone: the record itself stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.eager import RECORDS_AT_A_TIME, turn
from acklog.core.failing import REJECTED, USED_UP
from acklog.errors import CorruptBatch
from acklog.wire.compression import CompressionUnavailable
from acklog.wire.deliver_at import NAME as DELIVER_AT
from acklog.wire.record_batch import HEADER_SIZE, NewRecord, Row, Span, build, rows_at, spans

if TYPE_CHECKING:
    from acklog.core.status import Record as State
    from acklog.log.seam import Log

Headers = Sequence[tuple[str, bytes | None]]
Copy = tuple[bytes | None, bytes | None, Headers]  # key, value, headers

TOPIC, PARTITION, OFFSET = '__dlq.errors.topic', '__dlq.errors.partition', '__dlq.errors.offset'
GROUP, DELIVERIES, MESSAGE = '__dlq.errors.group', '__dlq.errors.delivery.count', '__dlq.errors.message'
WORDS = 'acklog-words'
_MESSAGES = {  # Kafka's words where it has them
    REJECTED: b'Offset rejected by client.',
    USED_UP: b'Offset delivery count exceeded the threshold.',
}
READ_BYTES = 1 << 20
GAP = 64  # offsets: what lies further on is read by itself
NOTHING: Copy = (None, None, ())


async def copies(log: Log, offsets: Sequence[int], max_bytes: int) -> tuple[dict[int, Copy], int]:
    """The records at `offsets` (in order) that can be read, up to about `max_bytes` of them; and how many of the
    offsets were looked at, at least one. Raises LogError."""
    found: dict[int, Copy] = {}
    size = looked = 0
    while looked < len(offsets) and size <= max_bytes:
        read = await log.read(offsets[looked], READ_BYTES, up_to=_run_end(offsets, looked))
        begun = looked
        for span in spans(read.data):
            wanted = set()
            while looked < len(offsets) and offsets[looked] <= span.last:
                wanted.add(offsets[looked])
                looked += 1
            if wanted:
                try:
                    rows = await _rows(read.data, span, wanted)
                except (CorruptBatch, CompressionUnavailable):
                    continue
                found.update({row[0]: (row[2], row[3], row[4]) for row in rows})
                size += sum(len(row[2] or b'') + len(row[3] or b'') for row in rows)
            if size > max_bytes:
                break
        if looked == begun:
            looked += 1  # there is no record there
    return found, looked


async def _rows(data: bytes | memoryview, span: Span, wanted: set[int]) -> list[Row]:
    rows = []
    for number, row in enumerate(rows_at(data, span, wanted), 1):
        if row is not None:
            rows.append(row)
        if number % RECORDS_AT_A_TIME == 0:
            await turn()
    return rows


def _run_end(offsets: Sequence[int], at: int) -> int:
    """Where the run that goes on at `offsets[at]` without a large gap ends."""
    while at + 1 < len(offsets) and offsets[at + 1] - offsets[at] <= GAP:
        at += 1
    return offsets[at] + 1


def of_place(topic: str, partition: int, group: str) -> Headers:
    """The headers that all dead letters of a share partition have."""
    return [(TOPIC, topic.encode()), (PARTITION, b'%d' % partition), (GROUP, group.encode())]


def letter(place: Headers, offset: int, state: State, copy: Copy, *, plain: bool) -> NewRecord:
    """The dead letter of one record. `place`: as `of_place` says; `plain`: without the header by which the copy would
    be published for later."""
    key, value, headers = copy
    if plain:
        headers = [header for header in headers if header[0] != DELIVER_AT]
    topic, partition, group = place
    message = _MESSAGES.get(state.reason or '') or f'The record died: {state.reason}.'.encode()
    own = [
        topic,
        partition,
        (OFFSET, b'%d' % offset),
        group,
        (DELIVERIES, b'%d' % state.deliveries),
        (MESSAGE, message),
    ]
    if state.words:
        own.append((WORDS, state.words.encode()))
    return NewRecord(key, value, [*headers, *own])


def batch(letters: Sequence[NewRecord], now: int, max_bytes: int) -> tuple[bytearray, int]:
    """As many of these as fit into a batch of `max_bytes`, at least one, and how many. One that is too large alone
    comes without what was copied."""
    size, count = HEADER_SIZE, 0
    for each in letters:
        size += _most_bytes(each)
        if size > max_bytes:
            break
        count += 1
    data = build(letters[: max(count, 1)], timestamp=now)
    if count or len(data) <= max_bytes:
        return data, max(count, 1)
    names = {TOPIC, PARTITION, OFFSET, GROUP, DELIVERIES, MESSAGE, WORDS}
    own = list({name: (name, text) for name, text in letters[0].headers if name in names}.values())
    return build([NewRecord(None, None, own)], timestamp=now), 1


def _most_bytes(record: NewRecord) -> int:
    """What it takes in a batch, or a little more: a length is 5 bytes at most."""
    headers = sum([len(name.encode()) + len(text or b'') + 10 for name, text in record.headers])
    return 30 + len(record.key or b'') + len(record.value or b'') + headers
