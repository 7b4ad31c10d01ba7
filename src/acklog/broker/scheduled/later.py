"""One partition on whose topic records may be published for later.

Strategy: the header is read before the append (a bad one refuses it), and the schedule knows each such record before
anybody can read it (`placed` of the log's append). Reading it may take turns, so one append comes after the other until
it has its place. When the topic's config has been switched, the journal says from which offset on before the next
record is appended, so that a start reads the log as it was read when it was written. Whoever takes from the log asks
here what of it is for later, or cancelled.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyroaring import BitMap64

from acklog.broker.api import Refused
from acklog.broker.eager import turn
from acklog.core.acquire import Batch, LogBatch
from acklog.core.schedule import Schedule
from acklog.core.schedule_events import Event, Looks
from acklog.errors import CorruptBatch, LogError
from acklog.log.seam import Appended, Durability
from acklog.wire import deliver_at
from acklog.wire.compression import CompressionUnavailable
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import read_header, spans

if TYPE_CHECKING:
    from acklog.broker.partition import Partition
    from acklog.broker.scheduled.scheduled import Scheduled

AT_A_TIME = 500  # records that are passed over in one go: some two milliseconds
MANY = 5_000  # records for later that are noted before others have their turn
CHECKPOINT_BYTES = 4 << 20  # of records looked into, that a start would have to look into again


class Run(NamedTuple):
    """A stretch of the log up to `end` without anything for a group now; `offsets` are for later."""

    end: int
    offsets: BitMap64
    dues: array[int]


class Later:
    """What is known of one partition."""

    __slots__ = ('_order', '_scheduled', '_unsaid', 'enabled', 'partition', 'schedule')

    def __init__(self, partition: Partition, scheduled: Scheduled) -> None:
        self.partition = partition
        self.schedule = Schedule()
        self.enabled = False  # as the topic is configured
        self._scheduled = scheduled
        self._order = asyncio.Lock()  # of appends, until they have their place: looking into them takes turns
        self._unsaid = 0  # bytes looked into since `said`

    # -- publishing ----------------------------------------------------------------------------------------------------

    async def append(
        self, batches: bytes | bytearray | memoryview, now: int, durability: Durability, *, at_once: bool = False
    ) -> Appended:
        """See `Log.append`. Raises Refused (INVALID_RECORD) for a header that names no instant, too."""
        log, schedule = self.partition.log, self.schedule
        await self._order.acquire()
        ours = True

        def placed(first: int) -> None:
            nonlocal ours
            if found is not None:
                schedule.instants.end_at(first)  # what a failed append had announced there
                deltas, dues = found
                if deltas:
                    schedule.instants.add([first + delta for delta in deltas], dues, now)
            ours = False
            self._order.release()

        found = None
        try:
            found = await self._look_into(batches, now)
            return await log.append(batches, now, durability, placed, at_once=at_once)
        except LogError:
            if found is not None:
                schedule.instants.end_at(log.end)
            raise
        finally:
            if ours:
                self._order.release()

    async def _look_into(self, batches: bytes | bytearray | memoryview, now: int) -> tuple[list[int], list[int]] | None:
        """As `instants`; None where records are not looked into."""
        while True:
            while self.enabled != self.schedule.looking:
                await self._switch()
            if not self.enabled:
                return None
            found = await instants(batches, now)
            if self.enabled:
                self._unsaid += len(batches)
                self._scheduled.looked(self, self._unsaid > CHECKPOINT_BYTES)
                return found

    async def _switch(self) -> None:
        on, schedule, log = self.enabled, self.schedule, self.partition.log
        await log.flush()  # what was appended in the other way is there now
        looks = Looks(on, log.visible_end)
        self._scheduled.record(self, [*self.said(), looks])
        await self._scheduled.written()
        schedule.fold(looks)

    async def switched(self) -> None:
        """Wait for a switch under way: what it has had written counts when it returns."""
        async with self._order:
            return

    def said(self) -> list[Event]:
        """Events: what has been seen of the log since the last time."""
        schedule, stop = self.schedule, self.partition.log.visible_end
        self._unsaid = 0
        if not schedule.looking or stop <= schedule.seen:
            return []
        first, schedule.seen = schedule.seen, stop
        return list(schedule.found(first, stop, self._scheduled.clock()))

    # -- recovery ------------------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Look into what the log has and the journal does not tell of. Raises LogError."""
        log, schedule = self.partition.log, self.schedule
        offset = max(schedule.seen, log.start)
        while schedule.looking and offset < log.visible_end:
            read = await log.read(offset, 1 << 20)
            if not read.data:
                return
            for span in spans(read.data):
                try:
                    found = await deliver_at.instants(read.data, span.position, read_header(read.data, span.position))
                except (CorruptBatch, deliver_at.BadInstant, CompressionUnavailable):
                    found = ()  # such a batch was refused; one that another version let in is delivered at once
                now = self._scheduled.clock()
                coming = [(span.first + d, due) for d, due in found if due > now and span.first + d >= schedule.seen]
                if coming:
                    schedule.instants.add([each[0] for each in coming], [each[1] for each in coming], now)
                offset = span.last + 1
            self._unsaid += len(read.data)

    # -- delivering ----------------------------------------------------------------------------------------------------

    def batches(self, group: int, batches: Sequence[Batch], end: int, now: int) -> Sequence[Batch]:
        """As core wants them: with what is for later, or cancelled, of what the group has not taken yet."""
        if not self.schedule:
            return batches
        return [
            batch if batch[1] < end or batch[2] else self._batch(group, batch[0], batch[1], max(end, batch[0]), now)
            for batch in batches
        ]

    def _batch(self, group: int, first: int, last: int, begin: int, now: int) -> Batch:
        later, missing = self.schedule.for_group(group, begin, last, now)
        return LogBatch(first, last, False, later, missing) if later or missing else (first, last, False)

    def run(self, group: int, first: int, stop: int, now: int) -> Run | None:
        """What is to be passed over at once from `first` on, below `stop`, without being read; None: nothing."""
        schedule = self.schedule
        if not schedule or first >= stop:
            return None
        later, missing = schedule.for_group(group, first, first, now)
        if not later and not missing:
            return None
        last = min(first + AT_A_TIME, stop) - 1
        later, missing = schedule.for_group(group, first, last, now)
        end = first
        while end <= last and (end in missing or later.get(end, now) > now):
            end += 1
        offsets = [offset for offset in sorted(later) if offset < end and offset not in missing]
        if end == first:
            return None
        return Run(end, BitMap64(array('Q', offsets)), array('q', [later[offset] for offset in offsets]))

    def for_all(self, offset: int) -> tuple[int | None, bool]:
        """When a record comes whose time has not come, and whether no group gets it."""
        later, missing = self.schedule.for_group(-1, offset, offset, self._scheduled.clock())
        return later.get(offset), offset in missing

    def cancelled(self, first: int, last: int, group: int = -1) -> BitMap64:
        """Those that no group gets, or not that one."""
        return self.schedule.missing(group, first, last)

    def cancelled_for(self, group: int, offset: int) -> bool:
        """Whether it was cancelled before its time for that group, or for all while that group had not had it."""
        schedule = self.schedule
        return offset in schedule.missing(group, offset, offset) and not schedule.had_before(
            group, offset, self._scheduled.clock()
        )


async def instants(batches: bytes | bytearray | memoryview, now: int) -> tuple[list[int], list[int]]:
    """Of the records of some batches that are for later: how many come before each, and when they are due (ms).

    Raises Refused."""
    deltas: list[int] = []
    dues: list[int] = []
    before = 0
    try:
        for span in spans(batches):
            header = read_header(batches, span.position)
            for number, (delta, due) in enumerate(await deliver_at.instants(batches, span.position, header), 1):
                if number % MANY == 0:
                    await turn()
                if due > now:
                    deltas.append(before + delta)
                    dues.append(due)
            before += header.last_offset_delta + 1
    except (deliver_at.BadInstant, CorruptBatch) as error:
        raise Refused(ErrorCode.INVALID_RECORD, str(error)) from None
    except CompressionUnavailable as error:
        words = f'records of a topic with acklog.deliver.at.enable are looked into: {error}'
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, words) from None
    return deltas, dues
