"""How each event changes the state of a share partition: the one way in which it ever changes.

Strategy: a table from the type of an event to a function. Live calls decide and then `record` an event; recovery calls
`apply` with events from the journal. Both come here, so recovery cannot come out differently. The functions for what
happens live follow, in the order of `events.py`; those for what a snapshot says are in `snapshot.py`, beside what
makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.kinds import Return, Until
from acklog.core.offsets import above, below, within
from acklog.core.snapshot import RESTORE
from acklog.core.state import NEVER, ShareState

LOCKS_LOST = 1 << 20  # more than a power loss can have taken from the journal: their numbers are not given again
ANSWERED = 4096  # locks and kinds that are remembered for repeats


def record(state: ShareState, event: ev.Event) -> None:
    """Let it happen, and remember it for the journal."""
    state.changes += 1
    state.events.append(event)
    _APPLY[type(event)](state, event)


def apply(state: ShareState, event: ev.Event) -> None:
    """Let it happen, as the journal says that it has."""
    state.changes += 1
    _APPLY[type(event)](state, event)


# -- deliveries and what becomes of them -------------------------------------------------------------------------------


def _taken(state: ShareState, event: ev.Taken) -> None:
    state.clock = event.now
    state.come_due(event.now)
    offsets, end = event.offsets, state.end
    if event.end > end:
        state.end = event.end
        if offsets:
            state.owed |= offsets if offsets.min() >= end else within(offsets, end, event.end)
        if event.later is not None:
            later, due = event.later
            state.owed |= later
            state.wait(later, due, Until.NAMED)
    if offsets:
        if not state.free.isdisjoint(offsets):  # they are reserved, or new
            state.free -= offsets
        state.lock_number = event.lock
        state.history.deliveries.add(offsets)
        state.lock(event.lock, event.member, event.until, offsets, event.now)


def _settled(state: ShareState, event: ev.Settled) -> None:
    offsets = event.offsets
    state.from_flight(offsets)
    state.owed -= offsets
    state.history.forget(offsets)


def _skipped(state: ShareState, event: ev.Skipped) -> None:
    state.from_queue(event.offsets)
    state.owed -= event.offsets
    state.history.forget(event.offsets)


def _failed(state: ShareState, event: ev.Failed) -> None:
    state.from_flight(event.offsets)
    state.history.failed(event.offsets, event.cause)
    state.wait(event.offsets, event.due, event.until)


def _died(state: ShareState, event: ev.Died) -> None:
    state.from_flight(event.offsets)
    state.history.died(event.offsets, event.failed)
    _bury(state, event, event.member)


def _bury(state: ShareState, event: ev.Died | ev.GivenUp, member: str) -> None:
    state.history.burials.put(event.offsets, event.now or state.clock, member)
    state.history.because(event.offsets, event.reason)
    state.bury(event.offsets, event.dying)


def _said(state: ShareState, event: ev.Said) -> None:
    state.history.said(event.offsets, event.words)


def _answered(state: ShareState, event: ev.Answered) -> None:
    known = state.answered.setdefault((event.lock, event.kind), BitMap64())
    known |= event.offsets
    while len(state.answered) > ANSWERED:
        del state.answered[next(iter(state.answered))]


def _given_up(state: ShareState, event: ev.GivenUp) -> None:
    state.clock = event.now
    state.waited_too_long(event.now)  # these are in the event
    state.from_queue(event.offsets)
    _bury(state, event, '')


def _returned(state: ShareState, event: ev.Returned) -> None:
    state.from_flight(event.offsets)
    state.history.returned(event.offsets, event.why is Return.LEFT)
    state.free |= event.offsets


def _renewed(state: ShareState, event: ev.Renewed) -> None:
    state.soonest = min(state.soonest, event.until)
    state.locks.renew(event.offsets, event.until)


def _deferred(state: ShareState, event: ev.Deferred) -> None:
    state.history.deferred.update(dict.fromkeys(event.offsets, (event.at, event.until)))


def _pended(state: ShareState, event: ev.Pended) -> None:
    state.locks.release(event.offsets)
    state.pend(event.member, event.ack, event.offsets)


# -- dead ones, and what operators do ----------------------------------------------------------------------------------


def _dead_letters_written(state: ShareState, event: ev.DeadLettersWritten) -> None:
    state.dying -= event.offsets
    state.bury(event.offsets, False)


def _redriven(state: ShareState, event: ev.Redriven) -> None:
    state.unbury(event.offsets)
    state.owed |= event.offsets
    state.wait(event.offsets, event.due, Until.DELAY)  # it follows from a rate


def _discarded(state: ShareState, event: ev.Discarded) -> None:
    state.unbury(event.offsets)


def _dead_expired(state: ShareState, event: ev.DeadExpired) -> None:
    state.expired += len(event.offsets)
    state.unbury(event.offsets)


def _moved(state: ShareState, event: ev.Moved) -> None:
    state.clock = event.now
    state.from_queue(event.offsets)
    state.wait(event.offsets, event.due, Until.NAMED)


def _replayed(state: ShareState, event: ev.Replayed) -> None:
    state.as_new(event.offsets)


def _sought(state: ShareState, event: ev.Sought) -> None:
    state.epoch = event.epoch
    state.begin(event.target)


# -- the log and the server --------------------------------------------------------------------------------------------


def _log_started(state: ShareState, event: ev.LogStarted) -> None:
    owed = below(state.owed, event.offset)
    state.lost += len(owed) + max(0, event.offset - state.end)
    _gone(state, owed, below(state.dead, event.offset))
    state.end = max(state.end, event.offset)


def _cut(state: ShareState, event: ev.Cut) -> None:
    bound = event.log_end
    _gone(state, above(state.owed, bound), above(state.dead, bound))
    state.end = min(state.end, bound)
    state.generation += 1


def _gone(state: ShareState, owed: BitMap64, dead: BitMap64) -> None:
    """The log does not have them any more, wherever they are."""
    flying = owed - state.all_free() - state.waiting.offsets - state.dying
    state.from_flight(flying)
    state.from_queue(owed - flying)
    state.unbury(owed | dead)
    state.owed -= owed


def _restarted(state: ShareState, event: ev.Restarted) -> None:
    state.locks.extend_all(event.until)
    state.lock_number += LOCKS_LOST


def _clock_stepped(state: ShareState, event: ev.ClockStepped) -> None:
    state.come_due(event.now)  # by the clock as it was; live, all that was due then has been done
    if state.soonest < NEVER:  # else there are neither, as in most of ten thousand
        state.locks.shift(event.by)
        state.waiting.clock_stepped(event.by)
        state.next_deadline()
    state.history.clock_stepped(event.by)
    state.clock = event.now + event.by


_APPLY: dict[type, Callable[[ShareState, Any], None]] = {
    ev.Taken: _taken,
    ev.Settled: _settled,
    ev.Skipped: _skipped,
    ev.Failed: _failed,
    ev.Died: _died,
    ev.Said: _said,
    ev.Answered: _answered,
    ev.GivenUp: _given_up,
    ev.Returned: _returned,
    ev.Renewed: _renewed,
    ev.Deferred: _deferred,
    ev.Pended: _pended,
    ev.DeadLettersWritten: _dead_letters_written,
    ev.Redriven: _redriven,
    ev.Discarded: _discarded,
    ev.DeadExpired: _dead_expired,
    ev.Moved: _moved,
    ev.Replayed: _replayed,
    ev.Sought: _sought,
    ev.LogStarted: _log_started,
    ev.Cut: _cut,
    ev.Restarted: _restarted,
    ev.ClockStepped: _clock_stepped,
    **RESTORE,
}
