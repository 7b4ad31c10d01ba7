"""Some records of a batch, as a batch of their own.

A batch with gaps is what compaction leaves on Kafka, and every client reads it: base offset, last offset and times are
those of the whole batch, only some records are missing, and the CRC is that of what is left.

Strategy: where each record begins is found once, by hopping over lengths; an excerpt then joins pieces of the bytes.
Only batches that are not compressed are worth it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence

import crc32c as _crc32c

from acklog.errors import CorruptBatch
from acklog.wire.primitives import get_varint
from acklog.wire.record_batch import HEADER_SIZE

_BEFORE_CRC = struct.Struct('>qiib')  # base offset, length, leader epoch, magic
_AFTER_CRC_SIZE = 36  # attributes to base sequence, as they are
_CRC_END = 21
_BEHIND_LENGTH = 12
_INT = struct.Struct('>i')
_HEAD = struct.Struct('>qiibI')  # the same with the CRC


def starts(batch: bytes | bytearray, count: int) -> array[int]:
    """Where each of the `count` records of a batch that is not compressed begins, and where the last one ends.

    Raises CorruptBatch."""
    position, end = HEADER_SIZE, len(batch)
    found = array('I', [position])
    append = found.append
    try:
        for _ in range(count):
            size = batch[position]
            if size < 0x80:
                position += 1 + (size >> 1)
            elif (more := batch[position + 1]) < 0x80:
                position += 2 + ((size & 0x7F | more << 7) >> 1)
            else:
                size, position = get_varint(batch, position)
                position += size
            append(position)
    except (IndexError, OverflowError):
        position = -1
    if position != end:
        raise CorruptBatch(f'the records of a batch of {end} bytes do not end with it')
    return found


def excerpt(
    data: bytes | memoryview, begin: int, places: array[int], first: int, wanted: Sequence[tuple[int, int]]
) -> bytes:
    """The records `wanted` (ranges of offsets, in order) of the batch at `begin` in `data` that begins with offset
    `first`, and whose `starts` are `places`."""
    count = 0
    parts: list[bytes | memoryview] = [b'']
    for one, last in wanted:
        count += last - one + 1
        parts.append(data[begin + places[one - first] : begin + places[last - first + 1]])
    parts[0] = bytes(data[begin + _CRC_END : begin + _CRC_END + _AFTER_CRC_SIZE]) + _INT.pack(count)
    body = b''.join(parts)
    base, _, epoch, magic = _BEFORE_CRC.unpack_from(data, begin)
    return _HEAD.pack(base, _CRC_END - _BEHIND_LENGTH + len(body), epoch, magic, _crc32c.crc32c(body)) + body
