"""One partition: its log, who waits for it to grow, and the share partitions that read it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from acklog.broker.deliveries.waiting import Waiters
from acklog.errors import Closed
from acklog.log.seam import Appended, Durability, Log, Overdue

if TYPE_CHECKING:
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.scheduled.later import Later


class Partition:
    """A partition of a topic that this node owns."""

    __slots__ = (
        '_truncating',
        'alarm',
        'deliveries',
        'index',
        'later',
        'log',
        'overdue',
        'topic_id',
        'topic_name',
        'waiters',
    )

    def __init__(self, topic_name: str, topic_id: bytes, index: int, log: Log) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id  # 16 bytes
        self.index = index
        self.log = log
        self.deliveries: dict[int, ShareDelivery] = {}  # by group incarnation
        self.waiters = Waiters()  # plain fetches that wait for records
        self.later: Later | None = None  # what is published for later, where that may be
        self.overdue = Overdue()  # as retention saw it last
        self.alarm = False  # that is near its limit, or past it
        self._truncating: asyncio.Lock | None = None
        log.listen(self._grown)

    def _grown(self) -> None:
        if self.waiters:
            self.waiters.wake_all()
        for delivery in self.deliveries.values():
            if delivery.waiters:
                delivery.waiters.wake_one(delivery)

    def append(
        self, batches: bytes | bytearray | memoryview, now: int, durability: Durability, *, at_once: bool = False
    ) -> Coroutine[Any, Any, Appended]:
        """See `Log.append`. Raises Refused where the topic's config wants records looked into, and one is not right."""
        return (self.log if self.later is None else self.later).append(batches, now, durability, at_once=at_once)

    async def truncate_before(self, offset: int) -> int:
        """DeleteRecords: the log begins at `offset` (at most its visible end), whoever is owed what was below. Returns
        the start. Raises LogError."""
        if self._truncating is None:
            self._truncating = asyncio.Lock()
        async with self._truncating:
            before = self.log.start
            start = await self.log.truncate_before(offset)
            if start > before:
                self.log_started_at(start)
            return start

    async def truncated(self) -> None:
        """Wait for the truncations under way: a client that asks for the start behind one expects the new one."""
        if self._truncating is not None:
            async with self._truncating:
                return

    def owed_from(self, now: int) -> int | None:
        """The smallest offset that some group is still owed, that is dead in one, or published for later (rule 8)."""
        owed = [delivery.state.status.kept_from for delivery in self.deliveries.values()]
        return min([*owed, *self._later_from(now)], default=None)

    def moving_from(self, now: int) -> int | None:
        """The smallest offset that waits for a time, in some group or for all, is in somebody's hands, or dead."""
        moving = [
            first for delivery in self.deliveries.values() if (first := delivery.state.status.moving_from) is not None
        ]
        return min([*moving, *self._later_from(now)], default=None)

    def _later_from(self, now: int) -> list[int]:
        first = None if self.later is None else self.later.schedule.instants.first(now)
        return [] if first is None else [first]

    def log_started_at(self, offset: int) -> dict[int, int]:
        """The log begins later now: what groups were owed below that is gone. Returns how many records each group lost
        so, by its incarnation."""
        if self.later is not None:
            self.later.schedule.begin_at(offset)
        lost = {delivery.key.group: delivery.log_starts_at(offset) for delivery in list(self.deliveries.values())}
        return {group: count for group, count in lost.items() if count}

    def end_waits(self) -> None:
        """Answer everybody who waits here: the partition is closing."""
        self.waiters.wake_all()
        for delivery in self.deliveries.values():
            delivery.waiters.wake_all()

    async def close(self) -> None:
        self.end_waits()
        await self.log.close()

    async def close_deleted(self) -> None:
        """The topic is no more, and its share partitions have ended: waiters are answered, the files go."""
        self.end_waits()
        try:
            await self.log.delete()
        except Closed:
            return  # somebody else was first
