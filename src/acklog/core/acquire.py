"""Acquiring in three steps (rule 2): reserve offsets, read them from the log, acquire what was read.

Strategy: reserving only hides available offsets from other readers; what is taken is decided in the third step, in
one go, from what is available then and was read. So whatever happens while the log is read (a seek, the log's start
moving, another reader, the limit) is looked at again, and a reservation that never ends in an acquire costs nothing
but its release.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.due_times import Dues
from acklog.core.offsets import below, lowest, ranges, span, within
from acklog.core.state import Reservation, ShareState


class LogBatch(NamedTuple):
    """A batch that was read: one of a producer's, or a part of the log without records for this group.

    A plain tuple of the first three does as well.
    """

    first: int
    last: int
    gap: bool = False  # a control batch, or an aborted one for a group that reads committed: none of it is delivered
    deliver_at: Mapping[int, int] | None = None  # by offset: not before (ms), for records published for later
    missing: BitMap64 | None = None  # offsets without a record (compacted away)


Batch = LogBatch | tuple[int, int, bool]


class Acquired(NamedTuple):
    """What an acquire gave. `ranges`: (first, last, deliveries), in order; empty: nothing, and then no lock.

    `lock` is the acquire's number, `until` the deadline (ms).
    """

    lock: int | None
    ranges: list[tuple[int, int, int]]
    until: int


class Selection:
    """What one acquire takes, while it is put together."""

    __slots__ = ('dues', 'end', 'later', 'left', 'offsets', 'skipped', 'strict')

    def __init__(self, end: int, left: int, strict: bool) -> None:
        self.end, self.strict = end, strict
        self.left = left  # how many more are wanted; below 1 no batch is begun
        self.offsets = BitMap64()
        self.skipped: BitMap64 | None = None
        self.later: list[int] = []  # published for later
        self.dues: list[int] = []  # when they fall due, in the same order

    def event(self, now: int, lock: int, member: str, until: int) -> ev.Taken:
        """What has been taken, as an event."""
        later: tuple[BitMap64, Dues] | None = None
        if self.later:
            later = BitMap64(array('Q', self.later)), array('q', self.dues)
        return ev.Taken(now, lock, member, until, self.offsets, self.end, later)


def reserve(
    state: ShareState, member: str, wanted: int, strict: bool, log_end: int, attempts_limit: int | None
) -> Reservation | None:
    """Hide up to `wanted` available offsets from other readers, and the log's tail if these are fewer."""
    if wanted <= 0:
        return None
    if state.free:
        offsets, alone = up_to_last_attempt(state, lowest(state.free, wanted), attempts_limit)
    else:
        offsets, alone = BitMap64(), False
    tail = None
    if len(offsets) < wanted and not alone and state.end < log_end:
        tail = state.end if all(other.tail is None for other in state.reservations) else None
    if not offsets and tail is None:
        return None
    if offsets:
        state.free -= offsets
    reservation = Reservation(member, wanted, strict, offsets, tail, state)
    state.reservations.append(reservation)
    return reservation


def as_reserved(state: ShareState, reservation: Reservation, batches: Sequence[Batch]) -> bool:
    """Whether just what is reserved is to be taken: all of it was read, no more is to be had there, and nothing has
    become otherwise since. Then there is nothing left to decide, which is how it mostly is."""
    offsets = reservation.offsets
    if reservation.tail is not None or reservation.changes != state.changes or len(state.reservations) != 1:
        return False
    if not offsets or not batches:
        return False
    last, after = offsets.max(), batches[0][0]
    if after > offsets.min():
        return False
    for batch in batches:
        if batch[0] != after or batch[2]:
            return False
        after = batch[1] + 1
    return after > last and (reservation.strict or not state.free.range_cardinality(last + 1, after))


def release(state: ShareState, reservation: Reservation) -> None:
    """End a reservation; what it still holds back is available again. Once more changes nothing."""
    if reservation.open:
        reservation.open = False
        state.reservations.remove(reservation)
        if reservation.offsets:
            state.free |= reservation.offsets


def up_to_last_attempt(state: ShareState, offsets: BitMap64, limit: int | None) -> tuple[BitMap64, bool]:
    """`offsets` (not empty) as far as they may go out together, and whether that stopped them.

    A record that has failed before and would go dead at its next failure goes alone (rule 13).
    """
    if limit is None or limit < 2 or not state.history.attempts:
        return offsets, False
    last = state.history.attempts.exactly(limit - 1, offsets)
    if not last:
        return offsets, False
    first, barrier = offsets.min(), last.min()
    return (within(offsets, first, first) if first == barrier else below(offsets, barrier)), True


def select(
    state: ShareState,
    reservation: Reservation,
    batches: Sequence[Batch],
    now: int,
    room: int,
    attempts_limit: int | None,
) -> Selection:
    """Decide what is taken of `batches`, of which `room` may be in flight. The reservation has been released."""
    selection = Selection(state.end, min(reservation.count, room), reservation.strict)
    if selection.left <= 0 or reservation.generation != state.generation:
        return selection
    stopped = False
    if state.free:
        taken = _from_available(state, selection, batches)
        if taken:
            selection.offsets, stopped = up_to_last_attempt(state, taken, attempts_limit)
            selection.left -= len(selection.offsets)
    if reservation.tail is not None and not stopped:
        _from_tail(selection, batches, now)
    return selection


def _from_available(state: ShareState, selection: Selection, batches: Sequence[Batch]) -> BitMap64:
    """The oldest of what is available and was read; unless strict, the batch that reaches the number wanted whole."""
    read, end = BitMap64(), state.end
    begin, until = 0, -1
    for batch in batches:  # neighbours are joined, so that a long run of small batches costs one range
        if batch[0] >= end:
            break
        if batch[2]:
            gaps = within(state.free, batch[0], batch[1])
            selection.skipped = gaps if selection.skipped is None else selection.skipped | gaps
            continue
        if batch[0] != until + 1:
            read.add_range(begin, until + 1)
            begin = batch[0]
        until = batch[1]
    read.add_range(begin, until + 1)
    read &= state.free
    if len(read) <= selection.left:
        return read
    last = read[selection.left - 1]
    if not selection.strict:
        last = next(batch[1] for batch in batches if batch[0] <= last <= batch[1])
    return within(read, read.min(), last)


def _from_tail(selection: Selection, batches: Sequence[Batch], now: int) -> None:
    """Go on in the log: whole batches, or if strict as much as is wanted, until that is reached."""
    begin = end = selection.end  # begin..end-1 is a run that is taken
    left = selection.left
    for batch in batches:
        if batch[1] < end:
            continue
        if left <= 0:
            break
        first, after = max(batch[0], end), batch[1] + 1
        if not batch[2] and len(batch) == 3:
            if first > end:
                selection.offsets.add_range(begin, end)
                begin = first
            end = min(after, first + left) if selection.strict else after
            left -= end - first
            continue
        selection.offsets.add_range(begin, end)
        if batch[2]:
            end = after
        else:
            selection.left = left
            end = _with_exceptions(selection, batch, first, now)
            left = selection.left
        begin = end
    selection.offsets.add_range(begin, end)
    selection.end, selection.left = end, left


def _with_exceptions(selection: Selection, batch: Batch, first: int, now: int) -> int:
    """Take from a batch some of whose records are missing or published for later. Returns where it was left."""
    _, last, _, deliver_at, missing = LogBatch(*batch)
    ready, end = span(first, last), last + 1
    if missing:
        ready -= missing
    due = {offset: at for offset, at in (deliver_at or {}).items() if at > now and offset in ready}
    ready -= BitMap64(due)
    if selection.strict and len(ready) >= selection.left:
        end = ready[selection.left - 1] + 1
        ready = below(ready, end)
    for offset in sorted(due):
        if offset < end:
            selection.later.append(offset)
            selection.dues.append(due[offset])
    selection.offsets |= ready
    selection.left -= len(ready)
    return end


def delivered(state: ShareState, offsets: BitMap64) -> list[tuple[int, int, int]]:
    """`offsets` as (first, last, deliveries), in order, each as long as can be."""
    classes = state.history.deliveries.classes(offsets)
    if len(classes) == 1:
        return [(first, last, classes[0][0]) for first, last in ranges(offsets)]
    return sorted((first, last, number) for number, group in classes for first, last in ranges(group))
