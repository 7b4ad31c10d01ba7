"""Records as a subscriber gets them, out of what a server sent.

Of the batches in an answer only the offsets that were acquired are this member's; a batch may hold others. What was
acquired and has no record is a gap. A batch that cannot be read (its CRC does not fit, it is broken, it unpacks to
too much) is handed back: after a few attempts the server puts it aside like any record that nobody can process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import NamedTuple, Protocol

from acklog.client.errors import Unsupported
from acklog.client.times import Delay, Instant
from acklog.client.unsettled import without
from acklog.errors import CorruptBatch
from acklog.wire import record_batch
from acklog.wire.compression import CompressionUnavailable
from acklog.wire.primitives import Buffer

MAX_UNPACKED = 64 << 20  # bytes that one batch may unpack to


class Holder(Protocol):
    """The subscription that a record came with."""

    def accept(self, records: Received) -> None: ...

    def release(
        self, records: Received, *, after: Delay | None = None, at: Instant | None = None, reason: str = ''
    ) -> None: ...

    def reject(self, records: Received, *, reason: str = '') -> None: ...

    def renew(self, records: Received) -> Awaitable[None]: ...


class Received(NamedTuple):
    """A record that was taken and waits to be signed off.

    `timestamp`: ms since 1970; `headers`: in order, keys may repeat; `deliveries`: how often it has been delivered,
    this time included, 1 or more (up to 32767).
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    deliveries: int
    holder: Holder | None = None

    @property
    def place(self) -> str:
        """Where it is, as the command line names records: orders/2/1042."""
        return f'{self.topic}/{self.partition}/{self.offset}'

    def accept(self) -> None:
        """It is done: it is never delivered to this group again."""
        self._held().accept(self)

    def release(self, *, after: Delay | None = None, at: Instant | None = None, reason: str = '') -> None:
        """Hand it back, to be delivered again; `after` or `at`: not before. As `Subscription.release`."""
        self._held().release(self, after=after, at=at, reason=reason)

    def reject(self, *, reason: str = '') -> None:
        """Nobody can process it: it is not delivered again. As `Subscription.reject`."""
        self._held().reject(self, reason=reason)

    def renew(self) -> Awaitable[None]:
        """Hold it for another lock's duration from now on. As `Subscription.renew`."""
        return self._held().renew(self)

    def _held(self) -> Holder:
        if self.holder is None:
            raise ValueError('this record came from no subscription')
        return self.holder

    def __repr__(self) -> str:
        return f'<record {self.place}, delivery {self.deliveries}>'


class Sorted(NamedTuple):
    """What an answer held of one partition: the records, and ranges of acquired offsets that are none."""

    records: list[Received]
    gaps: list[tuple[int, int]]
    unreadable: list[tuple[int, int]]


def sort_out(
    topic: str,
    partition: int,
    data: Buffer,
    acquired: Sequence[tuple[int, int, int]],
    holder: Holder | None = None,
) -> Sorted:
    """The records among `data` (whole batches) that were acquired: (first, last, delivery count), in order.

    Raises Unsupported when the compression's package is missing."""
    records: list[Received] = []
    broken: list[tuple[int, int]] = []
    ranges = iter(acquired)
    first, last, deliveries = next(ranges, (-1, -1, 0))
    make, add = tuple.__new__, records.append
    for span in record_batch.spans(data):
        stored = _read(data, span)
        if stored is None:
            broken.append((span.first, span.last))
            continue
        for offset, timestamp, key, value, headers in stored:
            while offset > last >= 0:
                first, last, deliveries = next(ranges, (-1, -1, 0))
            if last < 0:
                break
            if offset >= first:
                fields = (topic, partition, offset, timestamp, key, value, headers, deliveries, holder)
                add(make(Received, fields))
    left = without([(first, last) for first, last, _ in acquired], [record[2] for record in records])
    gaps, unreadable = _parted(left, broken)
    return Sorted(records, gaps, unreadable)


def _read(data: Buffer, span: record_batch.Span) -> Iterable[record_batch.Row] | None:
    """The records of a batch, none of a control batch; None if it cannot be read."""
    if not record_batch.crc_fits(data, span.position, span.size):
        return None
    if record_batch.is_control(span.attributes):
        return ()
    try:
        return list(record_batch.rows_of(data, span, MAX_UNPACKED))
    except CorruptBatch:
        return None
    except CompressionUnavailable as error:
        raise Unsupported(f'offset {span.first} of the partition cannot be unpacked: {error}') from None


def _parted(
    ranges: Sequence[tuple[int, int]], broken: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The ranges outside and inside of the broken batches."""
    outside, inside = [], []
    for first, last in ranges:
        begin = first
        for batch_first, batch_last in broken:
            overlap = max(begin, batch_first), min(last, batch_last)
            if overlap[0] > overlap[1]:
                continue
            if begin < overlap[0]:
                outside.append((begin, overlap[0] - 1))
            inside.append(overlap)
            begin = overlap[1] + 1
        if begin <= last:
            outside.append((begin, last))
    return outside, inside


def check_record(record: object) -> None:
    """Raises TypeError unless a subscription may have given it."""
    if not isinstance(record, Received):
        raise TypeError(f'a record that the subscription gave is wanted, not {record!r}')
