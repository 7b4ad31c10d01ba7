"""Whole batches between the log and an answer: those that hold what is reserved are read, those that hold what was
acquired are sent.

Strategy: nothing is copied. Neighbours that were read together are sent as one slice of what was read. Where few
records of a batch are wanted, and it is not small, an excerpt is sent in its place (see `excerpts`), and the batch need
not be read again while it is kept for those.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from acklog.broker.deliveries.excerpts import SMALL, excerpt_size
from acklog.core.offsets import ranges as ranges_of
from acklog.errors import Damaged
from acklog.wire.record_batch import Span, spans

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.core.share_partition import Reservation

Buffer = bytes | memoryview

SMALL_GAP = 16  # offsets
FRESH = 1 << 20  # bytes of batches, in one take


class Piece(NamedTuple):
    """One batch as it was read: in `data`, at the span's position."""

    span: Span
    data: memoryview


# -- out of the log ----------------------------------------------------------------------------------------------------


async def read(delivery: ShareDelivery, reservation: Reservation, max_bytes: int) -> list[Piece]:
    """The batches that hold what is reserved, in order, as far as `max_bytes` go (at least one). Raises LogError.

    Of a batch that an excerpt will be made of only this counts. But a batch of which one has never been made costs much
    more than its excerpt, and somebody else waits meanwhile: of these there are `FRESH` bytes in one go.
    """
    pieces: list[Piece] = []
    offsets = reservation.offsets
    try:
        if not offsets:
            await _read_tail(delivery, reservation, reservation.count, pieces, max_bytes)
        else:
            available = _Available(delivery, reservation, pieces, max_bytes)
            await available.read()
            if reservation.tail is not None and available.goes_on:
                await _read_tail(delivery, reservation, reservation.count - available.count, pieces, available.left)
    except Damaged:
        if not pieces:  # else what lies before it can be had
            raise
    return pieces


async def _read_tail(
    delivery: ShareDelivery, reservation: Reservation, wanted: int, pieces: list[Piece], max_bytes: int
) -> None:
    """Add the batches from the reserved tail on that hold up to so many offsets."""
    first = reservation.tail
    assert first is not None
    stop = min(delivery.log_end, first + wanted)
    if pieces and pieces[-1].span.last >= first:
        first = pieces[-1].span.last + 1
    log = delivery.partition.log
    while first < stop and (max_bytes > 0 or not pieces):
        data = (await log.read(first, max(max_bytes, 1), up_to=stop)).data
        if not data:
            return
        view = memoryview(data)
        for span in spans(view):
            pieces.append(Piece(span, view))
        max_bytes -= len(data)
        first = pieces[-1].span.last + 1


class _Available:
    """Reads what is available of what was reserved when it began: of that something may be taken away meanwhile.
    `count`: offsets of it; `left`: bytes that may still be sent."""

    __slots__ = ('_at', '_delivery', '_fresh', '_offsets', '_pieces', '_reservation', '_stretches', 'count', 'left')

    def __init__(self, delivery: ShareDelivery, reservation: Reservation, pieces: list[Piece], max_bytes: int) -> None:
        self._delivery, self._reservation = delivery, reservation
        self._offsets = reservation.offsets.copy()
        self._at, self.count = 0, len(self._offsets)  # so many of the offsets are done with
        self._stretches: list[tuple[int, int]] = []  # made when one is needed
        self._pieces = pieces
        self._fresh = FRESH
        self.left = max_bytes

    @property
    def goes_on(self) -> bool:
        return not self._pieces or (self.left > 0 and self._fresh > 0)

    async def read(self) -> None:
        """Add the batches that hold it, as far as they go. Raises LogError."""
        log = self._delivery.partition.log
        while self.goes_on:
            self._add_kept(log.start)
            if self._at == self.count or not self.goes_on:
                return
            first = self._offsets[self._at]
            stretches = self._stretches = self._stretches or _stretches(self._offsets)
            stop = stretches[bisect_right(stretches, first, key=itemgetter(0)) - 1][1]
            data = (await log.read(first, max(self.left, 1), up_to=stop)).data
            if data:
                self._add(memoryview(data))
            else:  # it is not to be had
                self._at = self._offsets.rank(stop - 1)

    def _add_kept(self, log_start: int) -> None:
        """The batches that come next, as long as they are kept for excerpts."""
        offsets, pieces, key = self._offsets, self._pieces, self._delivery.key
        find = self._delivery.excerpts.find
        while self._at < self.count and (self.left > 0 or not pieces):
            first = offsets[self._at]
            kept = find(key, first)
            if kept is None or first < log_start:
                break
            pieces.append(Piece(*kept))
            self.left -= self._sent(kept[0])
            self._at = offsets.rank(kept[0].last)

    def _add(self, data: memoryview) -> None:
        """Batches out of the log."""
        delivery = self._delivery
        for span in spans(data):
            self._pieces.append(Piece(span, data))
            size = self._sent(span)
            if size == span.size or delivery.excerpts.last_of(delivery.key, span.first) is not None:
                self.left -= span.size  # an excerpt of what is too large to be kept costs as much, here at least
            else:
                self.left -= size
                self._fresh -= span.size
        self._at = self._offsets.rank(self._pieces[-1].span.last)

    def _sent(self, span: Span) -> int:
        """How many bytes of the batch are sent, about, if what is reserved is taken."""
        tail = self._reservation.tail
        if tail is not None and span.last >= tail:
            return span.size
        return excerpt_size(span, self._offsets.range_cardinality(span.first, span.last + 1))


def _stretches(wanted: BitMap64) -> list[tuple[int, int]]:
    """The stretches [first, stop) that hold what is wanted. Small gaps are read with them: a read costs more."""
    stretches: list[tuple[int, int]] = []
    for first, last in ranges_of(wanted):
        if stretches and first - stretches[-1][1] <= SMALL_GAP:
            stretches[-1] = (stretches[-1][0], last + 1)
        else:
            stretches.append((first, last + 1))
    return stretches


# -- into an answer ----------------------------------------------------------------------------------------------------


def buffers(delivery: ShareDelivery, pieces: Sequence[Piece], ranges: Sequence[tuple[int, int, int]]) -> list[Buffer]:
    """The batches that hold acquired offsets, or of such with few of them these; neighbours are in one buffer."""
    found: list[Buffer] = []
    run: tuple[memoryview, int, int] | None = None  # data, position, end
    at, stop = 0, len(ranges)
    excerpt_of, key = delivery.excerpts.of, delivery.key
    for span, data in pieces:
        first, last, position, size, _ = span
        while at < stop and ranges[at][1] < first:
            at += 1
        if at == stop:
            break
        one, until, _ = ranges[at]
        if one > last:
            continue
        part = None
        if (one > first or until < last) and size > SMALL:
            part = excerpt_of(key, span, data, ranges, at)
        if part is None and run is not None and run[0] is data and run[2] == position:
            run = data, run[1], position + size
            continue
        if run is not None:
            found.append(run[0][run[1] : run[2]])
        run = (data, position, position + size) if part is None else None
        if part is not None:
            found.append(part)
    if run is not None:
        found.append(run[0][run[1] : run[2]])
    return found
