"""Retention: dropping what is old or too much, but nothing that a group is still owed (rule 8).

A look at every partition each `log.retention.check.interval.ms`, a few at a time so that nothing else waits for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from acklog.broker.eager import Eager
from acklog.errors import LogError

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.partition import Partition

logger = logging.getLogger('acklog.retention')

AT_A_TIME = 50
PAUSE_MS = 20


class Retention:
    """The round over all partitions."""

    def __init__(self, broker: Broker, interval_ms: int) -> None:
        self._broker = broker
        self._interval_ms = interval_ms
        self._round: list[Partition] = []
        self._failing: set[tuple[bytes, int]] = set()
        self.stopped = False

    def start(self) -> None:
        self._again(self._interval_ms)

    def _again(self, ms: int) -> None:
        self._broker.timer.at(self._broker.clock() + ms, self._look)

    def _look(self) -> None:
        if self.stopped:
            return
        if not self._round:
            self._round = list(self._broker.partitions.values())
        now, self._round = self._round[-AT_A_TIME:], self._round[:-AT_A_TIME]
        Eager(self._some(now), self._done)

    def _done(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            raise error
        self._again(PAUSE_MS if self._round else self._interval_ms)

    async def _some(self, partitions: list[Partition]) -> None:
        for partition in partitions:
            await self.apply(partition)

    async def apply(self, partition: Partition) -> None:
        """Drop what may go of one partition. A failing one is reported once, and tried again the next time."""
        key = (partition.topic_id, partition.index)
        if self._broker.partitions.get(key) is not partition:
            return
        before = partition.log.start
        try:
            start = await partition.log.retain(self._broker.clock(), partition.owed_from())
        except LogError as error:
            if key not in self._failing:
                logger.error('retention of %s-%d failed: %s', partition.topic_name, partition.index, error)
            self._failing.add(key)
            return
        self._failing.discard(key)
        if start > before:
            partition.log_started_at(start)
