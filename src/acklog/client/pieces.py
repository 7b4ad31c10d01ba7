"""Many records, cut into pieces that each go to one partition, about as large as a batch.

Strategy: records with a key go to the key's partition, those without to the next one in turn, a piece at a time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from acklog.client.outbox import UNFIT, Published, Record, misfit
from acklog.wire.record_batch import NewRecord

OVERHEAD = 12  # bytes that a record takes in a batch besides key, value and headers, roughly


@dataclass(slots=True)
class Piece:
    """Records for one partition. `places`: which of all the records they are."""

    partition: int
    records: list[Record] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    size: int = 0


class Pieces:
    """`only`: the partition that all go to, if they do; `choose`: else the partition of a key."""

    def __init__(
        self, partitions: Collection[int], size: int, choose: Callable[[bytes], int], only: int | None = None
    ) -> None:
        order = random.sample(sorted(partitions), len(partitions)) if only is None else [only]
        self._turns = itertools.cycle(order)
        self._size, self._choose, self._only = size, choose, only
        self._open: dict[int | None, Piece] = {}  # None: of those without a key

    def cut(self, records: Iterable[bytes | NewRecord]) -> Iterator[Piece]:
        """Pieces that are full, and in the end those that are not."""
        size = self._size
        bare: Piece | None = None
        for place, record in enumerate(records):
            if type(record) is bytes:
                if bare is None:
                    bare = self._piece(None)
                piece, length = bare, len(record) + OVERHEAD
            else:
                if not isinstance(record, NewRecord):
                    raise misfit(record) or TypeError(f'a record is a value of bytes or a NewRecord, not {record!r}')
                key = record.key if self._only is None else None
                try:
                    piece, length = self._piece(None if key is None else self._choose(key)), _length(record)
                except UNFIT as error:
                    raise misfit(record) or error from None
                bare = None
            piece.records.append(record)
            piece.places.append(place)
            piece.size += length
            if piece.size >= size:
                yield self._close(piece)
                bare = None
        yield from self._open.values()

    def _piece(self, partition: int | None) -> Piece:
        piece = self._open.get(partition)
        if piece is None:
            piece = self._open[partition] = Piece(next(self._turns) if partition is None else partition)
        return piece

    def _close(self, piece: Piece) -> Piece:
        for key, each in list(self._open.items()):
            if each is piece:
                del self._open[key]
        return piece


def in_order(pieces: Sequence[Piece], published: Sequence[Published]) -> list[Published]:
    """Where each record went, from where each piece's first one went, in the order of all the records."""
    places: list[Published | None] = [None] * sum(len(piece.places) for piece in pieces)
    for piece, (topic, partition, offset, timestamp) in zip(pieces, published, strict=True):
        step = 0 if offset < 0 else 1
        for place, record in zip(piece.places, piece.records, strict=True):
            own = None if isinstance(record, bytes) else record[3]
            places[place] = Published(topic, partition, offset, timestamp if own is None else own)
            offset += step
    return places  # type: ignore[return-value]  # none is left empty


def _length(record: NewRecord) -> int:
    key, value, headers, _ = record
    size = OVERHEAD + len(key or b'') + len(value or b'')
    return size + sum(len(name) + len(content or b'') + 10 for name, content in headers)
