"""The bytes of the log `__scheduled`: what was published for later, by partition.

A batch has one record whose value is a run of entries:

    size  field
      16  topic id
       4  partition           int32
       1  kind                a number below
       4  length of the payload
       n  payload; integers are big-endian int64s, sets are 64-bit Roaring bitmaps in their portable format

0 LOOKS      from which offset on records are looked into (8), 1: they are, 0: not any more (1)
1 FOUND      first offset (8), offset behind the last (8), length of the next (8), offsets published for later, length
             of the next (8), offsets that are cancelled, and to the end when each of the first set is due:
             little-endian int64s
2 MOVED      to when (8), group incarnation or -1 (8), offsets
3 CANCELLED  group incarnation or -1 (8), offsets
4 CUT        the log's end (8)
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator

from pyroaring import BitMap64

from acklog.core.schedule_events import Cancelled, Cut, Event, Found, Looks, Moved
from acklog.errors import Damaged

PartitionKey = tuple[bytes, int]  # topic id (16 bytes), partition

_ENTRY = struct.Struct('>16siBI')
_LOOKS = struct.Struct('>qB')
_INT = struct.Struct('>q')
_TWO = struct.Struct('>qq')
_NOBODY = -1


def entry(key: PartitionKey, event: Event) -> bytes:
    """An event's bytes."""
    kind, payload = _payload(event)
    return _ENTRY.pack(*key, kind, len(payload)) + payload


def _payload(event: Event) -> tuple[int, bytes]:
    if isinstance(event, Looks):
        return 0, _LOOKS.pack(event.at, event.on)
    if isinstance(event, Found):
        head = _TWO.pack(event.first, event.stop)
        return 1, b''.join([head, *_sized(event.offsets), *_sized(event.cancelled), _little(event.dues).tobytes()])
    if isinstance(event, Moved):
        return 2, _TWO.pack(event.due, _NOBODY if event.group is None else event.group) + event.offsets.serialize()
    if isinstance(event, Cancelled):
        return 3, _INT.pack(_NOBODY if event.group is None else event.group) + event.offsets.serialize()
    return 4, _INT.pack(event.end)


def _sized(offsets: BitMap64) -> tuple[bytes, bytes]:
    content = offsets.serialize()
    return _INT.pack(len(content)), content


def _little(values: array[int]) -> array[int]:
    if sys.byteorder == 'big':
        values = values[:]
        values.byteswap()
    return values


def entries(value: bytes) -> Iterator[tuple[PartitionKey, Event]]:
    """The entries in one record's value. Raises Damaged where they do not add up (the CRC held, so it is our fault)."""
    position = 0
    try:
        while position < len(value):
            topic, partition, kind, length = _ENTRY.unpack_from(value, position)
            position += _ENTRY.size
            if position + length > len(value):
                raise ValueError(f'{position + length - len(value)} bytes are missing')
            yield (topic, partition), _event(kind, value[position : position + length])
            position += length
    except (struct.error, ValueError) as error:
        raise Damaged(f'an entry of the scheduled records at byte {position}: {error}') from None


def _event(kind: int, payload: bytes) -> Event:
    if kind == 0:
        at, on = _LOOKS.unpack(payload)
        return Looks(bool(on), at)
    if kind == 1:
        return _found(payload)
    if kind == 2:
        due, group = _TWO.unpack_from(payload)
        return Moved(BitMap64.deserialize(payload[_TWO.size :]), due, None if group == _NOBODY else group)
    if kind == 3:
        (group,) = _INT.unpack_from(payload)
        return Cancelled(BitMap64.deserialize(payload[_INT.size :]), None if group == _NOBODY else group)
    if kind == 4:
        return Cut(_INT.unpack(payload)[0])
    raise ValueError(f'kind {kind} is not known to this version')


def _found(payload: bytes) -> Found:
    first, stop = _TWO.unpack_from(payload)
    offsets, position = _set(payload, _TWO.size)
    cancelled, position = _set(payload, position)
    dues = array('q')
    dues.frombytes(payload[position:])
    if len(dues) != len(offsets):
        raise ValueError(f'{len(dues)} instants for {len(offsets)} records')
    return Found(first, stop, offsets, _little(dues), cancelled)


def _set(payload: bytes, position: int) -> tuple[BitMap64, int]:
    (size,) = _INT.unpack_from(payload, position)
    position += _INT.size
    if not 0 <= size <= len(payload) - position:
        raise ValueError(f'a set of {size} bytes in {len(payload) - position}')
    return BitMap64.deserialize(payload[position : position + size]), position + size
