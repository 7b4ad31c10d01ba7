"""What a producer holds for one partition: records that wait, and at most one batch on its way.

One batch on its way per partition keeps the records in their order whatever is repeated, and makes batches grow while
the server is busy. A batch keeps its bytes, with producer id and sequence, until it is settled, so that a repeat is
the same batch to the server (KIP-98).
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from acklog.client.arguments import INT64
from acklog.client.retry import Backoff
from acklog.wire import record_batch

RECORD_OVERHEAD = 100  # bytes that a waiting record takes besides key, value and headers, roughly

MAX_SEQUENCE = 1 << 31
MOST_SHOWN = 80  # characters of a value that does not fit
_BYTES = (bytes, bytearray, memoryview)
UNFIT = (TypeError, ValueError, AttributeError, OverflowError, struct.error)  # when a value is none that a record has


class Published(NamedTuple):
    """Where a record went. `offset` is -1 where the server does not say (acks=0, or a repeat that it had already)."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # ms since 1970, as stored


Record = record_batch.NewRecord | record_batch.Plain | bytes


@dataclass(slots=True, eq=False)
class Waiting:
    """Records that wait to be sent together. `futures`: who is told where each of them went, or, where there is one for
    all, where the first of them went. Kept as lists, since the garbage collector looks at each object of its own."""

    records: list[Record]
    size: int
    futures: list[asyncio.Future[Published]]
    one_for_all: bool


@dataclass(slots=True, eq=False)
class Batch:
    """Records on their way. `deadline`: loop time after which it is not tried again."""

    waiting: Sequence[Waiting]
    data: bytes
    timestamp: int
    deadline: float
    backoff: Backoff = field(default_factory=Backoff)
    retry_at: float = 0.0


@dataclass(slots=True)
class Identity:
    """Producer id and epoch for one partition, and the sequence number of its next record."""

    producer_id: int
    epoch: int
    sequence: int = 0


class Outbox:
    """The records of one partition."""

    def __init__(self, topic: str, index: int) -> None:
        self.topic, self.index = topic, index
        self.identity: Identity | None = None
        self.batch: Batch | None = None  # sent, or to be sent again
        self.on_its_way = False
        self._waiting: deque[Waiting] = deque()
        self.bytes = 0  # of the records that wait
        self.since = 0.0  # loop time at which the first of them came

    @property
    def empty(self) -> bool:
        """Whether there is nothing to be sent or settled."""
        return not self._waiting and self.batch is None

    def add(self, waiting: Waiting) -> bool:
        """More records; whether none were waiting before, so that `since` is to be set."""
        first = not self._waiting
        self._waiting.append(waiting)
        self.bytes += waiting.size
        return first

    def add_one(self, record: Record, size: int, future: asyncio.Future[Published], most: int) -> bool:
        """As `add`, of one record. Up to `most` bytes of those wait as one."""
        self.bytes += size
        if self._waiting:
            last = self._waiting[-1]
            if not last.one_for_all and last.size + size <= most:
                last.records.append(record)
                last.futures.append(future)
                last.size += size
                return False
        first = not self._waiting
        self._waiting.append(Waiting([record], size, [future], False))
        return first

    def due(self, linger: float, batch_bytes: int) -> float:
        """Loop time at which something is to be sent."""
        if self.batch is not None:
            return self.batch.retry_at
        return 0.0 if self.bytes >= batch_bytes else self.since + linger

    def fill(
        self,
        *,
        batch_bytes: int,
        compression: str,
        timestamp: int,
        now: float,
        patience: float,
        unfit: Callable[[Waiting, Exception], None],
    ) -> Batch | None:
        """Make the next batch of the oldest records, or take the one that is to be sent again. `unfit`: is told of
        those that are no records, and why; None when there are no others."""
        if self.batch is not None:
            return self.batch
        taken: list[Waiting] = []
        size = 0
        while self._waiting and (not taken or size + self._waiting[0].size <= batch_bytes):
            waiting = self._waiting.popleft()
            size += waiting.size
            taken.append(waiting)
        self.bytes -= size
        try:
            data = self._built(taken, timestamp, compression)
        except UNFIT:
            taken = _sifted(taken, timestamp, unfit)
            if not taken:
                return None
            data = self._built(taken, timestamp, compression)
        if self.identity is not None:
            count = sum(len(waiting.records) for waiting in taken)
            self.identity.sequence = (self.identity.sequence + count) % MAX_SEQUENCE
        self.since = now
        self.batch = Batch(taken, bytes(data), timestamp, now + patience)
        return self.batch

    def _built(self, taken: Sequence[Waiting], timestamp: int, compression: str) -> bytearray:
        identity = self.identity or Identity(-1, -1, -1)
        return record_batch.build(
            chain.from_iterable([waiting.records for waiting in taken]),
            timestamp=timestamp,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=identity.sequence,
            compression=compression,
        )

    def settle(self) -> Sequence[Waiting]:
        """The batch is done or given up: its records, for their futures to be told."""
        assert self.batch is not None
        settled = self.batch.waiting
        self.batch = None
        return settled

    def confirm(self, base: int, append_time: int) -> int:
        """The batch is stored from offset `base` on (-1: not known where): its futures are told. Returns its bytes."""
        assert self.batch is not None
        made, size = self.batch.timestamp, 0
        for waiting in self.settle():
            offset = base
            for record, future in zip(waiting.records, waiting.futures, strict=False):
                if not future.done():
                    own = None if isinstance(record, bytes) else record[3]
                    when = (made if own is None else own) if append_time < 0 else append_time
                    future.set_result(Published(self.topic, self.index, offset, when))
                offset += 0 if offset < 0 else 1
            base += 0 if base < 0 else len(waiting.records)
            size += waiting.size
        return size

    def drain(self) -> list[Waiting]:
        """Give up all that is here."""
        left = [*(self.batch.waiting if self.batch else ()), *self._waiting]
        self._waiting.clear()
        self.bytes, self.batch = 0, None
        return left


def failed(records: Sequence[Waiting], error: Exception) -> int:
    """These are given up: their futures are told why. Returns their bytes."""
    for waiting in records:
        for future in waiting.futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # `flush` raises it, for those who do not look at each future
    return sum(waiting.size for waiting in records)


def _sifted(taken: Sequence[Waiting], timestamp: int, unfit: Callable[[Waiting, Exception], None]) -> list[Waiting]:
    """Those that a batch can be made of, one by one: what somebody got wrong shall not cost others their records. Of
    records that are answered together all are unfit if one is."""
    fit: list[Waiting] = []
    for waiting in taken:
        errors = {at: error for at, each in enumerate(waiting.records) if (error := _error_of(each, timestamp))}
        if not errors:
            fit.append(waiting)
        elif waiting.one_for_all:
            unfit(waiting, next(iter(errors.values())))
        else:
            left = [at for at in range(len(waiting.records)) if at not in errors]
            for number, (at, error) in enumerate(errors.items(), start=len(left)):
                size = 0 if number else waiting.size  # what is left of them, if anything, still takes it all
                unfit(Waiting([waiting.records[at]], size, [waiting.futures[at]], False), error)
            if left:
                records, futures = [waiting.records[at] for at in left], [waiting.futures[at] for at in left]
                fit.append(Waiting(records, waiting.size, futures, False))
    return fit


def _error_of(record: Record, timestamp: int) -> Exception | None:
    try:
        record_batch.build([record], timestamp=timestamp)
    except UNFIT as error:
        return misfit(record) or error
    return None


def misfit(record: object) -> Exception | None:
    """What of a record has the wrong type, or cannot be, by name; None where nothing has."""
    if isinstance(record, _BYTES):
        return None
    if not isinstance(record, tuple) or len(record) != 4:
        return TypeError(f'a record is a value of bytes or a NewRecord, not {_shown(record)}')
    key, value, headers, timestamp = record
    for name, content in (('key', key), ('value', value)):
        if content is not None and not isinstance(content, _BYTES):
            return TypeError(f'the {name} of a record is bytes or None, not {_shown(content)}')
    if not isinstance(headers, Sequence) or not all(isinstance(each, Sequence) and len(each) == 2 for each in headers):
        return TypeError(f'the headers of a record are pairs of a name and bytes, not {_shown(headers)}')
    for name, content in headers:
        if not isinstance(name, str) or not (content is None or isinstance(content, _BYTES)):
            return TypeError(f'a header is a name of text with bytes or None, not {_shown((name, content))}')
    if timestamp is not None and not isinstance(timestamp, int):
        return TypeError(f'the timestamp of a record is ms since 1970, not {_shown(timestamp)}')
    if timestamp is not None and not -INT64 <= timestamp <= INT64:
        return ValueError(f'the timestamp of a record is ms since 1970, which {_shown(timestamp)} is not')
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return f'{text[:MOST_SHOWN]}...' if len(text) > MOST_SHOWN else text
