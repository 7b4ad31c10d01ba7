"""The journal's bytes.

A journal batch is a record batch v2 with one record whose value is a run of entries:

    size  field
       8  group incarnation   int64
      16  topic id
       4  partition           int32
       1  kind                one of those below
       4  length of the payload
       n  payload

BEGIN       what `event_codec.encode` made of the events that build a new share partition
EVENTS      the same of what happened to one since
MARK        a snapshot was taken here: 8 bytes, its number. What comes before is in it, what comes after is not
CHUNK       a part of a snapshot: number (8), 1 if it is the last part (1), bytes; all together are BEGIN
TOMBSTONE   the share partition is no more: its group or topic was deleted
STEP        what `event_codec.encode` made of a ClockStepped, which happened to all share partitions: the key is EVERY

A share partition's history begins with BEGIN or with the MARK of a complete snapshot.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from acklog.errors import Damaged

_ENTRY = struct.Struct('>q16siBI')
_CHUNK = struct.Struct('>qB')
_NUMBER = struct.Struct('>q')

CHUNK_BYTES = 256 * 1024


class ShareKey(NamedTuple):
    """One share partition: a group's incarnation, a topic, a partition of it."""

    group: int
    topic: bytes  # 16 bytes
    partition: int


class Kind(IntEnum):
    BEGIN = 0
    EVENTS = 1
    MARK = 2
    CHUNK = 3
    TOMBSTONE = 4
    STEP = 5


EVERY = ShareKey(-1, bytes(16), -1)


def entry(key: ShareKey, kind: Kind, payload: bytes = b'') -> bytes:
    return _ENTRY.pack(key.group, key.topic, key.partition, kind, len(payload)) + payload


def entries(value: bytes | memoryview) -> Iterator[tuple[ShareKey, Kind, bytes]]:
    """The entries in one record's value. Raises Damaged where they do not add up (the CRC held, so it is our fault)."""
    position, end = 0, len(value)
    while position < end:
        try:
            group, topic, partition, kind, length = _ENTRY.unpack_from(value, position)
            kind = Kind(kind)
        except (struct.error, ValueError) as error:
            raise Damaged(f'journal entry at byte {position} of a record: {error}') from None
        position += _ENTRY.size
        if position + length > end:
            raise Damaged(f'journal entry at byte {position} of a record is cut off')
        yield ShareKey(group, topic, partition), kind, bytes(value[position : position + length])
        position += length


def mark(number: int) -> bytes:
    return _NUMBER.pack(number)


def number_of(payload: bytes) -> int:
    """Which snapshot a MARK or CHUNK belongs to."""
    return int(_NUMBER.unpack_from(payload)[0])


def chunks(number: int, snapshot: bytes) -> list[bytes]:
    """The payloads of the CHUNK entries of a snapshot."""
    parts = [snapshot[at : at + CHUNK_BYTES] for at in range(0, len(snapshot), CHUNK_BYTES)] or [b'']
    return [_CHUNK.pack(number, index == len(parts) - 1) + part for index, part in enumerate(parts)]


def chunk(payload: bytes) -> tuple[bool, bytes]:
    """(is the last one, its bytes)"""
    return bool(payload[8]), payload[_CHUNK.size :]
