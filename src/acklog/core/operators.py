"""What operators do to the records of a share partition: redrive, discard, give up, move, replay, seek.

Strategy: each call names offsets, passes over those that are not in the place that it is about, and is one event. That
dead ones have been kept long enough is said here too: it is what an operator has configured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.acquire import Batch
from acklog.core.apply import record
from acklog.core.due_times import Dues
from acklog.core.failing import GIVEN_UP
from acklog.core.offsets import Offsets, chosen, span, within
from acklog.core.share_partition import SharePartition


def redrive(partition: SharePartition, offsets: Offsets, due: Callable[[int], Dues] | None = None) -> int:
    """Dead ones become available as new, to this group only, or wait first: `due(how many)` says until when (ms), for
    all or each in order. Returns how many."""
    state = partition.state
    redriven = chosen(offsets, state.dead)
    if redriven:
        record(state, ev.Redriven(redriven, None if due is None else due(len(redriven))))
    return len(redriven)


def expire_dead(partition: SharePartition, before: int) -> int:
    """Those that died before that instant (ms) have been kept long enough. Returns how many."""
    state = partition.state
    expired = state.history.burials.before(before) & state.dead
    if expired:
        record(state, ev.DeadExpired(expired))
    return len(expired)


def discard(partition: SharePartition, offsets: Offsets) -> int:
    """Dead ones are done. Returns how many."""
    discarded = chosen(offsets, partition.state.dead)
    if discarded:
        record(partition.state, ev.Discarded(discarded))
    return len(discarded)


def give_up(partition: SharePartition, now: int, offsets: Offsets, reason: str = GIVEN_UP) -> int:
    """Waiting and available ones die. Returns how many."""
    partition.advance(now)
    state = partition.state
    given_up = chosen(offsets, state.all_free() | state.waiting.offsets)
    if given_up:
        record(state, ev.GivenUp(now, given_up, reason, partition.config.dead_letter_topic))
    return len(given_up)


def move(partition: SharePartition, now: int, offsets: Offsets, due: int) -> int:
    """Waiting ones get another time (ms); one that has come means now. Returns how many."""
    partition.advance(now)
    moved = chosen(offsets, partition.state.waiting.offsets)
    if moved:
        record(partition.state, ev.Moved(now, moved, due))
        partition.advance(now)
    return len(moved)


def replayable(partition: SharePartition, first: int, last: int, batches: Sequence[Batch]) -> BitMap64:
    """What is done in a range and in the log (`batches`)."""
    state = partition.state
    there = BitMap64()
    for batch in batches:
        if not batch[2]:
            records = span(batch[0], batch[1])
            there |= records - batch[4] if len(batch) > 3 and batch[4] else records
    return within(there, max(first, 0), min(last, state.end - 1)) - state.owed - state.dead


def replay(partition: SharePartition, first: int, last: int, batches: Sequence[Batch]) -> int:
    """What is done in a range and in the log (`batches`) becomes available, as new. Returns how many."""
    replayed = replayable(partition, first, last, batches)
    if replayed:
        record(partition.state, ev.Replayed(replayed))
    return len(replayed)


def seek(partition: SharePartition, target: int) -> None:
    """A new epoch of the state: all before is settled, all from there on is to come (rule 10)."""
    record(partition.state, ev.Sought(partition.state.epoch + 1, target))
