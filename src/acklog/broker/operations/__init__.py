"""What people and members without a Kafka client may ask of groups: look, move, pause, redrive, take, sign off.

`broker.operations` has them all. Each takes its caller first, who must be allowed to; each that changes something
returns when the journal or the catalog has it. They raise Refused (an error code of Kafka's and words) and LogError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acklog.broker.operations.changes import (
    ALL,
    Changed,
    DeadRecord,
    Page,
    ScheduledRecord,
    Selection,
    Sought,
    Target,
    WaitingRecord,
)
from acklog.broker.operations.control import Control
from acklog.broker.operations.exchanged import Ack, AckResult, Delivery, NewRecord
from acklog.broker.operations.lists import Lists
from acklog.broker.operations.looking import Looking
from acklog.broker.operations.members import Members
from acklog.broker.operations.moving import Moving
from acklog.broker.operations.publishing import Publishing
from acklog.broker.operations.scheduled import ScheduledRecords
from acklog.broker.operations.shown import GroupStatus, Holder, PartitionStatus, RecordInGroup, RecordView, Why

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
    'ScheduledRecord',
    'Selection',
    'Sought',
    'Target',
    'WaitingRecord',
    'Why',
]


class Operations(Looking, Lists, Moving, Control, Members, Publishing, ScheduledRecords):
    """The operations of one broker."""

    def __init__(self, broker: Broker) -> None:
        Members.__init__(self, broker)
        Publishing.__init__(self, broker)
