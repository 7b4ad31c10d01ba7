"""Walking over stored batches: header by header, with the CRC checked, in windows of a bounded size.

Used where a log is opened after an unclean end, where an index has to be built anew, and where a read checks bytes
that this process has not written. `Walk` stops at the first batch that is not sound and says why; its caller decides
whether that is a torn tail or damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from acklog.log.files import Buffer, Files
from acklog.wire.record_batch import HEADER_SIZE, MAGIC, crc_fits

WINDOW = 1 << 20

_FIELDS = struct.Struct('>qi4xb4xhi8xqqhii')
_BEHIND_LENGTH = 12

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
    if magic != MAGIC or length < HEADER_SIZE - _BEHIND_LENGTH or delta < 0:
        return None
    return Stored(
        position,
        length + _BEHIND_LENGTH,
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

    def __iter__(self) -> Iterator[Stored]:
        data, at, view = b'', 0, memoryview(b'')
        while self.position < self._end:
            found = stored(view, at, self.position) if len(view) - at >= HEADER_SIZE else None
            if found is None or at + found.size > len(view):
                wanted = min(max(WINDOW, found.size if found else 0), self._end - self.position)
                data = self._files.pread(self._handle, wanted, self.position)
                view, at = memoryview(data), 0
                found = self._whole(view)
                if found is None:
                    return
            self.fault = self._unsound(view, at, found)
            if self.fault:
                return
            at += found.size
            self._offset = found.last + 1
            self.position += found.size
            yield found

    def _whole(self, view: memoryview) -> Stored | None:
        """The batch at the start of a fresh window; sets `fault` when there is none. Reads on for a large one."""
        if len(view) < HEADER_SIZE:
            self.fault = f'{len(view)} bytes are no batch'
            return None
        found = stored(view, 0, self.position)
        if found is None:
            self.fault = 'no batch begins here'
        elif found.size > self._end - self.position:
            self.fault = f'a batch of {found.size} bytes where {self._end - self.position} are'
            return None
        return found

    def _unsound(self, view: memoryview, at: int, found: Stored) -> str | None:
        if found.first < self._offset:
            return f'a batch with offset {found.first} where {self._offset} is due'
        if at + found.size > len(view):
            view, at = memoryview(self._files.pread(self._handle, found.size, self.position)), 0
        if len(view) - at < found.size or not crc_fits(view, at, found.size):
            return f'the CRC of the batch with offset {found.first} does not fit'
        return None
