"""Where batches go: offsets, position in the segment, index entries, the sequences of producers. All in memory, and
undone as a whole when what a turn of the loop has placed cannot be written.

Strategy: whether all batches of an append are new or all are repeats is decided first; only then anything changes. One
batch is the common case and takes the short way. The CRC covers neither base offset nor leader epoch, so placing costs
none.
"""

from __future__ import annotations

import struct

from acklog.errors import OutOfOrderSequence, ProducerError
from acklog.log.producers import Producer, ProducerBatch, Producers
from acklog.log.seam import Appended
from acklog.log.segment import Segment
from acklog.log.store import Store
from acklog.wire.record_batch import BEHIND_LENGTH, CONTROL, HEADER_SIZE, stamp

# length, attributes, last delta, max timestamp, producer's id, epoch, sequence
_FIELDS = struct.Struct('>8xi9xhi8xqqhi4x')
_PLACE = struct.Struct('>qii')  # offset, length, leader epoch

assert _FIELDS.size == HEADER_SIZE


class Placer:
    """`end`: offset of the next record; `tail`: where in `segment` it goes; both include what is not written yet."""

    __slots__ = (
        '_indexed',
        '_producers',
        '_undo',
        '_undo_producers',
        'end',
        'max_timestamp',
        'segment',
        'store',
        'tail',
    )

    def __init__(self, store: Store) -> None:
        self.store = store
        self._undo_producers: list[tuple[int, Producer | None]] = []
        self.adopt()

    def adopt(self) -> None:
        """Go on from what the store has. Nothing may be pending."""
        self.segment: Segment | None = None  # until the first append
        self.end = self.store.end
        self.tail = self._indexed = 0
        self.max_timestamp = -1
        self._producers = Producers()
        self._undo = (0, 0, 0, -1)

    def go_to(self, segment: Segment) -> Segment:
        """Later batches go to this segment, which the store has made ready. Nothing may be pending. Raises OSError."""
        if segment is not self.segment:
            self.segment, self._producers = segment, self.store.known_producers()
            self.tail = segment.size
            self._indexed = segment.index.positions[-1] if segment.index else 0
            self.max_timestamp = segment.max_timestamp
        return segment

    def begin(self) -> None:
        """A turn begins: `undo` comes back to here."""
        assert self.segment is not None
        index = self.segment.index
        self._undo = self.end, 0 if index is None else len(index), self._indexed, self.max_timestamp

    def undo(self) -> None:
        """Nothing of the turn has happened."""
        assert self.segment is not None
        self.end, entries, self._indexed, self.max_timestamp = self._undo
        self.tail = self.segment.size
        if self.segment.index is not None:
            self.segment.index.cut(entries)
        self._forget(0)

    def done(self) -> None:
        """The turn has been written."""
        self._undo_producers.clear()

    def place(self, batches: bytearray | memoryview, now: int) -> Appended:
        """Give the batches their offsets; nothing has changed if they are repeats, or when it raises ProducerError."""
        length, attributes, delta, latest, producer_id, epoch, sequence = _FIELDS.unpack_from(batches, 0)
        append_time = now if self.store.config.log_append_time else -1
        first = self.end
        if length + BEHIND_LENGTH != len(batches):
            return self._place_several(batches, now, append_time)
        if producer_id >= 0 and not attributes & CONTROL:
            original = self._producers.duplicate(producer_id, epoch, sequence, delta + 1)
            if original is not None:
                return Appended(original.first, original.last, original.append_time, True)
            self._undo_producers.append((producer_id, self._producers.get(producer_id)))
            self._producers.appended(producer_id, epoch, sequence, first, first + delta, now, append_time)
        self._put(batches, 0, length, delta, latest, append_time)
        self.tail += len(batches)
        return Appended(first, first + delta, append_time)

    def _place_several(self, batches: bytearray | memoryview, now: int, append_time: int) -> Appended:
        originals = self._learn_all(batches, now, append_time)
        if originals:
            return Appended(originals[0].first, originals[-1].last, originals[0].append_time, True)
        first, position = self.end, 0
        while position < len(batches):
            length, _, delta, latest, _, _, _ = _FIELDS.unpack_from(batches, position)
            self._put(batches, position, length, delta, latest, append_time)
            position += length + BEHIND_LENGTH
        self.tail += position
        return Appended(first, self.end - 1, append_time)

    def _learn_all(self, batches: bytearray | memoryview, now: int, append_time: int) -> list[ProducerBatch]:
        """The originals of all batches when they are repeats; otherwise all are new, and their producers have them."""
        known, originals = len(self._undo_producers), []
        position, count, offset = 0, 0, self.end
        try:
            while position < len(batches):
                length, attributes, delta, _, producer_id, epoch, sequence = _FIELDS.unpack_from(batches, position)
                if producer_id >= 0 and not attributes & CONTROL:
                    original = self._producers.duplicate(producer_id, epoch, sequence, delta + 1)
                    if original is not None:
                        originals.append(original)
                    else:
                        self._undo_producers.append((producer_id, self._producers.get(producer_id)))
                        self._producers.appended(producer_id, epoch, sequence, offset, offset + delta, now, append_time)
                count += 1
                offset += delta + 1
                position += length + BEHIND_LENGTH
            if originals and len(originals) < count:
                raise OutOfOrderSequence('new batches together with repeated ones')
        except ProducerError:
            self._forget(known)
            raise
        return originals

    def _put(
        self, batches: bytearray | memoryview, position: int, length: int, delta: int, latest: int, append_time: int
    ) -> None:
        end = self.end
        _PLACE.pack_into(batches, position, end, length, self.store.shared.epoch)
        if append_time >= 0:
            stamp(batches, position, append_time)
            latest = append_time
        at = self.tail + position
        if at - self._indexed >= self.store.config.index_interval_bytes:
            self.segment.index.add(end, at, self.max_timestamp)  # type: ignore[union-attr]  # both are there by now
            self._indexed = at
        if latest > self.max_timestamp:
            self.max_timestamp = latest
        self.end = end + delta + 1

    def _forget(self, known: int) -> None:
        while len(self._undo_producers) > known:
            self._producers.put(*self._undo_producers.pop())
