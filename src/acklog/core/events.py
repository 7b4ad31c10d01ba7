"""What has happened to a share partition: the values that the journal keeps and recovery folds.

Strategy: an event says the outcome, never the request: which offsets went where, and until when, as absolute
instants. So folding needs no configuration and no clock. One thing is left to time: a waiting offset becomes
available when it is due, and no event says so; events that depend on it carry the `now` at which they happened.

Instants that a client named are told apart from those computed from a delay, since only the latter move along when the
owner's clock is stepped (rule 11). Sets in an event belong to the event: whoever gets one does not change it.
`broker/journal/event_codec.py` gives them their bytes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

from pyroaring import BitMap64

from acklog.core.waiting import Dues


class Ack(IntEnum):
    """How a record is acknowledged; numbers as in Kafka's protocol (KIP-932, RENEW: KIP-1222)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Cause(IntEnum):
    """Why a delivery failed."""

    RELEASED = 0
    EXPIRED = 1  # its lock ran out
    LOST = 2  # its member was lost
    LEFT = 3  # its member left, and had done so as often as allowed


class Until(IntEnum):
    """What ends a wait."""

    DELAY = 0  # an instant computed from a delay
    NAMED = 1  # an instant that somebody named
    LIMIT = 2  # the longest that a record may wait: then it dies


class Return(IntEnum):
    """Why a record came back without having failed."""

    LEFT = 0  # its member left
    ABORTED = 1  # so was the transaction that acknowledged it


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
    """If this delivery fails, the next one is not before `at`."""

    offsets: BitMap64
    at: int


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
    """The owner's clock was set forward by `by` ms: locks and delays move along, named instants do not (rule 11)."""

    by: int


# -- a snapshot: these rebuild a state from nothing ----------------------------------------------------------------


class Began(NamedTuple):
    """Everything below `end` is done, but for what follows. `locks`: the number of acquires; `clock`: last known
    `now`.
    """

    epoch: int
    end: int
    locks: int
    clock: int


Place = Literal['available', 'dead', 'dying']


class Kept(NamedTuple):
    """These are in that place; dead and dying ones for a reason."""

    place: Place
    offsets: BitMap64
    reason: str = ''


class KeptWaiting(NamedTuple):
    """These wait."""

    offsets: BitMap64
    due: Dues
    until: Until


class KeptLock(NamedTuple):
    """These are locked."""

    lock: int
    member: str
    until: int
    offsets: BitMap64
    since: int = 0


class KeptDeaths(NamedTuple):
    """These died at one time or at one each (ms), at `member`."""

    offsets: BitMap64
    at: Dues
    member: str


class KeptCause(NamedTuple):
    """The last delivery of these failed so (those that were released are not told)."""

    cause: Cause
    offsets: BitMap64


class KeptTotals(NamedTuple):
    """How many the log lost before they were settled, and how many dead ones were kept as long as configured."""

    lost: int
    expired: int


class KeptPending(NamedTuple):
    """These were acknowledged inside an open transaction."""

    member: str
    ack: Ack
    offsets: BitMap64


Count = Literal['deliveries', 'attempts', 'leaves']


class KeptCount(NamedTuple):
    """Bit `bit` of that count is set for these."""

    counter: Count
    bit: int
    offsets: BitMap64


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
    | Began
    | Kept
    | KeptWaiting
    | KeptLock
    | KeptDeaths
    | KeptCause
    | KeptTotals
    | KeptPending
    | KeptCount
)
