"""Share partitions whose last decisions got lost, because the journal could not be written, are folded anew from what
it does hold.

Strategy: all that are lost are gathered, and one reading of the journal serves them all. A disk that fails once often
fails again at once, and each time all of that would have to be read: so the time between two readings doubles from
`SHORTEST_MS` to `LONGEST_MS` as long as they fail or are followed by another loss. Until a share partition is there
again it is fenced, and answers with an error that clients try again after.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from acklog.broker.answers import report_damage
from acklog.broker.eager import Eager
from acklog.broker.groups.config import share_config
from acklog.broker.journal.format import ShareKey
from acklog.broker.journal.replay import Replay
from acklog.core.share_partition import SharePartition
from acklog.errors import LogError

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.journal.journal import Journal

logger = logging.getLogger('acklog.journal')

SHORTEST_MS, LONGEST_MS = 50, 2_000


class Refolds:
    """`forget(delivery)` is called for one whose beginning was what got lost: as if it had never been."""

    def __init__(self, broker: Broker, journal: Journal, forget: Callable[[ShareDelivery], None]) -> None:
        self._broker, self._journal, self._forget = broker, journal, forget
        self._lost: dict[ShareKey, ShareDelivery] = {}
        self._asked = False  # a reading is under way, or asked of the timer
        self._pause_ms = 0
        self._done_at = 0  # when the last reading ended, ms

    def add(self, delivery: ShareDelivery) -> None:
        """It is fenced; make it good again."""
        self._lost[delivery.key] = delivery
        if not self._asked:
            now = self._broker.clock()
            self._pause(again=now - self._done_at <= 2 * max(self._pause_ms, SHORTEST_MS))
            self._ask(now)

    def clock_stepped(self, by: int) -> None:
        """The clock was set by so many ms."""
        self._done_at += by

    def _pause(self, *, again: bool) -> None:
        self._pause_ms = min(max(2 * self._pause_ms, SHORTEST_MS), LONGEST_MS) if again else 0

    def _ask(self, now: int) -> None:
        self._asked = True
        if self._pause_ms:
            self._broker.timer.at(now + self._pause_ms, self._begin)
        else:
            asyncio.get_running_loop().call_soon(self._begin)  # when all that got lost with it is known

    def _begin(self) -> None:
        Eager(self._refold(), self._refolded)

    def _refolded(self, _: None, error: BaseException | None) -> None:
        self._asked = False
        if error is not None:
            raise error  # a bug: what goes wrong in reading is tried again
        self._done_at = now = self._broker.clock()
        if self._lost:
            self._pause(again=True)
            self._ask(now)

    async def _refold(self) -> None:
        lost, self._lost = self._lost, {}
        bases: dict[ShareKey, int] = {}
        for key, delivery in lost.items():
            base = self._journal.bases.get(key)
            if base is None:
                self._forget(delivery)
            else:
                bases[key] = base
        if not bases:
            return

        def empty(key: ShareKey) -> SharePartition:
            return SharePartition(lost[key].state.config)

        try:
            replay = await Replay(empty, bases.keys()).run(self._journal.log, min(bases.values()))
        except Exception as error:
            if isinstance(error, LogError):
                report_damage(error)
            else:  # a bug, or no memory: they must not stay fenced for ever
                logger.exception('share partitions could not be read anew from the journal')
            self._lost = {key: lost[key] for key in bases} | self._lost
            return
        for key in bases:
            self._put(lost[key], replay.states.get(key), replay.end)

    def _put(self, delivery: ShareDelivery, state: SharePartition | None, end: int) -> None:
        key, broker = delivery.key, self._broker
        group = broker.group_by_id(key.group)
        known = group is not None and broker.deliveries.find(group, key.topic, key.partition) is delivery
        if group is None or not known or state is None or key in self._lost:  # it has ended, or is lost again
            return
        state.config = share_config(group, broker.cut_ms, delivery.partition.topic_name)
        for step in self._journal.steps.since(end):
            state.fold(step)
        delivery.state = state
        delivery.fenced = False
        delivery.log_starts_at(delivery.partition.log.start)
        if state.status.is_burying:
            broker.dead_letters.owe(delivery)
