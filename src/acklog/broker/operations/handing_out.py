"""What a member without a Kafka client is given of what was taken for it: single records, unpacked, with a token each.

Strategy: batches were chosen by their size as they are stored, and may unpack to a thousand times as much; so as many
of their records are given as fit into the bytes that were asked for, one at least, and the others go back as if they
had not been taken. A batch that cannot be unpacked has failed at this member: its records are released with why, so
backoff and limit of attempts apply, and what else was taken is not held up by it. An offset without a record is a gap.
A batch may have a million records, of which a few are wanted: others have their turn while they are looked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.broker.deliveries.delivery import MAX_WORDS
from acklog.broker.deliveries.taking import Taken
from acklog.broker.eager import RECORDS_AT_A_TIME, turn
from acklog.broker.operations import tokens
from acklog.broker.operations.exchanged import Delivery
from acklog.broker.operations.tokens import Token
from acklog.core.kinds import Ack
from acklog.core.tokens import TokenAck, settle
from acklog.errors import AcklogError, CorruptBatch, Failed
from acklog.wire.compression import CompressionUnavailable
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import Row, is_control, rows_at, spans

if TYPE_CHECKING:
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.core.share_partition import SharePartition


class Handout:
    """What one acquire gives, of all partitions together. `left`: bytes that it may still have; `trouble`: what could
    not be unpacked."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.records: list[Delivery] = []
        self.trouble: AcklogError | None = None

    async def add(self, delivery: ShareDelivery, taken: Taken) -> None:
        """What was taken of one partition; what is not given of it is settled. What is held by another lock by then, or
        by nobody, is left alone."""
        rest = {offset: number for first, last, number in taken.ranges for offset in range(first, last + 1)}
        offsets = list(rest)  # in order
        broken: dict[int, str] = {}
        full = False
        for number, (first, last, row) in enumerate(_rows(taken, rest), 1):
            if number % RECORDS_AT_A_TIME == 0:
                await turn()
            if row is None:
                continue
            if isinstance(row, AcklogError):
                self.trouble = self.trouble or row
                here = offsets[bisect_left(offsets, first) : bisect_right(offsets, last)]
                broken.update({offset: str(row) for offset in here if offset in rest})
            else:
                if full := self.left <= 0 and bool(self.records):
                    break
                self._give(delivery, taken, rest.pop(row[0]), row)
                if not rest:  # a batch may go on for millions
                    break
        gaps = [] if full else [offset for offset in rest if offset not in broken]
        spare = [offset for offset in rest if offset not in broken] if full else []
        acks = [TokenAck(offset, taken.lock, Ack.ACCEPT) for offset in gaps]
        acks += [TokenAck(offset, taken.lock, Ack.RELEASE, None, words[:MAX_WORDS]) for offset, words in broken.items()]

        def give_back(state: SharePartition) -> None:
            settle(state, delivery.clock(), acks)
            state.spare(delivery.clock(), taken.lock, spare)

        if acks or spare:
            try:
                delivery.change(give_back)
            except Failed:  # it is folded anew from the journal: their locks run out
                return

    def _give(self, delivery: ShareDelivery, taken: Taken, number: int, row: Row) -> None:
        offset, timestamp, key, value, headers = row
        self.left -= len(key or b'') + len(value or b'')
        self.left -= sum([len(name) + len(text or b'') for name, text in headers])
        self.records.append(
            Delivery(
                delivery.partition.topic_name,
                delivery.index,
                offset,
                tokens.encode(Token(delivery.key, taken.lock, offset)),
                number,
                delivery.state.status.attempts_of(offset),
                timestamp,
                key,
                value,
                headers,
                taken.until,
            )
        )


def _rows(taken: Taken, wanted: Container[int]) -> Iterator[tuple[int, int, Row | AcklogError | None]]:
    """(first, last, record) of each batch, without the record where it is not wanted, or why the rest of the batch
    cannot be had."""
    for buffer in taken.buffers:
        for span in spans(buffer):
            if is_control(span.attributes):
                continue
            try:
                for row in rows_at(buffer, span, wanted):
                    yield span.first, span.last, row
            except CorruptBatch as error:
                yield span.first, span.last, error
            except CompressionUnavailable as error:
                yield span.first, span.last, Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
