"""Where every offset of a share partition is, and the ways from one place to another.

Strategy: every offset below `end` is in exactly one place, or done, which is not stored:

    free        available (those reserved by a reader are in its Reservation meanwhile)
    waiting     until a time
    locks       acquired
    pending     acknowledged inside an open transaction
    dying, dead

`owed` is all of these but the dead ones. Here are the places and the moves; which of them an event means is said in
`apply.py`, and nothing else calls them. What is remembered of records beside where they are is in `history`.
"""

from __future__ import annotations

from pyroaring import BitMap64

from acklog.core.due_times import Dues
from acklog.core.events import Event
from acklog.core.history import History
from acklog.core.kinds import Ack, Until
from acklog.core.locks import Locks
from acklog.core.offsets import Range, ranges
from acklog.core.waiting import Waiting

NEVER = (1 << 63) - 1


class Reservation:
    """Offsets held back for one reader between `reserve` and `acquire`: memory only, counted nowhere.

    `tail`: the offset from which the reader also reads on in the log, else None; only one open reservation has it.
    """

    __slots__ = ('changes', 'count', 'generation', 'member', 'offsets', 'open', 'strict', 'tail')

    def __init__(
        self, member: str, count: int, strict: bool, offsets: BitMap64, tail: int | None, state: ShareState
    ) -> None:
        self.member, self.count, self.strict, self.offsets, self.tail = member, count, strict, offsets, tail
        self.generation, self.changes, self.open = state.generation, state.changes, True

    @property
    def wanted(self) -> list[Range]:
        """The available offsets to read, before the tail."""
        return ranges(self.offsets)


class ShareState:
    """Offsets and times (ms) as in `events.py`. `lost`, `expired`: see `KeptTotals`."""

    __slots__ = (
        'answered',
        'changes',
        'clock',
        'dead',
        'dying',
        'end',
        'epoch',
        'events',
        'expired',
        'free',
        'generation',
        'history',
        'lock_number',
        'locks',
        'lost',
        'owed',
        'pending',
        'reservations',
        'soonest',
        'waiting',
    )

    def __init__(self, start: int = 0) -> None:
        self.epoch = self.lock_number = self.clock = self.lost = self.expired = 0
        self.generation = 0  # grows when reservations from before are void
        self.changes = 0  # grows whenever anything becomes otherwise
        self.answered: dict[tuple[int, Ack], BitMap64] = {}  # by lock number and kind, oldest first
        self.reservations: list[Reservation] = []
        self.events: list[Event] = []  # that the journal does not have yet
        self.begin(start)

    def begin(self, end: int) -> None:
        """All below `end` is done, and nothing is known of it."""
        self.end = end
        self.free, self.owed = BitMap64(), BitMap64()
        self.waiting, self.locks = Waiting(), Locks()
        self.soonest = NEVER  # no deadline is before this; it may be too early
        self.pending: dict[tuple[str, Ack], BitMap64] = {}
        self.dying, self.dead = BitMap64(), BitMap64()
        self.history = History()
        for reservation in self.reservations:
            reservation.offsets.clear()
        self.generation += 1

    # -- where offsets are ---------------------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """How many are available, reserved ones included."""
        return len(self.free) + sum(len(reservation.offsets) for reservation in self.reservations)

    @property
    def in_flight(self) -> int:
        """How many are acquired, pending or dying."""
        count = len(self.owed) - len(self.free) - len(self.waiting.offsets)
        for reservation in self.reservations:
            count -= len(reservation.offsets)
        return count

    def all_free(self) -> BitMap64:
        """The available ones, reserved ones included."""
        result = self.free.copy()
        for reservation in self.reservations:
            result |= reservation.offsets
        return result

    def acquired(self) -> BitMap64:
        """All that are locked."""
        result = BitMap64()
        for held in self.locks.held.values():
            result |= held
        return result

    # -- time ----------------------------------------------------------------------------------------------------------

    def come_due(self, now: int) -> None:
        """What waits until `now` or earlier becomes available."""
        if now < self.soonest:
            return
        due = self.waiting.pop_due(now)
        if due:
            self.free |= due
            self.changes += 1

    def waited_too_long(self, now: int) -> BitMap64:
        """Take out those that have waited as long as they may. They are in no place then: an event must follow."""
        offsets = self.waiting.pop_too_long(now)
        if offsets:
            self.changes += 1
        return offsets

    def next_deadline(self) -> int | None:
        """The earliest instant at which something falls due or a lock runs out; None if nothing will."""
        first, deadline = self.waiting.first(), self.locks.first_deadline()
        if first is None or (deadline is not None and deadline < first):
            first = deadline
        self.soonest = NEVER if first is None else first
        return first

    # -- moves ---------------------------------------------------------------------------------------------------------

    def from_flight(self, offsets: BitMap64) -> None:
        """Out of locks and open transactions."""
        if self.pending:
            for key, pending in list(self.pending.items()):
                part = pending & offsets
                offsets = offsets - part
                pending -= part
                if not pending:
                    del self.pending[key]
        self.locks.release(offsets)

    def from_queue(self, offsets: BitMap64) -> None:
        """Out of the available and the waiting ones."""
        self.free -= offsets
        for reservation in self.reservations:
            reservation.offsets -= offsets
        self.waiting.remove(offsets)

    def wait(self, offsets: BitMap64, due: Dues | None, until: Until) -> None:
        """Waiting until `due`, or available at once."""
        if due is None:
            self.free |= offsets
        else:
            self.soonest = min(self.soonest, due if isinstance(due, int) else min(due))
            self.waiting.put(offsets, due, until)

    def lock(self, number: int, member: str, until: int, offsets: BitMap64, since: int) -> None:
        """Acquired."""
        self.soonest = min(self.soonest, until)
        self.locks.add(number, member, until, offsets, since)

    def pend(self, member: str, ack: Ack, offsets: BitMap64) -> None:
        """Pending."""
        pending = self.pending.setdefault((member, ack), BitMap64())
        pending |= offsets

    def bury(self, offsets: BitMap64, dying: bool) -> None:
        """Dying, or dead."""
        if dying:
            self.dying |= offsets
        else:
            self.owed -= offsets
            self.dead |= offsets

    def unbury(self, offsets: BitMap64) -> None:
        """Neither dying nor dead, and nothing is remembered of them."""
        self.dead -= offsets
        self.dying -= offsets
        self.history.forget_death(offsets)
        self.history.forget(offsets)

    def as_new(self, offsets: BitMap64) -> None:
        """Available, from no place."""
        self.owed |= offsets
        self.free |= offsets
