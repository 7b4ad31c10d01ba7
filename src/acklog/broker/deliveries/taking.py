"""Taking: records for one member out of one share partition, in three steps (rule 2).

Strategy: `core` reserves offsets; the log is read, which may take time; `core` acquires of what was read what is still
to be had. Nothing is held across the read that another member could miss: a reservation is undone by whatever goes
wrong, and what the log lost, what was folded anew or paused meanwhile is simply tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from acklog.broker.deliveries.batches import Buffer, Piece, buffers, read
from acklog.broker.eager import turn
from acklog.core.acquire import Batch
from acklog.core.later import pass_over
from acklog.errors import OutOfRange
from acklog.wire.record_batch import is_control

if TYPE_CHECKING:
    from acklog.broker.deliveries.delivery import ShareDelivery


class Taken(NamedTuple):
    """Records handed to a member: whole batches, and which offsets of them are its own."""

    buffers: list[Buffer]
    size: int  # bytes
    ranges: Sequence[tuple[int, int, int]]  # (first, last, deliveries)
    records: int
    lock: int  # number of the acquire
    until: int  # ms: its deadline


async def take(delivery: ShareDelivery, member: str, count: int, max_bytes: int, *, strict: bool) -> Taken | None:
    """Acquire up to `count` records for `member`; None if there is nothing. The events are recorded, not yet written.
    Raises LogError."""
    while delivery.delivers():
        if delivery.partition.later is not None:
            await _pass_over(delivery)
        reservation = delivery.state.reserve(delivery.clock(), member, count, strict, delivery.log_end)
        delivery.decided()
        if reservation is None:
            return None
        state, end = delivery.state, delivery.state.end
        try:
            pieces = await read(delivery, reservation, max_bytes)
        except OutOfRange as error:
            state.release_reservation(reservation)
            if error.offset >= error.start:
                raise
            delivery.log_starts_at(error.start)
            continue
        except BaseException:
            state.release_reservation(reservation)
            delivery.offer()  # who came meanwhile found it reserved
            raise
        if state is not delivery.state or not delivery.delivers():
            state.release_reservation(reservation)
            continue  # folded anew meanwhile (then the reservation is of no state that counts), or paused
        now = delivery.clock()
        acquired = state.acquire(now, reservation, _for_core(delivery, pieces, now))
        delivery.decided()
        if acquired.lock is not None:
            ranges = acquired.ranges
            found = buffers(delivery, pieces, ranges)
            records = sum([last - first for first, last, _ in ranges]) + len(ranges)
            return Taken(found, sum(map(len, found)), ranges, records, acquired.lock, acquired.until)
        if state.end == end:
            return None  # somebody else was faster; otherwise only gaps were passed: go on behind them
    return None


def _for_core(delivery: ShareDelivery, pieces: list[Piece], now: int) -> Sequence[Batch]:
    """What was read, as core wants it."""
    later = delivery.partition.later
    batches = [(p.span.first, p.span.last, is_control(p.span.attributes)) for p in pieces]
    return batches if later is None else later.batches(delivery.key.group, batches, delivery.state.end, now)


async def _pass_over(delivery: ShareDelivery) -> None:
    """Where the log goes on with records that are all for later, they need not be read to wait."""
    later = delivery.partition.later
    while later is not None and delivery.delivers():
        now = delivery.clock()
        run = later.run(delivery.key.group, delivery.state.end, delivery.log_end, now)
        if run is None:
            return
        pass_over(delivery.state, now, *run)
        delivery.decided()
        await turn()
