"""What has happened to a share partition: the values that the journal keeps and recovery folds.

Strategy: an event says the outcome, never the request: which offsets went where, and until when, as absolute
instants. So folding needs no configuration and no clock. One thing is left to time: a waiting offset becomes
available when it is due, and no event says so; events that depend on it carry the `now` at which they happened.

Instants that a client named are told apart from those computed from a delay, since only the latter move along when the
owner's clock is stepped (rule 11). Sets in an event belong to the event: whoever gets one does not change it. What a
snapshot says are events too, those of `kept.py`.
`broker/journal/event_codec.py` gives them their bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from pyroaring import BitMap64

from acklog.core.due_times import Dues
from acklog.core.kept import KeptEvent
from acklog.core.kinds import Ack, Cause, Return, Until


class Taken(NamedTuple):
    """`member` acquired `offsets` (may be none) as lock number `lock` until `until`; taking from the log went up to
    `end`.

    From the former end on, what is neither in `offsets` nor in `later` was a gap. `later`: published for later, and
    when.
    """

    now: int
    lock: int
    member: str
    until: int
    offsets: BitMap64
    end: int
    later: tuple[BitMap64, Dues] | None = None


class Settled(NamedTuple):
    """Accepted, or found to be gaps: done."""

    offsets: BitMap64


class Skipped(NamedTuple):
    """Available ones that turned out to be no records for the group (aborted ones, once it reads committed): done."""

    offsets: BitMap64


class Failed(NamedTuple):
    """Their delivery failed: one more attempt, and a wait until `due` (ms, for all or each in order; None: none)."""

    offsets: BitMap64
    cause: Cause
    due: Dues | None = None
    until: Until = Until.DELAY


class Died(NamedTuple):
    """Handed back for good by `member`, or with their attempts used up (`failed`: that counts). `dying`: a dead letter
    comes first. `now` 0: before that was kept.
    """

    offsets: BitMap64
    reason: str
    dying: bool
    failed: bool
    now: int = 0
    member: str = ''


class Said(NamedTuple):
    """What their subscriber said about the delivery that has just failed."""

    offsets: BitMap64
    words: str


class Answered(NamedTuple):
    """Under that lock these were acknowledged so: to be remembered for a repeat."""

    lock: int
    kind: Ack
    offsets: BitMap64


class GivenUp(NamedTuple):
    """Available or waiting ones died: an operator gave up on them, or they had waited as long as they may."""

    now: int
    offsets: BitMap64
    reason: str
    dying: bool


class Returned(NamedTuple):
    """Available again, not failed."""

    offsets: BitMap64
    why: Return


class Renewed(NamedTuple):
    """Locked until `until`."""

    offsets: BitMap64
    until: int


class Deferred(NamedTuple):
    """If this delivery fails, the next one is not before `at` (ms); `until`: DELAY or NAMED."""

    offsets: BitMap64
    at: int
    until: Until = Until.NAMED


class Pended(NamedTuple):
    """`member` acknowledged them inside an open transaction."""

    member: str
    ack: Ack
    offsets: BitMap64


class DeadLettersWritten(NamedTuple):
    """Their dead letters stand: dying -> dead."""

    offsets: BitMap64


class Redriven(NamedTuple):
    """Dead -> available, as new; or waiting first until `due` (ms, for all or each in order)."""

    offsets: BitMap64
    due: Dues | None = None


class Discarded(NamedTuple):
    """Dead -> done."""

    offsets: BitMap64


class DeadExpired(NamedTuple):
    """Dead -> done, having been kept as long as configured."""

    offsets: BitMap64


class Moved(NamedTuple):
    """Waiting ones got another time, named by an operator."""

    now: int
    offsets: BitMap64
    due: int


class Replayed(NamedTuple):
    """Done -> available, as new."""

    offsets: BitMap64


class Sought(NamedTuple):
    """A new epoch of the state: everything below `target` is settled, all from there on is to come (rule 10)."""

    epoch: int
    target: int


class LogStarted(NamedTuple):
    """The log begins at `offset`: what was below is gone (rule 8)."""

    offset: int


class Cut(NamedTuple):
    """The log came back with this end: what was beyond it is forgotten."""

    log_end: int


class Restarted(NamedTuple):
    """After a restart every lock holds at least until `until` (rule 7)."""

    until: int


class ClockStepped(NamedTuple):
    """When it showed `now`, the owner's clock was set by `by` ms, forward or back: locks and delays move along, named
    instants do not (rule 11)."""

    now: int
    by: int


Event = (
    Taken
    | Settled
    | Skipped
    | Failed
    | Died
    | Said
    | Answered
    | GivenUp
    | Returned
    | Renewed
    | Deferred
    | Pended
    | DeadLettersWritten
    | Redriven
    | Discarded
    | DeadExpired
    | Moved
    | Replayed
    | Sought
    | LogStarted
    | Cut
    | Restarted
    | ClockStepped
    | KeptEvent
)
