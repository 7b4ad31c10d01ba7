"""Whole batches between the log and an answer: those that hold what is reserved are read, those that hold what was
acquired are sent.

Strategy: nothing is copied. Neighbours that were read together are sent as one slice of what was read. Where few
records of a batch are wanted, and it is not small, an excerpt is sent in its place (see `excerpts`), and the batch need
not be read again while it is kept for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from acklog.broker.deliveries.excerpts import SMALL, excerpt_size
from acklog.core import offsets
from acklog.errors import Damaged
from acklog.wire.record_batch import Span, spans

if TYPE_CHECKING:
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
    left, fresh = max_bytes, FRESH
    log = delivery.partition.log
    for first, stop in _stretches(reservation, delivery.log_end):
        position = max(first, pieces[-1].span.last + 1) if pieces else first
        while position < stop:
            if (left <= 0 or fresh <= 0) and pieces:
                return pieces
            kept = None if reservation.tail == first else delivery.excerpts.find(delivery.key, position)
            if kept is not None and position >= log.start:
                pieces.append(Piece(*kept))
                position = kept[0].last + 1
                left -= _sent(kept[0], reservation)
                continue
            try:
                found = await log.read(position, max(left, 1), up_to=stop)
            except Damaged:
                if pieces:  # what lies before it can be had
                    return pieces
                raise
            if not found.data:
                break
            view = memoryview(found.data)
            for span in spans(view):
                pieces.append(Piece(span, view))
                size = _sent(span, reservation)
                if size == span.size or delivery.excerpts.last_of(delivery.key, span.first) is not None:
                    left -= span.size  # an excerpt of what is too large to be kept costs as much, here at least
                else:
                    left -= size
                    fresh -= span.size
            position = pieces[-1].span.last + 1
    return pieces


def _sent(span: Span, reservation: Reservation) -> int:
    """How many bytes of the batch are sent, about, if what is reserved is taken."""
    if reservation.tail is not None and span.last >= reservation.tail:
        return span.size
    return excerpt_size(span, reservation.offsets.range_cardinality(span.first, span.last + 1))


def _stretches(reservation: Reservation, log_end: int) -> list[tuple[int, int]]:
    """The stretches [first, stop) that hold what is reserved. Small gaps are read with them: a read costs more."""
    stretches: list[tuple[int, int]] = []
    for first, last in offsets.ranges(reservation.offsets):
        if stretches and first - stretches[-1][1] <= SMALL_GAP:
            stretches[-1] = (stretches[-1][0], last + 1)
        else:
            stretches.append((first, last + 1))
    if reservation.tail is not None:
        missing = reservation.count - len(reservation.offsets)
        stretches.append((reservation.tail, min(log_end, reservation.tail + missing)))
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
            part = excerpt_of(key, span, data, _within(ranges, at, first, last))
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


def _within(ranges: Sequence[tuple[int, int, int]], at: int, first: int, last: int) -> list[tuple[int, int]]:
    """What of the ranges from the one at `at` on, which ends in `first..last` or behind, lies in there."""
    one, until, _ = ranges[at]
    if until >= last or at + 1 == len(ranges) or ranges[at + 1][0] > last:  # as mostly where there are few
        return [(max(one, first), min(until, last))]
    found = []
    while at < len(ranges) and ranges[at][0] <= last:
        found.append((max(ranges[at][0], first), min(ranges[at][1], last)))
        at += 1
    return found
