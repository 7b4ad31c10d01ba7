"""The sparse index of a segment: in memory, and the file beside it that saves reading the segment again.

On disk, `<base offset>.index`: chunks, each appended once all batches it speaks of were written, never changed.
Integers are big-endian:

    offset  size  field
         0     4  magic 'aIX1'
         4     4  CRC32C of all that follows in this chunk
         8     4  size of this chunk in bytes
        12     4  flags: 1 = its producers are all there are (else: those that changed since the chunk before);
                         2 = the segment is complete and on disk, nothing follows (a chunk of 80 bytes, synced itself)
        16     8  written: bytes of the segment that this chunk and those before speak of; a batch ends there
        24     8  synced: bytes of the segment that were known to be on disk when the chunk was written
        32     8  next offset: that of the batch that begins at `written`
        40     8  max timestamp of the batches below `written` (ms; -1: none)
        48     8  created: time of the first append to the segment (ms; -1: none yet)
        56     8  appended: time of the last one
        64     4  number of entries
        68     4  number of producers
        72     4  number of bytes of the producers
        76     4  CRC32C of the chunk before, 0 in the first one (what an overwritten file left behind does not count)
        80    24n entries: all offsets, all positions, all times (int64 each)
              ..  producers, see `acklog.log.producers`

An entry (offset, position, time) says: the batch at `position` has base offset `offset`; `time` is the largest
timestamp of the batches before it in the segment. The first chunk of a file holds all producers. Chunks behind a
broken one do not count. What they say of bytes at or above `synced` is true only as long as the machine has not gone
down since.

Strategy in memory: three typed arrays, 24 bytes per `index_interval_bytes` of log.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import crc32c as _crc32c

ALL_PRODUCERS = 1
COMPLETE = 2

_MAGIC = b'aIX1'
_CHUNK = struct.Struct('>4sIIIqqqqqqIIII')
CHUNK_SIZE = _CHUNK.size
_BEHIND_CRC = 8
_FAR = 1 << 62

assert CHUNK_SIZE == 80


class Index:
    """Entries of one segment, in order."""

    __slots__ = ('offsets', 'positions', 'times')

    def __init__(self) -> None:
        self.offsets = array('q')
        self.positions = array('q')
        self.times = array('q')

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, position: int, time: int) -> None:
        self.offsets.append(offset)
        self.positions.append(position)
        self.times.append(time)

    def cut(self, count: int) -> None:
        """Keep the first `count` entries."""
        del self.offsets[count:], self.positions[count:], self.times[count:]

    def at_offset(self, offset: int) -> int:
        """Position of a batch at or before the one with `offset`."""
        found = bisect_right(self.offsets, offset) - 1
        return self.positions[found] if found >= 0 else 0

    def around(self, offset: int) -> tuple[int, int]:
        """Positions of a batch at or before the one with `offset`, and of one behind it (far away if there is none)."""
        found = bisect_right(self.offsets, offset)
        behind = self.positions[found] if found < len(self.positions) else _FAR
        return (self.positions[found - 1] if found else 0), behind

    def at_position(self, position: int) -> int:
        """The last position known to begin a batch that is not above `position`."""
        found = bisect_right(self.positions, position) - 1
        return self.positions[found] if found >= 0 else 0

    def at_time(self, timestamp: int) -> int:
        """Position of a batch at or before the first one with a timestamp of at least `timestamp`."""
        found = bisect_left(self.times, timestamp) - 1
        return self.positions[found] if found >= 0 else 0

    def encode(self, first: int) -> bytes:
        """Entries from the `first` one on."""
        parts = [self.offsets[first:], self.positions[first:], self.times[first:]]
        if sys.byteorder == 'little':
            for part in parts:
                part.byteswap()
        return b''.join(part.tobytes() for part in parts)

    def load(self, count: int, data: bytes) -> None:
        """Add what `encode` gave."""
        for number, mine in enumerate((self.offsets, self.positions, self.times)):
            part = array('q', data[8 * count * number : 8 * count * (number + 1)])
            if sys.byteorder == 'little':
                part.byteswap()
            mine.extend(part)


class Chunk(NamedTuple):
    """One chunk of an index file, as described above; `end`: its end in the file."""

    flags: int
    written: int
    synced: int
    next_offset: int
    max_timestamp: int
    created: int
    appended: int
    entries: int
    producers: int
    entry_bytes: bytes
    producer_bytes: bytes
    end: int = 0
    crc: int = 0

    def encode(self, before: int) -> bytes:
        """Its bytes; `before`: CRC of the chunk before it."""
        size = CHUNK_SIZE + len(self.entry_bytes) + len(self.producer_bytes)
        head = _CHUNK.pack(_MAGIC, 0, size, *self[:7], self.entries, self.producers, len(self.producer_bytes), before)
        body = b''.join((head[_BEHIND_CRC:], self.entry_bytes, self.producer_bytes))
        return b''.join((_MAGIC, _crc32c.crc32c(body).to_bytes(4, 'big'), body))


def read_chunk(data: bytes, position: int, before: int | None) -> Chunk | None:
    """The chunk at `position`, None if there is no sound one; `before`: CRC of the one before it, None if not known."""
    if len(data) - position < CHUNK_SIZE:
        return None
    magic, crc, size, *fields, entries, producers, producer_size, follows = _CHUNK.unpack_from(data, position)
    end = position + size
    behind = position + CHUNK_SIZE + 24 * entries
    if magic != _MAGIC or end > len(data) or behind + producer_size != end or before not in (None, follows):
        return None
    if _crc32c.crc32c(memoryview(data)[position + _BEHIND_CRC : end]) != crc:
        return None
    entry_bytes, producer_bytes = data[position + CHUNK_SIZE : behind], data[behind:end]
    return Chunk._make((*fields, entries, producers, entry_bytes, producer_bytes, end, crc))


def read_chunks(data: bytes) -> list[Chunk]:
    """All sound chunks from the start of an index file up to the first broken one."""
    chunks: list[Chunk] = []
    position = before = 0
    while (chunk := read_chunk(data, position, before)) is not None:
        chunks.append(chunk)
        position, before = chunk.end, chunk.crc
    return chunks
