"""Idempotent producers: which batches a log already has of whom (KIP-98, KIP-360).

Strategy: the state of a producer is an immutable value with its last five batches, so that a turn of appends that
could not be written is undone by putting the old values back, and a snapshot is taken by keeping references. Nothing
here is asked about time: `now` comes in.

    sequence follows the last one        appended
    the same batch as one of the last 5  a duplicate: the offsets of the original
    anything else at the same epoch      OutOfOrderSequence
    an older epoch                       StaleProducerEpoch
    a newer epoch                        has to begin at sequence 0
    an unknown producer                  any sequence (its state may have been dropped: KIP-360)

Encoded (in the index file, see `acklog.log.index`), big-endian, per producer: id int64, epoch int16, last seen int64
(ms, -1 unknown), number of batches int8, and per batch: first sequence int32, last sequence int32, first offset int64,
last offset int64, append time int64 (ms, -1 unless LogAppendTime).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from acklog.errors import OutOfOrderSequence, StaleProducerEpoch

REMEMBERED = 5  # batches per producer: as many as a client may have in flight
LAST_SEQUENCE = 0x7FFFFFFF  # behind it comes 0 again

_PRODUCER = struct.Struct('>qhqb')
_BATCH = struct.Struct('>iiqqq')


class ProducerBatch(NamedTuple):
    """One stored batch of a producer."""

    first_sequence: int
    last_sequence: int
    first: int  # offset
    last: int
    append_time: int


class Producer(NamedTuple):
    """What is known of a producer; `seen`: ms of its last append, -1 when not known."""

    epoch: int
    seen: int
    batches: tuple[ProducerBatch, ...]


class Producers:
    """The producers of one log."""

    __slots__ = ('_changed', '_known')

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}
        self._changed: set[int] = set()  # since the last encoding

    def __len__(self) -> int:
        return len(self._known)

    def get(self, producer_id: int) -> Producer | None:
        return self._known.get(producer_id)

    def put(self, producer_id: int, state: Producer | None) -> None:
        """Set or, with None, forget what is known."""
        self._changed.add(producer_id)
        if state is None:
            self._known.pop(producer_id, None)
        else:
            self._known[producer_id] = state

    def duplicate(self, producer_id: int, epoch: int, first_sequence: int, count: int) -> ProducerBatch | None:
        """The original when this batch is a repeat, None when it is to be appended.

        Raises OutOfOrderSequence, StaleProducerEpoch.
        """
        known = self._known.get(producer_id)
        if known is None:
            return None
        if epoch == known.epoch:
            last = known.batches[-1].last_sequence
            if first_sequence == (last + 1) & LAST_SEQUENCE:
                return None
            last_sequence = (first_sequence + count - 1) & LAST_SEQUENCE
            for batch in known.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
            raise OutOfOrderSequence(f'producer {producer_id} epoch {epoch}: sequence {first_sequence} after {last}')
        if epoch < known.epoch:
            raise StaleProducerEpoch(f'producer {producer_id}: epoch {epoch}, and {known.epoch} has been seen')
        if first_sequence:
            raise OutOfOrderSequence(f'producer {producer_id}: new epoch {epoch} begins at sequence {first_sequence}')
        return None

    def appended(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        first: int,
        last: int,
        seen: int,
        append_time: int,
    ) -> None:
        """A batch has been placed at these offsets."""
        last_sequence = (first_sequence + last - first) & LAST_SEQUENCE
        batch = ProducerBatch(first_sequence, last_sequence, first, last, append_time)
        known = self._known.get(producer_id)
        before = known.batches[1 - REMEMBERED :] if known is not None and known.epoch == epoch else ()
        self._known[producer_id] = Producer(epoch, seen, (*before, batch))
        self._changed.add(producer_id)

    def expire(self, now: int, idle_ms: int) -> None:
        """Forget producers that have appended nothing for `idle_ms`; those of unknown age begin to age now."""
        for producer_id, state in list(self._known.items()):
            if state.seen < 0:
                self.put(producer_id, state._replace(seen=now))
            elif now - state.seen > idle_ms:
                self.put(producer_id, None)

    def clear(self) -> None:
        self._known.clear()

    def encode_all(self) -> tuple[int, bytes]:
        """All producers: their number and their bytes."""
        self._changed.clear()
        return _encode(self._known.items())

    def encode_changed(self) -> tuple[int, bytes]:
        """Those that changed since the last encoding; a forgotten one has no batches."""
        changed = [(each, self._known.get(each, _FORGOTTEN)) for each in self._changed]
        self._changed.clear()
        return _encode(changed)

    def load(self, count: int, data: bytes | memoryview) -> None:
        """Add what `encode_all` or `encode_changed` gave."""
        position = 0
        for _ in range(count):
            producer_id, epoch, seen, batches = _PRODUCER.unpack_from(data, position)
            position += _PRODUCER.size
            end = position + batches * _BATCH.size
            found = tuple(ProducerBatch(*each) for each in _BATCH.iter_unpack(data[position:end]))
            position = end
            if found:
                self._known[producer_id] = Producer(epoch, seen, found)
            else:
                self._known.pop(producer_id, None)


_FORGOTTEN = Producer(-1, -1, ())


def _encode(producers: Iterable[tuple[int, Producer]]) -> tuple[int, bytes]:
    parts = []
    count = 0
    for producer_id, state in producers:
        count += 1
        parts.append(_PRODUCER.pack(producer_id, state.epoch, state.seen, len(state.batches)))
        parts.extend(_BATCH.pack(*batch) for batch in state.batches)
    return count, b''.join(parts)
