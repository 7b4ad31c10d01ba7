"""A state as events that rebuild it in an empty share partition.

Strategy: one event for each set, in pieces small enough for the journal's batches. The first one (`Began`) clears
what was there, so folding a snapshot into any state gives exactly the one that was asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.counters import Counter
from acklog.core.offsets import pieces
from acklog.core.state import ShareState
from acklog.core.waiting import Dues

PIECE = 256 * 1024  # bytes of one set in one event, about


def snapshot(state: ShareState) -> Iterator[ev.Event]:
    """Events to fold, in order: the state as it is now. What costs much is done while they are read, which may be
    elsewhere, and while the state goes on."""
    told = state.told
    return chain(
        list(_sets(state)),
        _waiting([(until, state.times(until).items()) for until in ev.Until]),
        _deaths(told.burials.items()),
        _words(dict(told.words)),
    )


def _sets(state: ShareState) -> Iterator[ev.Event]:
    yield ev.Began(state.epoch, state.end, state.lock_number, state.clock)
    if state.lost or state.expired:
        yield ev.KeptTotals(state.lost, state.expired)
    for (number, kind), offsets in state.answered.items():
        yield ev.Answered(number, kind, offsets.copy())
    for piece in pieces(state.all_free(), PIECE):
        yield ev.Kept('available', piece)
    for lock in state.locks:
        for piece in pieces(lock.offsets, PIECE):
            yield ev.KeptLock(lock.number, lock.member, lock.until, piece, lock.since)
    for (member, ack), offsets in state.pending.items():
        for piece in pieces(offsets, PIECE):
            yield ev.KeptPending(member, ack, piece)
    yield from _buried(state)
    yield from _deferred(state.deferred)
    for cause, offsets in state.told.causes.items():
        for piece in pieces(offsets, PIECE):
            yield ev.KeptCause(cause, piece)
    yield from _counts('deliveries', state.deliveries)
    yield from _counts('attempts', state.attempts)
    yield from _counts('leaves', state.leaves)


def _deferred(instants: dict[int, int]) -> Iterator[ev.Event]:
    by_instant: dict[int, list[int]] = {}
    for offset, at in instants.items():
        by_instant.setdefault(at, []).append(offset)
    for at, offsets in by_instant.items():
        yield ev.Deferred(BitMap64(offsets), at)


def _waiting(waiting: Iterable[tuple[ev.Until, Iterator[tuple[Dues, BitMap64]]]]) -> Iterator[ev.Event]:
    for until, portions in waiting:
        for due, offsets in portions:
            if not isinstance(due, int):
                yield ev.KeptWaiting(offsets, due, until)
                continue
            for piece in pieces(offsets, PIECE):
                yield ev.KeptWaiting(piece, due, until)


def _deaths(portions: Iterator[tuple[Dues, BitMap64, str]]) -> Iterator[ev.Event]:
    for at, offsets, member in portions:
        if not isinstance(at, int):
            yield ev.KeptDeaths(offsets, at, member)
            continue
        for piece in pieces(offsets, PIECE):
            yield ev.KeptDeaths(piece, at, member)


def _words(words: dict[int, str]) -> Iterator[ev.Event]:
    said: dict[str, list[int]] = {}
    for offset, text in words.items():
        said.setdefault(text, []).append(offset)
    for text, offsets in said.items():
        yield ev.Said(BitMap64(offsets), text)


def _buried(state: ShareState) -> Iterator[ev.Event]:
    for reason, offsets in state.reasons.items():
        for piece in pieces(offsets & state.dying, PIECE):
            yield ev.Kept('dying', piece, reason)
        for piece in pieces(offsets & state.dead, PIECE):
            yield ev.Kept('dead', piece, reason)


def _counts(name: ev.Count, counter: Counter) -> Iterator[ev.Event]:
    for bit, plane in counter.items():
        for piece in pieces(plane, PIECE):
            yield ev.KeptCount(name, bit, piece)
