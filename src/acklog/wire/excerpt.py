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

from acklog.errors import CorruptBatch, ProtocolError
from acklog.wire.primitives import Buffer, get_varint
from acklog.wire.record_batch import ATTRIBUTES_AT, BEHIND_LENGTH, HEADER_SIZE

_BEFORE_CRC = struct.Struct('>qiib')  # base offset, length, leader epoch, magic
_COUNT = 57  # where the number of records is
_INT = struct.Struct('>i')
_HEAD = struct.Struct('>qiibI')  # the same with the CRC


class Divided:
    """A batch that is not compressed, divided into its `last - first + 1` records. It does not keep their bytes."""

    __slots__ = ('_base', '_epoch', '_fixed', '_magic', '_starts', 'first', 'last')

    def __init__(self, batch: bytes | bytearray, first: int, last: int) -> None:
        """Raises CorruptBatch."""
        self.first, self.last = first, last
        self._base, _, self._epoch, self._magic = _BEFORE_CRC.unpack_from(batch)
        self._fixed = bytes(batch[ATTRIBUTES_AT:_COUNT])  # attributes to base sequence, as they are
        self._starts = _starts(batch, last - first + 1)

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return len(self._starts) * self._starts.itemsize

    def excerpt(
        self, data: Buffer, begin: int, ranges: Sequence[tuple[int, int, int]], at: int, most: int
    ) -> bytes | None:
        """Of the batch at `begin` in `data` the records that `ranges` name, which are (first, last, of no concern), in
        order, the one at `at` the first that does not end before the batch. None if these are more than `most`."""
        first, last, starts = self.first, self.last, self._starts
        count = 0
        parts: list[Buffer] = [b'']
        for index in range(at, len(ranges)):
            one, until, _ = ranges[index]
            if one > last:
                break
            if one < first:
                one = first
            if until > last:
                until = last
            count += until - one + 1
            if count > most:
                return None
            parts.append(data[begin + starts[one - first] : begin + starts[until - first + 1]])
        parts[0] = self._fixed + _INT.pack(count)
        body = b''.join(parts)
        length = ATTRIBUTES_AT - BEHIND_LENGTH + len(body)
        return _HEAD.pack(self._base, length, self._epoch, self._magic, _crc32c.crc32c(body)) + body


def _starts(batch: bytes | bytearray, count: int) -> array[int]:
    """Where each of the `count` records of a batch begins, and where the last one ends. Raises CorruptBatch."""
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
                if size < 0:  # it would lead back: as often as the batch claims to have records
                    raise CorruptBatch(f'a record of {size} bytes')
                position += size
            append(position)
    except (IndexError, OverflowError, ProtocolError):
        position = -1
    if position != end:
        raise CorruptBatch(f'the records of a batch of {end} bytes do not end with it')
    return found
