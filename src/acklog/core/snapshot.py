"""A state as events that rebuild it in an empty share partition; and how each of these does it.

Strategy: one event for each set, in pieces small enough for the journal's batches. The first one (`Began`) clears
what was there, so folding a snapshot into any state gives exactly the one that was asked for it. What is remembered
just as it was said live (words, deferrals, answers) is in the snapshot as the same event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core import kept
from acklog.core.counters import Counter
from acklog.core.due_times import Dues
from acklog.core.kinds import Until
from acklog.core.offsets import pieces
from acklog.core.state import ShareState

PIECE = 256 * 1024  # bytes of one set in one event, about


def snapshot(state: ShareState) -> Iterator[ev.Event]:
    """Events to fold, in order: the state as it is now. What costs much is done while they are read, which may be
    elsewhere, and while the state goes on."""
    history = state.history
    return chain(
        list(_sets(state)),
        _waiting(state.waiting.items()),
        _deaths(history.burials.items()),
        _words(dict(history.words)),
    )


def _sets(state: ShareState) -> Iterator[ev.Event]:
    history = state.history
    yield kept.Began(state.epoch, state.end, state.lock_number, state.clock)
    if state.lost or state.expired:
        yield kept.KeptTotals(state.lost, state.expired)
    for (number, kind), offsets in state.answered.items():
        yield ev.Answered(number, kind, offsets.copy())
    for piece in pieces(state.all_free(), PIECE):
        yield kept.Kept('available', piece)
    for lock in state.locks:
        for piece in pieces(lock.offsets, PIECE):
            yield kept.KeptLock(lock.number, lock.member, lock.until, piece, lock.since)
    for (member, ack), offsets in state.pending.items():
        for piece in pieces(offsets, PIECE):
            yield kept.KeptPending(member, ack, piece)
    yield from _buried(state)
    yield from _deferred(history.deferred)
    for cause, offsets in history.causes.items():
        for piece in pieces(offsets, PIECE):
            yield kept.KeptCause(cause, piece)
    yield from _counts('deliveries', history.deliveries)
    yield from _counts('attempts', history.attempts)
    yield from _counts('leaves', history.leaves)


def _deferred(instants: dict[int, tuple[int, Until]]) -> Iterator[ev.Event]:
    by_instant: dict[tuple[int, Until], list[int]] = {}
    for offset, instant in instants.items():
        by_instant.setdefault(instant, []).append(offset)
    for instant, offsets in by_instant.items():
        yield ev.Deferred(BitMap64(offsets), *instant)


def _waiting(waiting: Iterable[tuple[Until, Iterator[tuple[Dues, BitMap64]]]]) -> Iterator[ev.Event]:
    for until, portions in waiting:
        for due, offsets in portions:
            if not isinstance(due, int):
                yield kept.KeptWaiting(offsets, due, until)
                continue
            for piece in pieces(offsets, PIECE):
                yield kept.KeptWaiting(piece, due, until)


def _deaths(portions: Iterator[tuple[Dues, BitMap64, str]]) -> Iterator[ev.Event]:
    for at, offsets, member in portions:
        if not isinstance(at, int):
            yield kept.KeptDeaths(offsets, at, member)
            continue
        for piece in pieces(offsets, PIECE):
            yield kept.KeptDeaths(piece, at, member)


def _words(words: dict[int, str]) -> Iterator[ev.Event]:
    said: dict[str, list[int]] = {}
    for offset, text in words.items():
        said.setdefault(text, []).append(offset)
    for text, offsets in said.items():
        yield ev.Said(BitMap64(offsets), text)


def _buried(state: ShareState) -> Iterator[ev.Event]:
    for reason, offsets in state.history.reasons.items():
        for piece in pieces(offsets & state.dying, PIECE):
            yield kept.Kept('dying', piece, reason)
        for piece in pieces(offsets & state.dead, PIECE):
            yield kept.Kept('dead', piece, reason)


def _counts(name: kept.Count, counter: Counter) -> Iterator[ev.Event]:
    for bit, plane in counter.items():
        for piece in pieces(plane, PIECE):
            yield kept.KeptCount(name, bit, piece)


# -- the other way -----------------------------------------------------------------------------------------------------


def _began(state: ShareState, event: kept.Began) -> None:
    state.begin(event.end)
    state.epoch, state.lock_number, state.clock = event.epoch, event.locks, event.clock
    state.lost = state.expired = 0
    state.answered.clear()


def _kept(state: ShareState, event: kept.Kept) -> None:
    if event.place == 'available':
        state.as_new(event.offsets)
        return
    state.owed |= event.offsets
    state.history.because(event.offsets, event.reason)
    state.bury(event.offsets, event.place == 'dying')


def _kept_waiting(state: ShareState, event: kept.KeptWaiting) -> None:
    state.owed |= event.offsets
    state.wait(event.offsets, event.due, event.until)


def _kept_lock(state: ShareState, event: kept.KeptLock) -> None:
    state.owed |= event.offsets
    state.lock(event.lock, event.member, event.until, event.offsets, event.since)


def _kept_pending(state: ShareState, event: kept.KeptPending) -> None:
    state.owed |= event.offsets
    state.pend(event.member, event.ack, event.offsets)


def _kept_deaths(state: ShareState, event: kept.KeptDeaths) -> None:
    state.history.burials.put(event.offsets, event.at, event.member)


def _kept_cause(state: ShareState, event: kept.KeptCause) -> None:
    state.history.caused(event.offsets, event.cause)


def _kept_totals(state: ShareState, event: kept.KeptTotals) -> None:
    state.lost, state.expired = event


def _kept_count(state: ShareState, event: kept.KeptCount) -> None:
    counter: Counter = getattr(state.history, event.counter)
    counter.restore(event.bit, event.offsets)


RESTORE: dict[type, Callable[[ShareState, Any], None]] = {
    kept.Began: _began,
    kept.Kept: _kept,
    kept.KeptWaiting: _kept_waiting,
    kept.KeptLock: _kept_lock,
    kept.KeptPending: _kept_pending,
    kept.KeptDeaths: _kept_deaths,
    kept.KeptCause: _kept_cause,
    kept.KeptTotals: _kept_totals,
    kept.KeptCount: _kept_count,
}
