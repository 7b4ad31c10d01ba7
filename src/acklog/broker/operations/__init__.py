"""What people and members without a Kafka client may ask of groups: look, move, pause, redrive, take, sign off.

`broker.operations` has them all. Each takes its caller first, who must be allowed to; each that changes something
returns when the journal or the catalog has it. They raise Refused (an error code of Kafka's and words) and LogError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Caller
from acklog.broker.operations.values import (
    ALL,
    Ack,
    AckResult,
    Changed,
    DeadRecord,
    Delivery,
    GroupStatus,
    Holder,
    NewRecord,
    Page,
    PartitionStatus,
    RecordInGroup,
    RecordView,
    Selection,
    Sought,
    Target,
    WaitingRecord,
    Why,
)

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

__all__ = [
    'ALL',
    'Ack',
    'AckResult',
    'Changed',
    'DeadRecord',
    'Delivery',
    'GroupStatus',
    'Holder',
    'NewRecord',
    'Operations',
    'Page',
    'PartitionStatus',
    'RecordInGroup',
    'RecordView',
    'Selection',
    'Sought',
    'Target',
    'WaitingRecord',
    'Why',
]


class Operations:
    """The operations of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def status(self, caller: Caller, group: str) -> GroupStatus:
        """Where the group's records are."""
        raise NotImplementedError

    async def record(
        self, caller: Caller, topic: str, partition: int, offset: int, with_value: bool = True
    ) -> RecordView:
        """A record, and what it is to each group."""
        raise NotImplementedError

    async def why(self, caller: Caller, group: str, member: str | None = None) -> list[Why]:
        """Why the group, or the member, gets nothing: one answer for each partition."""
        raise NotImplementedError

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
        raise NotImplementedError

    async def waiting_now(
        self, caller: Caller, group: str, selection: Selection = ALL, dry_run: bool = False
    ) -> Changed:
        """They are available now."""
        raise NotImplementedError

    async def waiting_move(
        self, caller: Caller, group: str, selection: Selection, due_ms: int, dry_run: bool = False
    ) -> Changed:
        """They wait for another time."""
        raise NotImplementedError

    async def waiting_discard(
        self, caller: Caller, group: str, selection: Selection = ALL, dry_run: bool = False
    ) -> Changed:
        """They are given up: dead."""
        raise NotImplementedError

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
        raise NotImplementedError

    async def redrive(
        self,
        caller: Caller,
        group: str,
        selection: Selection = ALL,
        rate: float | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """They come again, to this group only, as new, in their order. `rate`: so many a second at most."""
        raise NotImplementedError

    async def discard(self, caller: Caller, group: str, selection: Selection = ALL, dry_run: bool = False) -> Changed:
        """Dead ones are done."""
        raise NotImplementedError

    async def seek(
        self,
        caller: Caller,
        group: str,
        target: Target,
        topic: str | None = None,
        partition: int | None = None,
        dry_run: bool = False,
    ) -> list[Sought]:
        """The group goes on from another place, members or not: their locks are fenced (rule 10)."""
        raise NotImplementedError

    async def replay(
        self, caller: Caller, group: str, topic: str, partition: int, first: int, last: int, dry_run: bool = False
    ) -> Changed:
        """Settled records of a range come again, dead ones too, as new."""
        raise NotImplementedError

    async def defer(
        self,
        caller: Caller,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        at_ms: int,
        deliveries: int | None = None,
    ) -> None:
        """If the current delivery of the record fails, whoever has it, it comes again no earlier than `at_ms`.
        `deliveries`, where known, must be its number. Refused (INVALID_RECORD_STATE) when nobody has it."""
        raise NotImplementedError

    async def pause(self, caller: Caller, group: str, reason: str = 'paused by an operator') -> None:
        """Nothing is delivered to the group until `resume`; what is held may be settled."""
        raise NotImplementedError

    async def resume(self, caller: Caller, group: str) -> bool:
        """Deliver again; False if it was not paused."""
        raise NotImplementedError

    async def acquire(
        self,
        caller: Caller,
        group: str,
        member: str,
        topics: Sequence[str],
        count: int = 1,
        max_bytes: int = 1 << 20,
        wait_ms: int = 0,
    ) -> list[Delivery]:
        """Take up to `count` records of these topics; wait for some at most `wait_ms`. The group is made if there is
        none."""
        raise NotImplementedError

    async def acknowledge(self, caller: Caller, group: str, acks: Sequence[Ack]) -> list[AckResult]:
        """Settle records by their tokens, each for itself; one that was settled before gives the same answer."""
        raise NotImplementedError

    async def publish(
        self,
        caller: Caller,
        topic: str,
        records: Sequence[NewRecord],
        acks: int = -1,
        idempotency_key: str | None = None,
    ) -> list[tuple[int, int]]:
        """Append records; (partition, offset) of each. `acks`: -1 (all) on disk, 1 written. `idempotency_key`: a
        repeat with the same one gives the answer of the first, and appends nothing."""
        raise NotImplementedError
