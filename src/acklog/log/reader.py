"""Reading from the segments of a local log: whole batches by offset, and where a time begins.

Strategy: the sparse index gives a position at or before what is wanted, a hop over headers from there the exact one.
Then one read brings all that is answered; where it has to end is found through the index again. Where a reader will go
on is remembered, so that it needs no search; what was written last is in memory while it is small. Bytes that this
process has not written are checked, CRC included, when they are first read; a broken batch raises Damaged with file and
position, and those before it are answered first.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

from acklog.errors import Damaged
from acklog.log.index import Index
from acklog.log.scan import Stored, stored
from acklog.log.segment import Segment
from acklog.log.store import Store
from acklog.wire.record_batch import BEHIND_LENGTH, HEADER_SIZE, MAGIC, crc_fits

_REMEMBERED = 16  # readers
_WINDOW = 8192  # bytes read at once when only headers are wanted
_FEW = 64  # offsets; so near to each other they are likely to be in one batch
_NEAR = 20_480  # bytes read at once when that is looked for
_FIRST = struct.Struct('>q')
_HOP = struct.Struct('>qi4xb6xi')  # first offset, length, magic, last offset delta


class Reader:
    """The reading side of one log."""

    __slots__ = ('_ends', 'store')

    def __init__(self, store: Store) -> None:
        self.store = store
        self._ends: dict[int, tuple[Segment, int]] = {}  # offset behind what was read -> where that lies

    def read(self, offset: int, end: int, max_bytes: int) -> bytes | memoryview:
        """Whole batches from the one that holds `offset`, that begin below `end`; `start <= offset < end`. Raises
        Damaged."""
        if end - offset <= _FEW and offset not in self._ends:
            latest = self._latest(offset, end)
            if latest is not None and len(latest) <= max_bytes:
                return latest
            batch = self._one(offset, end)
            if batch is not None:
                return batch
        segment, position = self._find(offset)
        while True:
            limit, following = self._limit(segment, position, end)
            if position < limit:
                return self._take(segment, position, limit, following, max_bytes)
            behind = self._behind(segment)
            if behind is None or limit < segment.size or behind.base >= end:
                return b''
            segment, position = behind, 0

    def at_time(self, timestamp: int, start: int, end: int) -> tuple[int, int] | None:
        """(base offset, max timestamp) of the first batch in `[start, end)` with a timestamp of at least this one."""
        for segment in self.store.segments:
            if segment.max_timestamp < timestamp or segment.next <= start:
                continue
            for batch in self._batches(segment, self._index(segment).at_time(timestamp)):
                if batch.first >= end:
                    return None
                if batch.max_timestamp >= timestamp and batch.last >= start:
                    return batch.first, batch.max_timestamp
        return None

    def forget(self) -> None:
        """The segments have changed."""
        self._ends.clear()

    # --- finding

    def _latest(self, offset: int, end: int) -> bytes | None:
        """What was written last if it is `[offset, end)`, as for all that wait for what is published."""
        segment = self.store.segments[-1]
        latest = segment.latest
        if latest is None or end != segment.next or _FIRST.unpack_from(latest)[0] != offset:
            return None
        return latest

    def _one(self, offset: int, end: int) -> bytes | memoryview | None:
        """The batch that holds `offset` if it also reaches to `end`, by one read if it is not large; None: look for it
        in the usual way."""
        segments = self.store.segments
        segment = segments[max(bisect_right(segments, offset, key=_base) - 1, 0)]
        position, behind = self._index(segment).around(offset)
        if not segment.own <= position < segment.size:
            return None  # it may have to be checked
        data = self._pread(segment, position, min(_NEAR, behind - position, segment.size - position))
        at, last = 0, len(data) - HEADER_SIZE
        while at <= last:
            first, length, magic, delta = _HOP.unpack_from(data, at)
            size = length + BEHIND_LENGTH
            if magic != MAGIC or size < HEADER_SIZE or delta < 0:
                return None
            if first + delta >= offset:
                if first > offset or first + delta < end - 1 or position + at + size > segment.size:
                    return None
                if at + size <= len(data):
                    return memoryview(data)[at : at + size]
                return self._pread(segment, position + at, size)
            at += size
        return None

    def _find(self, offset: int) -> tuple[Segment, int]:
        """The segment, and where in it the batch that holds `offset` begins; behind it all when there is none."""
        remembered = self._ends.get(offset)
        if remembered is not None and remembered[1] < remembered[0].size:
            return remembered
        segments = self.store.segments
        segment = segments[max(bisect_right(segments, offset, key=_base) - 1, 0)]
        return segment, self._seek(segment, offset)[0]

    def _limit(self, segment: Segment, position: int, end: int) -> tuple[int, int]:
        """Where the batch that holds the record before offset `end` ends, and the offset behind it. Often it is the one
        at `position`."""
        if end >= segment.next:
            return segment.size, segment.next
        if segment.own <= position < segment.size:
            first, length, magic, delta = _HOP.unpack(self._pread(segment, position, _HOP.size))
            size, behind = length + BEHIND_LENGTH, first + delta + 1
            if behind >= end and magic == MAGIC and size >= HEADER_SIZE and position + size <= segment.size:
                return position + size, behind
        return self._seek(segment, end - 1)[1:]

    def _seek(self, segment: Segment, offset: int) -> tuple[int, int, int]:
        """Where the batch that holds `offset`, or the next one, begins and ends, and the offset behind it; the end of
        all if there is none."""
        position, end = self._index(segment).at_offset(offset), segment.size
        unpack, due, behind = _HOP.unpack_from, segment.base, segment.next
        while position < end:
            data = self._pread(segment, position, min(_WINDOW, end - position))
            at, last = 0, len(data) - HEADER_SIZE
            while at <= last:
                first, length, magic, delta = unpack(data, at)
                size = length + BEHIND_LENGTH
                if magic != MAGIC or size < HEADER_SIZE or delta < 0 or first < due or first + delta >= behind:
                    raise Damaged(f'{segment.path}: at {position + at}: no batch begins here')
                if first + delta >= offset:
                    return position + at, min(position + at + size, end), first + delta + 1
                at += size
                due = first + delta + 1
            if not at:
                raise Damaged(f'{segment.path}: at {position}: {len(data)} bytes are no batch')
            position += at
        return end, end, segment.next

    def _behind(self, segment: Segment) -> Segment | None:
        segments = self.store.segments
        number = bisect_right(segments, segment.base, key=_base)
        return segments[number] if number < len(segments) else None

    def _index(self, segment: Segment) -> Index:
        index = segment.index
        if index is None:
            try:
                index = self.store.index_of(segment)
            except OSError as error:
                raise Damaged(f'{segment.index_path}: at 0: {error.strerror or error}') from error
        return index

    def _batches(self, segment: Segment, position: int) -> Iterator[Stored]:
        """Headers of the batches from `position` on. Raises Damaged."""
        while position < segment.size:
            data = self._pread(segment, position, min(_WINDOW, segment.size - position))
            at = 0
            while len(data) - at >= HEADER_SIZE:
                batch = _header(segment, data, at, position + at)
                yield batch
                at += batch.size
            if not at:
                raise Damaged(f'{segment.path}: at {position}: {len(data)} bytes are no batch')
            position += at

    def _pread(self, segment: Segment, position: int, size: int) -> bytes:
        shared = self.store.shared
        try:
            data = shared.files.pread(shared.open_files.get(segment.path), size, position)
        except OSError as error:
            raise Damaged(f'{segment.path}: at {position}: {error.strerror or error}') from error
        if len(data) < size:
            raise Damaged(f'{segment.path}: at {position + len(data)}: the file ends, {segment.size} bytes are due')
        return data

    # --- taking

    def _take(self, segment: Segment, position: int, limit: int, behind: int, max_bytes: int) -> bytes | memoryview:
        following: int | None
        wanted = min(limit - position, max_bytes)
        data = self._pread(segment, position, wanted)
        if position + wanted == limit:
            size, following = wanted, behind
        else:
            size, following = self._whole(segment, data, position)
            if not size:  # the first batch is larger than asked for
                head = data if wanted >= HEADER_SIZE else self._pread(segment, position, HEADER_SIZE)
                batch = _header(segment, head, 0, position)
                size, following = min(batch.size, limit - position), batch.last + 1
                data = self._pread(segment, position, size)
        if position < segment.own and not segment.checked_from <= position <= position + size <= segment.checked:
            checked = self._check(segment, memoryview(data)[:size], position)
            size, following = checked, following if checked == size else None
        if following is not None:
            self._remember(following, segment, position + size)
        return data if size == len(data) else memoryview(data)[:size]

    def _whole(self, segment: Segment, data: bytes, position: int) -> tuple[int, int | None]:
        """How many bytes of `data` are whole batches, and the offset behind them."""
        at = max(self._index(segment).at_position(position + len(data)) - position, 0)
        following = None
        last = len(data) - HEADER_SIZE
        while at <= last:
            first, length, magic, delta = _HOP.unpack_from(data, at)
            size = length + BEHIND_LENGTH
            if magic != MAGIC or size < HEADER_SIZE:
                break  # it will be found broken when it is the first
            if at + size > len(data):
                following = first
                break
            at += size
            following = first + delta + 1
        return at, following

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        ends = self._ends
        if len(ends) >= _REMEMBERED:
            del ends[next(iter(ends))]
        ends[offset] = segment, position

    def _check(self, segment: Segment, view: memoryview, position: int) -> int:
        """How many bytes of `view` are sound batches. Raises Damaged when the first one is not."""
        at, due = 0, segment.base
        while at < len(view):
            batch = stored(view, at, position + at) if len(view) - at >= HEADER_SIZE else None
            if (
                batch is None
                or at + batch.size > len(view)
                or not due <= batch.first <= batch.last < segment.next  # which no CRC covers
                or not crc_fits(view, at, batch.size)
            ):
                if at:
                    break
                raise Damaged(f'{segment.path}: at {position}: no sound batch')
            at += batch.size
            due = batch.last + 1
        if segment.checked_from <= position <= segment.checked:
            segment.checked = max(segment.checked, position + at)
        else:
            segment.checked_from, segment.checked = position, position + at
        return at


def _base(segment: Segment) -> int:
    return segment.base


def _header(segment: Segment, data: bytes, at: int, position: int) -> Stored:
    batch = stored(data, at, position)
    if batch is None:
        raise Damaged(f'{segment.path}: at {position}: no batch begins here')
    return batch
