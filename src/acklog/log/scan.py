"""Walking over stored batches: header by header, with the CRC checked, in windows of a bounded size.

Used where a log is opened after an unclean end, where an index has to be built anew, and where a read checks bytes
that this process has not written. `Walk` stops at the first batch that is not sound and says why; its caller decides
whether that is a torn tail or damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from acklog.log.files import Files
from acklog.wire.primitives import Buffer
from acklog.wire.record_batch import ATTRIBUTES_AT, BEHIND_LENGTH, HEADER_SIZE, MAGIC

WINDOW = 1 << 20

_FIELDS = struct.Struct('>qi4xb4xhi8xqqhii')
_ALL = struct.Struct('>qi4xbIhi8xqqhi4x')

assert _FIELDS.size == HEADER_SIZE


class Stored(NamedTuple):
    """What of a stored batch's header matters to the log."""

    position: int
    size: int
    first: int
    last: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


def stored(data: Buffer, at: int, position: int) -> Stored | None:
    """The batch whose header lies at `at` in `data`, and at `position` in its file; None when that is no header."""
    (
        first,
        length,
        magic,
        attributes,
        delta,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        _,
    ) = _FIELDS.unpack_from(data, at)
    if magic != MAGIC or length < HEADER_SIZE - BEHIND_LENGTH or delta < 0:
        return None
    return Stored(
        position,
        length + BEHIND_LENGTH,
        first,
        first + delta,
        attributes,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
    )


class Walk:
    """Iterates over the sound batches in `[position, end)` of an open file.

    `offset`: what the first batch must not lie below. Afterwards `position` is the end of the last sound batch and
    `fault` says in words what is wrong there, or is None when the whole range was sound.
    """

    def __init__(self, files: Files, handle: int, position: int, end: int, offset: int) -> None:
        self._files, self._handle = files, handle
        self._end, self._offset = end, offset
        self.position = position
        self.fault: str | None = None
        self._due = 0

    def __iter__(self) -> Iterator[Stored]:
        wanted = WINDOW
        while self.position < self._end and self.fault is None:
            wanted = min(wanted, self._end - self.position)
            data = self._files.pread(self._handle, wanted, self.position)
            if len(data) < wanted:
                self._end = self.position + len(data)
            yield from self._sound(memoryview(data))
            wanted = max(WINDOW, self._due)

    def _sound(self, view: memoryview) -> Iterator[Stored]:
        """The sound batches at the start of these bytes, which lie at `position`; one loop, as each batch counts."""
        at, have, begin, offset = 0, len(view), self.position, self._offset
        self._due = 0  # bytes of the batch that is not all here
        while have - at >= HEADER_SIZE:
            first, length, magic, crc, attributes, delta, latest, producer_id, producer_epoch, sequence = (
                _ALL.unpack_from(view, at)
            )
            size = length + BEHIND_LENGTH
            if magic != MAGIC or size < HEADER_SIZE or delta < 0:
                self.fault = 'no batch begins here'
            elif size > self._end - begin - at:
                self.fault = f'a batch of {size} bytes where {self._end - begin - at} are'
            elif first < offset:
                self.fault = f'a batch with offset {first} where {offset} is due'
            elif at + size > have:
                self._due = size
                return
            elif crc != crc32c(view[at + ATTRIBUTES_AT : at + size]):
                self.fault = f'the CRC of the batch with offset {first} does not fit'
            if self.fault is not None:
                return
            offset = self._offset = first + delta + 1
            self.position = begin + at + size
            yield Stored(begin + at, size, first, offset - 1, attributes, latest, producer_id, producer_epoch, sequence)
            at += size
        if not at or begin + have >= self._end > begin + at:
            self.fault = f'{have - at} bytes are no batch'
