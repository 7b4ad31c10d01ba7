"""Records published for later: listed, moved, cancelled, until they are delivered; on a topic, or for one group.

Strategy: some thousands of records are one step, in which the schedule and the share partitions that have passed them
in the log change together; a million are many steps, between which others have their turn. What has been said to
somebody is on disk by then. Where a group is named, the schedule remembers it for that group (which may not have come
to these records in the log yet, or be moved back to them), and other groups see nothing of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from acklog.broker.api import Caller, Refused
from acklog.broker.eager import turn
from acklog.broker.journal.recorded import Recorded
from acklog.broker.operations.changes import Changed, Page, ScheduledRecord, Selection
from acklog.broker.operations.chosen import END, MOST_ITEMS, Operation, place, place_of
from acklog.broker.refusals import no_instant
from acklog.core import later as core
from acklog.core.instants import BLOCK
from acklog.core.schedule_events import Cancelled, Moved
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.catalog.catalog import Group
    from acklog.broker.scheduled.later import Later
    from acklog.core.share_partition import SharePartition

LATEST = 1 << 60  # ms: no instant is later

Step = Callable[['SharePartition', int, BitMap64], BitMap64]
Event = Callable[[BitMap64, int | None], Moved | Cancelled]


class ScheduledRecords(Operation):
    """What is published for later."""

    async def scheduled(
        self,
        caller: Caller,
        topic: str,
        partition: int | None = None,
        group: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Records whose instant is still to come (items: ScheduledRecord), by partition and offset; `group`: as that
        group has them."""
        if not 1 <= limit <= MOST_ITEMS:
            raise Refused(ErrorCode.INVALID_REQUEST, f'a page has 1 to {MOST_ITEMS} items, not {limit}')
        _, begin_partition, begin_offset = ('', -1, -1) if after is None else place(after)
        of, now = self._named(caller, group), self.broker.clock()
        items: list[ScheduledRecord] = []
        for later in self._laters(caller, topic, partition):
            index = later.partition.index
            if index < begin_partition or len(items) >= limit:
                continue
            first = begin_offset + 1 if index == begin_partition else 0
            found = islice(_coming(later, of, first, END, now), limit - len(items))
            items += [ScheduledRecord(topic, index, offset, due) for offset, due in found]
        last = items[-1] if len(items) == limit else None
        return Page(items, None if last is None else place_of(topic, last.partition, last.offset))

    async def scheduled_cancel(
        self, caller: Caller, selection: Selection, group: str | None = None, dry_run: bool = False
    ) -> Changed:
        """They are never delivered: to no group, later ones neither, or with `group` not to that one. The selection
        needs a topic. Those whose instant has come are left alone."""
        return await self._reschedule(caller, selection, group, dry_run, core.cancel, Cancelled)

    async def scheduled_move(
        self, caller: Caller, selection: Selection, due_ms: int, group: str | None = None, dry_run: bool = False
    ) -> Changed:
        """They are for another instant, for all groups or with `group` for that one; one that has come means now. The
        selection needs a topic. Those whose instant has come are left alone."""
        if not 0 <= due_ms <= LATEST:
            raise no_instant(due_ms)
        return await self._reschedule(
            caller,
            selection,
            group,
            dry_run,
            lambda state, now, offsets: core.move(state, now, offsets, due_ms),
            lambda offsets, of: Moved(offsets, due_ms, of),
        )

    # -- how -----------------------------------------------------------------------------------------------------------

    def _named(self, caller: Caller, group: str | None) -> Group | None:
        return None if group is None else self._group(caller, group, 'READ')

    def _laters(self, caller: Caller, topic: str, partition: int | None) -> list[Later]:
        """The partitions of a topic, or that one, as far as something may be published for later there."""
        known = self._topic(caller, topic, 'READ')
        indexes = range(known.partitions) if partition is None else (partition,)
        return [later for index in indexes if (later := self._partition(known, index).later) is not None]

    async def _reschedule(
        self, caller: Caller, selection: Selection, group: str | None, dry_run: bool, step: Step, event: Event
    ) -> Changed:
        if selection.topic is None:
            raise Refused(ErrorCode.INVALID_REQUEST, 'scheduled records without their topic')
        first, last, among = _bounds(selection)
        of, records = self._named(caller, group), 0
        recorded = Recorded(self.broker.deliveries.journal)
        for later in self._laters(caller, selection.topic, selection.partition):
            position = first
            while position <= last:
                now = self.broker.clock()
                chosen = array('Q', (each[0] for each in islice(_coming(later, of, position, last, now), BLOCK)))
                if not chosen:
                    break
                position = chosen[-1] + 1
                offsets = BitMap64(chosen) if among is None else BitMap64(chosen) & among
                records += len(offsets)
                if offsets and not dry_run:
                    self._step(later, of, offsets, now, step, event)
                recorded.note()
                await turn()
        if not dry_run:
            recorded.note()
            await self.broker.scheduled.written()
            await recorded.written()
        return Changed(records, dry_run)

    def _step(self, later: Later, of: Group | None, offsets: BitMap64, now: int, step: Step, event: Event) -> None:
        """Raises Failed, and then has changed nothing."""
        deliveries = [each for each in later.partition.deliveries.values() if of is None or each.key.group == of.id]
        for delivery in deliveries:
            delivery.check()
        theirs = [(each, offsets & _untouched(later, each.key.group, each.state, offsets, now)) for each in deliveries]
        happened = event(offsets, None if of is None else of.id)
        self.broker.scheduled.record(later, [*later.said(), happened])
        later.schedule.fold(happened)
        for delivery, mine in theirs:
            if mine:
                delivery.change(lambda state, mine=mine: step(state, now, mine))  # type: ignore[misc]


def _bounds(selection: Selection) -> tuple[int, int, BitMap64 | None]:
    """(first, last, of these). Raises Refused."""
    bounded = selection.first is not None or selection.last is not None or selection.offsets is not None
    if bounded and selection.partition is None:
        raise Refused(ErrorCode.INVALID_REQUEST, 'offsets without their partition')
    if selection.offsets is None:
        return max(selection.first or 0, 0), END if selection.last is None else min(selection.last, END), None
    if selection.first is not None or selection.last is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, 'single offsets and a range of them at the same time')
    if any(not 0 <= offset < END for offset in selection.offsets):
        raise Refused(ErrorCode.INVALID_REQUEST, 'an offset that cannot be')
    among = BitMap64(selection.offsets)
    return (among.min(), among.max(), among) if among else (1, 0, None)


def _coming(later: Later, of: Group | None, first: int, last: int, now: int) -> Iterator[tuple[int, int]]:
    """(offset, due) of what is still to come in `first..last`, in order; as a group has it."""
    schedule, last = later.schedule, min(last, later.partition.log.visible_end - 1)
    if of is None:
        yield from schedule.instants.coming(first, last, now)
        return
    delivery = later.partition.deliveries.get(of.id)
    while first <= last:
        stop = min(first + BLOCK, last + 1)
        due, missing = schedule.for_group(of.id, first, stop - 1, now)
        mine = BitMap64(array('Q', [offset for offset, at in due.items() if at > now])) - missing
        if delivery is not None:
            mine &= _untouched(later, of.id, delivery.state, mine, now)
        for offset in mine:
            yield offset, due[offset]
        first = stop


def _untouched(later: Later, group: int, state: SharePartition, offsets: BitMap64, now: int) -> BitMap64:
    """Those of `offsets` that the group has still to come to in the log, or that wait there for their instant."""
    due, missing = later.schedule.for_group(group, offsets.min(), offsets.max(), now) if offsets else ({}, BitMap64())
    mine = BitMap64(array('Q', [offset for offset, at in due.items() if at > now and offset in offsets])) - missing
    ahead = mine.copy()
    ahead.remove_range(0, state.end)
    return ahead | core.untouched(state, mine)
