"""What a schedule means to one share partition: log -> waiting, and out of it again before anybody had the record.

Once a record that was published for later has been passed in the log it waits here, like any other. Moving or
cancelling it touches only records that this group has never been given: a record that waits because it was released is
the group's own affair.
"""

from __future__ import annotations

from array import array

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core import operators
from acklog.core.apply import record
from acklog.core.share_partition import SharePartition


def pass_over(partition: SharePartition, now: int, end: int, offsets: BitMap64, dues: array[int]) -> None:
    """Go on in the log up to `end`, all of it for later or not to be delivered: `offsets` wait until `dues` (ms, one
    each, all to come), the others are as gaps."""
    partition.advance(now)
    state = partition.state
    if end > state.end:
        later = (offsets, dues) if offsets else None
        record(state, ev.Taken(now, state.lock_number, '', 0, BitMap64(), end, later))


def untouched(partition: SharePartition, offsets: BitMap64) -> BitMap64:
    """Those of `offsets` that wait and have never been delivered."""
    waiting = offsets & partition.state.waiting.offsets
    for plane in partition.state.history.deliveries.planes:
        waiting -= plane
    return waiting


def cancel(partition: SharePartition, now: int, offsets: BitMap64) -> BitMap64:
    """Those that wait and have never been delivered are done."""
    partition.advance(now)
    chosen = untouched(partition, offsets)
    if chosen:
        record(partition.state, ev.Skipped(chosen))
    return chosen


def move(partition: SharePartition, now: int, offsets: BitMap64, due: int) -> BitMap64:
    """Those that wait and have never been delivered get another instant (ms)."""
    partition.advance(now)
    chosen = untouched(partition, offsets)
    operators.move(partition, now, chosen, due)
    return chosen
