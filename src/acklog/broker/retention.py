"""Retention: dropping what is old or too much, but nothing that a group is still owed, up to a limit (rule 8).

A look at every partition each `log.retention.check.interval.ms`, a few at a time so that nothing else waits for it:

- Dead records that were kept for `acklog.dead.retention.ms` are done; until then they are as good as owed.
- Whole segments past retention go, but for those that hold something owed.
- Of these go the ones past `acklog.owed.retention.ms` or `acklog.owed.retention.bytes`; the records are lost, which is
  counted, journalled and said. What waits for a time, is held or dead is no sign of a group that nobody works for: the
  limit of time counts for it from when that was over. (The limit of bytes counts for all: it is what saves the disk.)

What is near such a limit is an alarm, said once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from acklog.broker.eager import Eager
from acklog.errors import LogError

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Topic
    from acklog.broker.partition import Partition

logger = logging.getLogger('acklog.retention')

AT_A_TIME = 50
PAUSE_MS = 20
NEAR = 80  # percent of a limit


class Moving:
    """Since when nothing of a partition has moved below which offset: what is seen moving now and was so lately.

    Strategy: pairs of the lowest moving offset and when it was seen, both growing; the first says it."""

    __slots__ = ('_seen',)

    def __init__(self) -> None:
        self._seen: list[tuple[int, int]] = []

    def see(self, lowest: int | None, now: int, for_ms: int) -> int | None:
        """The lowest offset that moves now or did so in the last `for_ms`."""
        seen = self._seen
        if lowest is not None:
            while seen and seen[-1][0] >= lowest:
                seen.pop()
            seen.append((lowest, now))
        while seen and now - seen[0][1] > for_ms:
            del seen[0]
        return seen[0][0] if seen else None

    def clock_stepped(self, by: int) -> None:
        """The clock was set by so many ms."""
        self._seen = [(lowest, seen + by) for lowest, seen in self._seen]


class Retention:
    """The round over all partitions."""

    def __init__(self, broker: Broker, interval_ms: int) -> None:
        self._broker = broker
        self._interval_ms = interval_ms
        self._round: list[Partition] = []
        self._failing: set[tuple[bytes, int]] = set()
        self._moving: dict[Partition, Moving] = {}
        self.stopped = False

    def start(self) -> None:
        """What fell due or ran out while the server was down has not had its time yet."""
        for partition in self._broker.partitions.values():
            if partition.deliveries or partition.later is not None:
                self._moving_from(partition, self._broker.catalog.topics_by_id[partition.topic_id])
        self._again(self._interval_ms)

    def clock_stepped(self, by: int) -> None:
        """See `Broker.clock_stepped`."""
        for moving in self._moving.values():
            moving.clock_stepped(by)

    def _again(self, ms: int) -> None:
        self._broker.timer.at(self._broker.clock() + ms, self._look)

    def _look(self) -> None:
        if self.stopped:
            return
        if not self._round:
            partitions = self._broker.partitions
            self._round = list(partitions.values())
            here = set(self._round)
            self._moving = {partition: moving for partition, moving in self._moving.items() if partition in here}
        now, self._round = self._round[-AT_A_TIME:], self._round[:-AT_A_TIME]
        Eager(self._some(now), self._done)

    def _done(self, _: None, error: BaseException | None) -> None:
        if error is not None:  # a bug; but what is not dropped fills the disk
            logger.error('a round of retention broke off', exc_info=error)
        self._again(PAUSE_MS if self._round else self._interval_ms)

    async def _some(self, partitions: list[Partition]) -> None:
        for partition in partitions:
            await self.apply(partition)

    async def apply(self, partition: Partition) -> None:
        """Drop what may go of one partition. A failing one is reported once, and tried again the next time."""
        key = (partition.topic_id, partition.index)
        topic = self._broker.catalog.topics_by_id.get(partition.topic_id)
        if topic is None or self._broker.partitions.get(key) is not partition:
            return
        self._expire_dead(partition)
        before, owed_from = partition.log.start, partition.owed_from(self._broker.clock())
        try:
            start = await partition.log.retain(self._broker.clock(), owed_from, self._moving_from(partition, topic))
            partition.overdue = partition.log.overdue(self._broker.clock(), owed_from)
        except LogError as error:
            if key not in self._failing:
                logger.error('retention of %s-%d failed: %s', partition.topic_name, partition.index, error)
            self._failing.add(key)
            return
        self._failing.discard(key)
        if start > before:
            self._lost(partition, partition.log_started_at(start))
        self._alarm(partition, topic)

    def _expire_dead(self, partition: Partition) -> None:
        for delivery in list(partition.deliveries.values()):
            group = self._broker.group_by_id(delivery.key.group)
            keep_ms = -1 if group is None else group.integer('acklog.dead.retention.ms')
            if keep_ms >= 0:
                delivery.expire_dead(self._broker.clock() - keep_ms)

    def _moving_from(self, partition: Partition, topic: Topic) -> int | None:
        limit_ms = topic.integer('acklog.owed.retention.ms')
        if limit_ms < 0 or not (partition.deliveries or partition.later is not None):
            return None
        now = self._broker.clock()
        moving = self._moving.setdefault(partition, Moving())
        return moving.see(partition.moving_from(now), now, limit_ms)

    def _lost(self, partition: Partition, lost: dict[int, int]) -> None:
        for group_id, count in lost.items():
            group = self._broker.group_by_id(group_id)
            logger.warning(
                'group %s has lost %d records of %s-%d that it had not settled: they were past the limit of what is '
                'kept beyond retention (acklog.owed.retention.ms, acklog.owed.retention.bytes)',
                '' if group is None else group.name,
                count,
                partition.topic_name,
                partition.index,
            )

    def _alarm(self, partition: Partition, topic: Topic) -> None:
        limits = topic.integer('acklog.owed.retention.bytes'), topic.integer('acklog.owed.retention.ms')
        alarm = any(
            kept and limit >= 0 and kept * 100 >= limit * NEAR
            for kept, limit in zip(partition.overdue, limits, strict=True)
        )
        if alarm and not partition.alarm and partition.deliveries:
            owed = min(partition.deliveries.values(), key=lambda delivery: delivery.state.status.kept_from)
            group = self._broker.group_by_id(owed.key.group)
            logger.warning(
                '%s-%d keeps %d bytes beyond its retention, the oldest for %d s, because group %s has not settled '
                'offset %d; near acklog.owed.retention.bytes (%d) or acklog.owed.retention.ms (%d) such records are '
                'lost',
                partition.topic_name,
                partition.index,
                partition.overdue.bytes,
                partition.overdue.ms // 1000,
                '' if group is None else group.name,
                owed.state.status.kept_from,
                *limits,
            )
        partition.alarm = alarm
