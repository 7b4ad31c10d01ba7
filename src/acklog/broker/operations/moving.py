"""Moving a group to another place in the log, bringing settled records back, and saying when held ones come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.apis.list_offsets import first_at
from acklog.broker.eager import Pace
from acklog.broker.journal.recorded import Recorded
from acklog.broker.operations.changes import Changed, Sought, Target
from acklog.broker.operations.chosen import END, Operation
from acklog.broker.refusals import no_instant, past_end
from acklog.core import operators
from acklog.core.kinds import when
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import is_control, spans

if TYPE_CHECKING:
    from acklog.broker.catalog.catalog import Group
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.partition import Partition
    from acklog.core.acquire import Batch
    from acklog.core.share_partition import SharePartition

READ_BYTES = 4 << 20
MOST_BATCHES = 1_000_000  # looked at for one replay


class Moving(Operation):
    """Seek, replay and defer."""

    async def seek(
        self,
        caller: Caller,
        group: str,
        target: Target,
        topic: str | None = None,
        partition: int | None = None,
        dry_run: bool = False,
    ) -> list[Sought]:
        """The group goes on from another place, members or not: their locks are fenced (rule 10).

        Of a topic that is named all partitions are moved, else all that the group has taken from. An offset below the
        log's start means its start, one above its end is refused."""
        found = self._group(caller, group, 'READ')
        pace, places = Pace(), []
        for place in self._places(caller, found, topic, partition):  # all are looked at before one is moved
            await pace.keep()
            places.append((place, await _offset(place, target)))
        sought, recorded = [], Recorded(self.broker.deliveries.journal)
        for place, offset in places:
            recorded.note()
            await pace.keep()
            offset = max(offset, place.log.start)  # it may have moved
            delivery = place.deliveries.get(found.id)
            if delivery is not None:
                sought.append(_sought(delivery, offset))
                if not dry_run:
                    delivery.change(lambda state, offset=offset: operators.seek(state, offset))  # type: ignore[misc]
            else:
                sought.append(Sought(place.topic_name, place.index, offset, offset, 0, 0))
                if not dry_run:
                    await self.broker.deliveries.get(found, place.topic_id, place.index, start=offset)
        if not dry_run:
            await recorded.written()
        return sought

    def _places(self, caller: Caller, group: Group, topic: str | None, partition: int | None) -> list[Partition]:
        if topic is None:
            return [delivery.partition for delivery in self._deliveries(caller, group, None, partition)]
        known = self._topic(caller, topic, 'READ')
        indexes = range(known.partitions) if partition is None else (partition,)
        places = [self._partition(known, index) for index in indexes]
        for place in places:
            if (delivery := place.deliveries.get(group.id)) is not None:
                delivery.check()
                delivery.advance()
        return places

    async def replay(
        self, caller: Caller, group: str, topic: str, partition: int, first: int, last: int, dry_run: bool = False
    ) -> Changed:
        """Settled records of a range come again, dead ones too, as new."""
        found = self._group(caller, group, 'READ')
        place = self._partition(self._topic(caller, topic, 'READ'), partition)
        if not 0 <= first <= last < END:
            raise Refused(ErrorCode.INVALID_REQUEST, f'offsets {first} to {last} are no range')
        deliveries = self._deliveries(caller, found, topic, partition)
        if not deliveries:
            return Changed(0, dry_run)
        [delivery] = deliveries
        batches: Sequence[Batch] = await _batches(place, first, min(last, delivery.state.end - 1))
        if place.later is not None:  # what was cancelled before its time stays so
            batches = place.later.batches(found.id, batches, 0, self.broker.clock())

        def replay(state: SharePartition) -> int:
            lowest = max(first, place.log.start)  # it may have moved while the log was read
            return operators.replay(state, lowest, last, batches) + operators.redrive(state, range(lowest, last + 1))

        if dry_run:
            settled = operators.replayable(delivery.state, max(first, place.log.start), last, batches)
            dead = delivery.state.status.dead().range_cardinality(first, last + 1)
            return Changed(len(settled) + dead, dry_run)
        records = delivery.change(replay)
        await self.broker.deliveries.journal.written()
        return Changed(records)

    async def defer(
        self,
        caller: Caller,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        at_ms: int | None = None,
        deliveries: int | None = None,
        *,
        after_ms: int = 0,
    ) -> None:
        """If the current delivery of the record fails, whoever has it, it comes again no earlier than `at_ms` or,
        without that, `after_ms` from now. `deliveries`, where known, must be its number. Raises InvalidRecordState when
        nobody has it."""
        found = self._group(caller, group, 'READ')
        self._partition(self._topic(caller, topic, 'READ'), partition)
        now = self.broker.clock()
        held = self._deliveries(caller, found, topic, partition)
        if at_ms is not None and not 0 <= at_ms < END:
            raise no_instant(at_ms)
        if not held:
            raise Refused(ErrorCode.INVALID_RECORD_STATE, f'offset {offset}: held by nobody, or not in that delivery')
        at = when(at_ms, after_ms)
        assert at is not None
        held[0].change(lambda state: state.defer(now, offset, at, deliveries))
        await self.broker.deliveries.journal.written()


def _sought(delivery: ShareDelivery, offset: int) -> Sought:
    state, status, partition = delivery.state, delivery.state.status, delivery.partition
    again = max(0, state.end - offset)
    brings = again - status.owed_between(offset, state.end) if again else 0
    drops = status.owed_between(0, offset) + max(0, offset - state.end)
    return Sought(partition.topic_name, partition.index, status.start, offset, brings, drops)


async def _offset(partition: Partition, target: Target) -> int:
    """Where a target lies in a partition. Raises Refused, LogError, BatchError."""
    log = partition.log
    if target.kind == 'earliest':
        return log.start
    if target.kind == 'latest':
        return log.visible_end
    if target.kind == 'time':
        found = await first_at(log, target.value, log.visible_end)
        return log.visible_end if found.offset < 0 else found.offset
    if not 0 <= target.value <= log.visible_end:
        raise past_end(partition, target.value)
    return max(target.value, log.start)


async def _batches(partition: Partition, first: int, last: int) -> list[tuple[int, int, bool]]:
    """The batches of a range: first and last offset, and whether they hold no records for anybody. Raises LogError."""
    log = partition.log
    batches: list[tuple[int, int, bool]] = []
    position = max(first, log.start)
    while position <= last:
        if len(batches) > MOST_BATCHES:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f'that are more than {MOST_BATCHES} batches: choose a smaller range'
            )
        read = await log.read(position, READ_BYTES, up_to=last + 1)
        if not read.data:
            break
        found = spans(read.data)
        batches += [(span.first, span.last, is_control(span.attributes)) for span in found]
        position = found[-1].last + 1
    return batches
