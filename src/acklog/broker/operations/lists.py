"""Waiting and dead records of a group: looked at and changed, singly, by range, or all."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from acklog.broker.api import Caller, Refused
from acklog.broker.operations.changes import ALL, Changed, DeadRecord, Page, Selection, WaitingRecord
from acklog.broker.operations.chosen import Operation, place_of
from acklog.broker.refusals import no_instant
from acklog.core import operators
from acklog.core.offsets import chosen
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.core.due_times import Dues
    from acklog.core.share_partition import SharePartition

Among = Callable[['SharePartition'], BitMap64]
Change = Callable[['SharePartition', BitMap64], object]

LATEST = 1 << 60  # ms: no instant is later


class Lists(Operation):
    """The two lists that records of a group can be in."""

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def waiting(
        self,
        caller: Caller,
        group: str,
        topic: str | None = None,
        partition: int | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Records that wait for a time (items: WaitingRecord), by topic, partition, offset."""
        found = self._group(caller, group, 'READ')
        items = []
        for delivery, offsets in self._page(
            caller, found, (topic, partition), after, limit, lambda delivery: delivery.state.status.waiting()
        ):
            name, attempts = delivery.partition.topic_name, delivery.state.status.attempts_of
            dues = delivery.state.status.dues(offsets)
            items += [
                WaitingRecord(name, delivery.index, offset, due, attempts(offset))
                for offset, due in zip(offsets, dues, strict=True)
            ]
        return _as_page(items, limit)

    async def waiting_now(
        self, caller: Caller, group: str, selection: Selection = ALL, dry_run: bool = False
    ) -> Changed:
        """They are available now."""
        now = self.broker.clock()
        return await self._change(
            caller, group, selection, dry_run, _waiting, lambda state, offsets: operators.move(state, now, offsets, now)
        )

    async def waiting_move(
        self, caller: Caller, group: str, selection: Selection, due_ms: int, dry_run: bool = False
    ) -> Changed:
        """They wait for another time; one that has come means now."""
        if not 0 <= due_ms <= LATEST:
            raise no_instant(due_ms)
        now = self.broker.clock()
        return await self._change(
            caller,
            group,
            selection,
            dry_run,
            _waiting,
            lambda state, offsets: operators.move(state, now, offsets, due_ms),
        )

    async def waiting_discard(
        self, caller: Caller, group: str, selection: Selection = ALL, dry_run: bool = False
    ) -> Changed:
        """They are given up: dead."""
        now = self.broker.clock()
        return await self._change(
            caller, group, selection, dry_run, _waiting, lambda state, offsets: operators.give_up(state, now, offsets)
        )

    # -- dead ----------------------------------------------------------------------------------------------------------

    async def dead(
        self,
        caller: Caller,
        group: str,
        topic: str | None = None,
        partition: int | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Dead records (items: DeadRecord), by topic, partition, offset."""
        found = self._group(caller, group, 'READ')
        items = []
        for delivery, offsets in self._page(
            caller, found, (topic, partition), after, limit, lambda delivery: delivery.state.status.dead()
        ):
            name = delivery.partition.topic_name
            items += [
                DeadRecord(
                    name,
                    delivery.index,
                    each.offset,
                    each.reason,
                    each.words,
                    each.died,
                    each.attempts,
                    each.member or None,
                )
                for each in delivery.state.status.deaths(offsets)
            ]
        return _as_page(items, limit)

    async def redrive(
        self,
        caller: Caller,
        group: str,
        selection: Selection = ALL,
        rate: float | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """They come again, to this group only, as new, in their order. `rate`: so many a second, over all partitions;
        those that are not due yet wait, and can be seen and changed there."""
        if rate is not None and not 0.001 <= rate <= 1_000_000:
            raise Refused(ErrorCode.INVALID_REQUEST, f'a rate is 0.001 to 1000000 records a second, not {rate}')
        now = self.broker.clock()
        number = 0

        def dues(count: int) -> Dues:
            nonlocal number
            first, number = number, number + count
            return array('q', [now + int(each * 1000 / rate) for each in range(first, number)]) if rate else now

        changed = await self._change(
            caller,
            group,
            selection,
            dry_run,
            _dead,
            lambda state, offsets: operators.redrive(state, offsets, dues if rate else None),
        )
        if not rate:
            return changed
        at_once = 1 + int(rate / 1000) if changed.records else 0
        return Changed(changed.records, dry_run, max(0, changed.records - at_once))

    async def discard(self, caller: Caller, group: str, selection: Selection = ALL, dry_run: bool = False) -> Changed:
        """Dead ones are done."""
        return await self._change(
            caller, group, selection, dry_run, _dead, lambda state, offsets: operators.discard(state, offsets)
        )

    # -- both ----------------------------------------------------------------------------------------------------------

    async def _change(
        self, caller: Caller, group: str, selection: Selection, dry_run: bool, among: Among, change: Change
    ) -> Changed:
        """Change those of the selection that are in a list: one step for each share partition, and one write."""
        found = self._group(caller, group, 'READ')
        records = 0
        for delivery, named in self._selected(caller, found, selection):
            offsets = chosen(named, among(delivery.state))
            records += len(offsets)
            if offsets and not dry_run:
                delivery.change(lambda state, offsets=offsets: change(state, offsets))  # type: ignore[misc]
        if records and not dry_run:
            await self.broker.deliveries.journal.written()
        return Changed(records, dry_run)


def _waiting(state: SharePartition) -> BitMap64:
    return state.status.waiting()


def _dead(state: SharePartition) -> BitMap64:
    return state.status.dead()


def _as_page(items: list[WaitingRecord] | list[DeadRecord], limit: int) -> Page:
    last = items[-1] if len(items) == limit else None
    return Page(items, None if last is None else place_of(last.topic, last.partition, last.offset))
