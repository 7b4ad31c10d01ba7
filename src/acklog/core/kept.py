"""What a snapshot of a share partition says, as events: folded in order, these rebuild a state from nothing.

Strategy: one event says one place, or one thing that is remembered, of a set of offsets. `snapshot.py` makes them and
says what each does to a state; sets belong to the event, as in `events.py`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pyroaring import BitMap64

from acklog.core.due_times import Dues
from acklog.core.kinds import Ack, Cause, Until


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


KeptEvent = Began | Kept | KeptWaiting | KeptLock | KeptDeaths | KeptCause | KeptTotals | KeptPending | KeptCount
