"""Some records of a batch, as a batch of their own.

A batch with gaps is what compaction leaves on Kafka, and every client reads it: base offset, last offset and times are
those of the whole batch, only some records are missing, and the CRC is that of what is left.

Strategy: where each record begins is found once, by hopping over lengths; an excerpt then joins pieces of the bytes.
Only batches that are not compressed are worth it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable

import crc32c as _crc32c

from acklog.errors import CorruptBatch
from acklog.wire.primitives import get_varint
from acklog.wire.record_batch import HEADER_SIZE, Span

_BEFORE_CRC = struct.Struct('>qiib')  # base offset, length, leader epoch, magic
_AFTER_CRC_SIZE = 36  # attributes to base sequence, as they are
_CRC_END = 21
_BEHIND_LENGTH = 12
_INT = struct.Struct('>i')
_UNSIGNED = struct.Struct('>I')


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


def excerpt(data: memoryview, span: Span, places: array[int], deltas: Iterable[int]) -> bytes:
    """The records at `deltas`, in order, of the batch at `span` in `data`, whose `starts` are `places`."""
    begin = span.position
    parts = [data[begin + places[delta] : begin + places[delta + 1]] for delta in deltas]
    after = bytes(data[begin + _CRC_END : begin + _CRC_END + _AFTER_CRC_SIZE]) + _INT.pack(len(parts))
    body = b''.join((after, *parts))
    base, _, epoch, magic = _BEFORE_CRC.unpack_from(data, begin)
    head = _BEFORE_CRC.pack(base, _CRC_END - _BEHIND_LENGTH + len(body), epoch, magic)
    return b''.join((head, _UNSIGNED.pack(_crc32c.crc32c(body)), body))
