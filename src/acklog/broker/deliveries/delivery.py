"""A share partition at work: core's state joined to the log it reads, the journal it writes and the members that wait.

Strategy: every decision is one synchronous step of `core`; its events are recorded in the same step (`decided`), and
the caller awaits the journal before it answers. When the journal lost a write, `state` is ahead of it; the delivery is
then `fenced` until it has been folded anew, and answers with an error meanwhile. Taking, which reads the log between
two decisions, is in `taking`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from acklog.broker.deliveries.foresight import Foresight
from acklog.broker.deliveries.waiting import Waiters
from acklog.broker.journal.format import ShareKey
from acklog.core import operators
from acklog.core.acknowledge import Acknowledgement as CoreAcknowledgement
from acklog.core.kinds import LONGEST, when
from acklog.core.offsets import Offsets
from acklog.core.state import NEVER
from acklog.errors import Failed
from acklog.wire.acknowledgements import Acknowledgement

if TYPE_CHECKING:
    from acklog.broker.deliveries.excerpts import Excerpts
    from acklog.broker.journal.journal import Journal
    from acklog.broker.partition import Partition
    from acklog.broker.time import Clock, Timer
    from acklog.core.events import Event
    from acklog.core.share_partition import SharePartition

T = TypeVar('T')

MAX_WORDS = 1000  # characters of what a subscriber says about a record; more is cut off


class ShareDelivery:
    """One group's share partition of one partition."""

    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        state: SharePartition,
        journal: Journal,
        clock: Clock,
        timer: Timer,
        excerpts: Excerpts,
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = state
        self.journal = journal
        self.excerpts = excerpts
        self.clock = clock
        self.fenced = False
        self.read_committed = False
        self.paused = False  # nothing is delivered (the whole group is paused)
        self.watch: Callable[[Sequence[Event]], None] | None = None  # is told what has happened
        self.owes: Callable[[ShareDelivery], None] | None = None  # is told when dead letters are to be written
        self.oldest: tuple[int, int] | None = None  # an offset and its time (ms), when last looked at
        self.waiters = Waiters()  # polls that found nothing to take
        self.foresight = Foresight(self, excerpts, clock, timer)
        self._timer = timer
        self._armed: int | None = None
        partition.deliveries[key.group] = self

    @property
    def topic_id(self) -> bytes:
        return self.key.topic

    @property
    def index(self) -> int:
        return self.key.partition

    @property
    def log_end(self) -> int:
        """Where taking stops."""
        log = self.partition.log
        return log.stable_end if self.read_committed else log.visible_end

    # -- what members say ----------------------------------------------------------------------------------------------

    def acknowledge(self, member: str, acks: Sequence[Acknowledgement]) -> None:
        """All or, by InvalidRecordState, none (rule 3). Recorded, not yet written."""
        self.check()
        now = self.clock()
        plain = [  # a call for each would cost more than the rest
            (ack[0], ack[1], ack[2][0]) if len(ack) == 4 and ack[3] is None and len(ack[2]) == 1 else _for_core(ack)
            for ack in acks
        ]
        self.state.acknowledge(now, member, plain)
        self.decided()

    def lost(self, member: str) -> None:
        """Its connections are gone: what it held has failed (rule 6)."""
        if not self.fenced:
            self.state.lost(self.clock(), member)
            self.decided()

    def left(self, member: str) -> None:
        """It said goodbye: what it held is returned, not counted as failed (rule 6)."""
        if not self.fenced:
            self.state.left(self.clock(), member)
            self.decided()

    def unsent(self, lock: int, offsets: Offsets) -> None:
        """The answer with what acquire `lock` took never reached its member: returned likewise."""
        if not self.fenced:
            self.state.unsent(self.clock(), lock, offsets)
            self.decided()

    # -- operators and the log -----------------------------------------------------------------------------------------

    async def seek(self, target: int) -> None:
        """A new epoch of the state that begins at `target` (rule 10); written when it returns."""
        self.change(lambda state: operators.seek(state, target))
        await self.journal.written()

    def change(self, change: Callable[[SharePartition], T]) -> T:
        """Change the state, by an operator's wish. Recorded, not yet written."""
        self.check()
        self.state.advance(self.clock())
        result = change(self.state)
        self.state.advance(self.clock())
        self.decided()
        return result

    def dead_letters_written(self, offsets: Offsets) -> None:
        """Of those that are still to be dead: their dead letters stand."""
        if not self.fenced:
            self.state.dead_letters_written(offsets)
            self.decided()

    def log_starts_at(self, offset: int) -> int:
        """Records below are gone for good (rule 8). Returns how many of them the group was still to get."""
        if self.fenced:
            return 0  # when it has been folded anew it looks where the log starts
        lost = self.state.log_starts_at(offset)
        self.decided()
        return lost

    def expire_dead(self, before: int) -> int:
        """Those that died before that instant (ms) have been kept long enough. Returns how many."""
        if self.fenced:
            return 0
        expired = operators.expire_dead(self.state, before)
        self.decided()
        return expired

    def end(self) -> None:
        """The group or the topic is no more: waiters are answered, locks are fenced, the journal knows."""
        self.fenced = True
        self.journal.end(self.key)
        self.waiters.wake_all()

    def delivers(self) -> bool:
        """Not paused. Raises Failed."""
        self.check()
        return not self.paused

    def check(self) -> None:
        """Raises Failed while the state is not to be trusted."""
        if self.fenced:
            raise Failed('the state of this share partition is being read anew from its journal')

    # -- after a decision ----------------------------------------------------------------------------------------------

    def decided(self) -> None:
        """After each step of the state: journal its events, mind its next deadline, wake who can have something."""
        events = self.state.take_events()
        if events:
            self.journal.record(self.key, events)
            if self.watch is not None:
                self.watch(events)
            if self.owes is not None and self.state.status.is_burying:
                self.owes(self)
        self.arm()
        if self.waiters:
            self.offer()

    def arm(self) -> None:
        """Be called at the state's next deadline. One call at a time is asked for; a later deadline waits for it."""
        soonest = self.state.soonest
        if soonest == NEVER or (self._armed is not None and self._armed <= soonest):
            return
        deadline = self.state.next_deadline()
        if deadline is not None and (self._armed is None or deadline < self._armed):
            self._armed = deadline
            self._timer.at(deadline, self._due)

    def _due(self) -> None:
        now = self.clock()
        if self._armed is not None and self._armed <= now:
            self._armed = None
        if not self.fenced:
            self.state.advance(now)
            self.decided()

    def advance(self) -> None:
        """Do what is due, if anything is."""
        now = self.clock()
        if not self.fenced and self.state.soonest <= now:
            self.state.advance(now)
            self.decided()

    def clock_stepped(self, now: int, by: int) -> None:
        """The clock, which showed `now`, was set by `by` ms, and what the timer was asked for with it."""
        if self._armed is not None:
            self._armed += by
        if not self.fenced:
            self.state.clock_stepped(now, by)
            self.arm()  # an instant that somebody named may be sooner now
            self.offer()  # what came due while others were told
        self.foresight.clock_stepped(by)

    def offer(self) -> None:
        """Wake the next one that waits, if there is something to take."""
        if self.waiters and not self.fenced and self.something():
            self.waiters.wake_one(self)

    def something(self) -> bool:
        """There is something to take now."""
        return not self.paused and self.state.why_nothing(self.log_end) == 'something'


def _for_core(ack: Acknowledgement) -> CoreAcknowledgement:
    first, last, types, at = ack[:4]
    kinds = types[0] if len(types) == 1 else types
    if len(ack) == 4:
        if at is None:
            return first, last, kinds
        return first, last, kinds, at if 0 <= at <= LONGEST else when(at, None)  # a call for each would cost
    after, words = ack[4:]
    return first, last, kinds, when(at, after), None if words is None else words[:MAX_WORDS]
