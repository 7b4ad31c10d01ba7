"""Where the records of a group are, what a record is to each group, why a group gets nothing (rule 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap64

from acklog.broker.api import Caller, Refused
from acklog.broker.eager import RECORDS_AT_A_TIME, Pace, turn
from acklog.broker.operations.chosen import Operation
from acklog.broker.operations.shown import GroupStatus, Holder, PartitionStatus, RecordInGroup, RecordView, Why
from acklog.broker.refusals import no_member, no_record
from acklog.errors import LogError, OutOfRange
from acklog.wire.compression import CompressionUnavailable
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import Record, is_control, read_header, rows_at, spans

if TYPE_CHECKING:
    from acklog.broker.catalog.catalog import Group
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.partition import Partition

AT_ONCE = 64  # partitions that are looked at before others have their turn


class Looking(Operation):
    """Reading changes nothing but what is due."""

    async def status(self, caller: Caller, group: str) -> GroupStatus:
        """Where the group's records are."""
        found = self._group(caller, group, 'DESCRIBE')
        pause = self.broker.pauses.of(found)
        partitions = []
        for delivery in self._deliveries(caller, found):
            partitions.append(await self._partition_status(delivery))
            if len(partitions) % AT_ONCE == 0:
                await turn()
        return GroupStatus(group, None if pause is None else pause.reason, partitions)

    async def _partition_status(self, delivery: ShareDelivery) -> PartitionStatus:
        oldest = await _oldest(delivery)
        state, status, partition = delivery.state, delivery.state.status, delivery.partition
        counts, totals, log_end, owed = status.counts(), status.totals(), delivery.log_end, status.owed
        return PartitionStatus(
            topic=partition.topic_name,
            partition=partition.index,
            start=status.start,
            end=state.end,
            log_end=log_end,
            available=counts.available,
            acquired=counts.acquired,
            pending=counts.pending,
            dying=counts.dying,
            waiting=counts.waiting,
            next_due=status.next_due(),
            dead=counts.dead,
            settled=max(0, state.end - partition.log.start - owed),
            lag=owed + max(0, log_end - state.end),
            oldest_unsettled_ms=oldest,
            holders=[
                Holder(member, holder.held, holder.since or None, holder.until)
                for member, holder in sorted(status.holders().items())
            ],
            log_start=partition.log.start,
            lost=totals.lost,
            expired=totals.expired,
            overdue_bytes=partition.overdue.bytes,
            overdue_ms=partition.overdue.ms,
            alarm=partition.alarm,
            dying_reason=self.broker.dead_letters.reason(delivery),
        )

    async def record(
        self, caller: Caller, topic: str, partition: int, offset: int, with_value: bool = True
    ) -> RecordView:
        """A record, and what it is to each group. Refused (OFFSET_OUT_OF_RANGE) when the log has none there."""
        known = self._topic(caller, topic, 'READ')
        found = self._partition(known, partition)
        record = await _read(found, offset)
        groups = [
            self._in_group(group, delivery, offset)
            for delivery in list(found.deliveries.values())
            if (group := self.broker.group_by_id(delivery.key.group)) is not None and not delivery.fenced
        ]
        due, cancelled = (None, False) if found.later is None else found.later.for_all(offset)
        return RecordView(
            topic,
            partition,
            offset,
            record.timestamp,
            record.key,
            record.value if with_value else None,
            record.headers,
            sorted(groups, key=lambda each: each.group),
            due,
            cancelled,
        )

    def _in_group(self, group: Group, delivery: ShareDelivery, offset: int) -> RecordInGroup:
        delivery.check()
        delivery.advance()
        record, later = delivery.state.status.record(offset), delivery.partition.later
        over = record.state in ('done', 'not taken')  # to a share partition a cancelled one is like a gap
        cancelled = over and later is not None and later.cancelled_for(group.id, offset)
        return RecordInGroup(
            group=group.name,
            state='cancelled' if cancelled else record.state,
            attempts=record.attempts,
            deliveries=record.deliveries,
            member=record.member or None,
            lock_until_ms=record.lock_until,
            due_ms=record.due,
            reason=record.reason,
            words=record.words,
            died_ms=record.died,
            deferred_ms=record.deferred,
        )

    async def why(self, caller: Caller, group: str, member: str | None = None) -> list[Why]:
        """Why the group, or the member, gets nothing: one answer for each partition that it has taken from, or is
        assigned. Refused (UNKNOWN_MEMBER_ID) where the group has no such member: it gets nothing because of that."""
        found = self._group(caller, group, 'DESCRIBE')
        if member is not None and all(each.id != member for each in self.broker.groups.members.of(found.name)):
            raise no_member(group, member)
        assigned = self._assigned(found, member)
        elsewhere = member is not None and self._is_assigned(found, member)  # what is not assigned to it is not its
        answers, pace = [], Pace()
        for delivery in self._deliveries(caller, found):
            await pace.keep()
            place = (delivery.partition.topic_name, delivery.index)
            if elsewhere and place not in assigned:
                answers.append(Why(*place, 'not assigned', f'the partition is assigned to others, not to {member}'))
            else:
                answers.append(self._why(found, delivery))
            assigned.pop(place, None)
        answers += [
            Why(topic, index, 'nothing new', 'nothing has been taken from it yet: no member has asked')
            for topic, index in assigned
        ]
        return sorted(answers, key=lambda why: (why.topic, why.partition))

    def _assigned(self, group: Group, member: str | None) -> dict[tuple[str, int], None]:
        members = self.broker.groups.members.of(group.name)
        return {
            (topic.name, index): None
            for each in members
            if member is None or each.id == member
            for topic, indexes in each.assignment.items()
            for index in indexes
        }

    def _is_assigned(self, group: Group, member: str) -> bool:
        """It takes from what it is assigned; a member over HTTP takes from all of its topics."""
        members = self.broker.groups.members
        return any(each.id == member for each in members.of(group.name)) and not members.is_remote(group.name, member)

    def _why(self, group: Group, delivery: ShareDelivery) -> Why:
        place = (delivery.partition.topic_name, delivery.index)
        state, status, log = delivery.state, delivery.state.status, delivery.partition.log
        counts = status.counts()
        pause = self.broker.pauses.of(group)
        if pause is not None:
            return Why(*place, 'paused', pause.reason)
        reason = state.why_nothing(delivery.log_end)
        if reason in ('limit', 'held') and counts.dying == status.in_flight:
            trouble = self.broker.dead_letters.reason(delivery)
            detail = f'{_records(counts.dying)} dead when the dead letters are written'
            return Why(*place, 'dying', detail if trouble is None else f'{detail}, which cannot be done: {trouble}')
        if reason == 'limit':
            detail = f'{_records(status.in_flight)} in flight; share.partition.max.record.locks allows no more'
            return Why(*place, 'limit', detail, *_held(delivery))
        if reason == 'held':
            waiting = f', {counts.waiting} waiting' if counts.waiting else ''
            detail = f'{_records(status.in_flight)} in the hands of members{waiting}, and there is nothing else'
            return Why(*place, 'held', detail, *_held(delivery))
        if reason == 'waiting':
            return Why(*place, 'waiting', f'{_records(counts.waiting)} left, waiting', status.next_due())
        if reason == 'nothing new' and log.visible_end > delivery.log_end:
            detail = f'what follows offset {delivery.log_end} belongs to a transaction that is open'
            return Why(*place, 'isolation', detail)
        left = counts.available + delivery.log_end - state.end - len(_cancelled(group, delivery, state.end))
        if reason == 'nothing new' or left <= 0:
            number = len(_cancelled(group, delivery, log.start))
            more = f', {number} of it cancelled before its time' if number else ''
            return Why(*place, 'nothing new', f"all up to the log's end is settled{more}")
        detail = f'up to {left} {"record" if left == 1 else "records"} can be taken now'
        if not self.broker.groups.members.of(group.name):
            return Why(*place, 'no members', f'{detail}, but nobody is there to take any')
        return Why(*place, 'something', detail)


def _records(number: int) -> str:
    return '1 record is' if number == 1 else f'{number} records are'


def _cancelled(group: Group, delivery: ShareDelivery, first: int) -> BitMap64:
    later = delivery.partition.later
    return BitMap64() if later is None else later.cancelled(first, delivery.log_end - 1, group.id)


def _held(delivery: ShareDelivery) -> tuple[int | None, list[str]]:
    holders = delivery.state.status.holders()
    return min((holder.until for holder in holders.values()), default=None), sorted(holders)


async def _oldest(delivery: ShareDelivery) -> int | None:
    """The time of the oldest record that is not settled (ms): that of its batch's first. Remembered by its offset."""
    start, end = delivery.state.status.start, delivery.log_end
    if start >= end:
        return None
    if delivery.oldest is None or delivery.oldest[0] != start:
        try:
            read = await delivery.partition.log.read(start, 1, up_to=end)
        except LogError:
            return None  # what is shown of a log that cannot be read is all that is known
        if not read.data:
            return None
        delivery.oldest = (start, read_header(read.data).base_timestamp)
    return delivery.oldest[1]


async def _at(data: bytes | memoryview, offset: int) -> Record | None:
    """The record at `offset` of the batch that `data` begins with, and of others behind it."""
    for span in spans(data):
        if is_control(span.attributes):
            continue
        for number, row in enumerate(rows_at(data, span, (offset,)), 1):
            if row is not None:
                return Record(*row)
            if number % RECORDS_AT_A_TIME == 0:
                await turn()
    return None


async def _read(partition: Partition, offset: int) -> Record:
    """One record. Raises Refused, LogError, BatchError."""
    try:
        read = await partition.log.read(offset, 1) if offset >= 0 else None
    except OutOfRange:
        raise no_record(partition, offset) from None
    try:
        found = await _at(read.data, offset) if read else None
    except CompressionUnavailable as error:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
    if found is None:
        raise no_record(partition, offset)
    return found
