"""Getting ready for what falls due soon, while a member waits for it.

The first excerpt of a batch costs a hundred times what the next one does: the batch is read and walked through. Where
records of many batches begin to fall due in the same moment, all of that would come when they are late already.

Strategy: when a poll goes to sleep and something falls due within `AHEAD_MS`, the batches of what does within twice
that time are got ready, some hundred kB for each turn of the loop, and nothing again before half of that has passed.
Where the first falls due later, the timer has another look then. Only what has an instant of its own counts: what has
one in common with many others is sent in whole batches.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from acklog.broker.eager import Eager, turn
from acklog.errors import LogError
from acklog.wire.record_batch import spans

if TYPE_CHECKING:
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.deliveries.excerpts import Excerpts
    from acklog.broker.time import Clock, Timer

AHEAD_MS = 250
AT_ONCE = 256 << 10  # bytes that are walked through in one turn
LOOKED_AT = 1 << 10  # bytes that a batch counts for which is ready
MOST = 48 << 20  # bytes, of one look: what is made ready is to stay until it is needed


class Foresight:
    """Of one share partition."""

    __slots__ = ('_armed', '_at_work', '_clock', '_delivery', '_excerpts', '_ready_until', '_timer')

    def __init__(self, delivery: ShareDelivery, excerpts: Excerpts, clock: Clock, timer: Timer) -> None:
        self._delivery, self._excerpts = delivery, excerpts
        self._clock, self._timer = clock, timer
        self._at_work = False
        self._ready_until = 0
        self._armed: int | None = None

    def look(self) -> None:
        """Somebody has begun to wait, or the clock was set."""
        if self._at_work or not self._delivery.state.status.waits or not self._delivery.waiters:
            return
        first = self._delivery.state.status.next_due()
        if first is None:
            return
        now = self._clock()
        if first > now + AHEAD_MS:
            self._look_at(first - AHEAD_MS)
        elif self._ready_until < now + AHEAD_MS:
            self._at_work = True
            Eager(self._prepare(now + 2 * AHEAD_MS), self._ended)

    def clock_stepped(self, by: int) -> None:
        """The clock was set by so many ms, and what the timer was asked for with it. Comes after the state's."""
        self._ready_until = 0  # what falls due soon is not what did before
        if self._armed is not None:
            self._armed += by
        self.look()

    def _look_at(self, when: int) -> None:
        """One call of the timer at a time; a later one than asked for does no harm."""
        if self._armed is None or when < self._armed:
            self._armed = when
            self._timer.at(when, self._called)

    def _called(self) -> None:
        if self._armed is not None and self._armed <= self._clock():
            self._armed = None
        self.look()

    def _ended(self, _: None, error: BaseException | None) -> None:
        self._at_work = False
        if error is not None and not isinstance(error, LogError):  # that is said when the records are to be delivered
            raise error
        if not self._ready_until:  # the clock was set meanwhile
            self.look()

    async def _prepare(self, until: int) -> None:
        delivery, excerpts = self._delivery, self._excerpts
        self._ready_until = until
        offsets = delivery.state.status.due_apart(until)
        at, left, walked = 0, MOST, 0
        while at < len(offsets) and left > 0 and not delivery.fenced:
            last = excerpts.last_of(delivery.key, offsets[at])
            size = LOOKED_AT
            if last is None:
                read = await delivery.partition.log.read(offsets[at], 1, up_to=offsets[at] + 1)
                view = memoryview(read.data)
                last = offsets[at]
                for span in spans(view):
                    excerpts.get_ready(delivery.key, span, view)
                    last, size = span.last, span.size
            at = bisect_right(offsets, last, at)
            left -= size
            walked += size
            if walked >= AT_ONCE:
                walked = 0
                await turn()
