"""The broker: catalog, partitions, share partitions and groups of one node, opened from its logs and closed to them.

It has no sockets and no clock: the server gives it an opener for logs, a clock and a timer, and calls the handlers of
`apis`. The handlers find everything through it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acklog.broker.api import Caller
from acklog.broker.catalog.catalog import Catalog, Group
from acklog.broker.catalog.topics import open_partitions
from acklog.broker.configs import Settings
from acklog.broker.dead_letters.dead_letters import DeadLetters
from acklog.broker.deliveries.deliveries import Deliveries
from acklog.broker.eager import concurrently
from acklog.broker.fetch_session import FetchSessions
from acklog.broker.groups.groups import Groups
from acklog.broker.groups.pauses import Pauses
from acklog.broker.journal.journal import Journal
from acklog.broker.operations import Operations
from acklog.broker.partition import Partition
from acklog.broker.retention import Retention
from acklog.broker.scheduled.scheduled import Scheduled
from acklog.errors import LogError
from acklog.log.seam import LogConfig, Opener

if TYPE_CHECKING:
    from acklog.broker.time import Clock, Timer

JOURNAL = '__share_state'
JOURNAL_CONFIG = LogConfig(segment_bytes=16 << 20, retention_ms=-1, segment_ms=1 << 62)


@dataclass(slots=True)
class Node:
    """What clients are told about this node. Host and port are known when the server listens."""

    id: int = 0
    host: str = '127.0.0.1'
    port: int = 9092
    cluster_id: str = ''
    directory: str = ''  # of everything durable: a whole path


class Broker:
    """Made by `Broker.open`; the attributes are for reading."""

    def __init__(
        self, opener: Opener, catalog: Catalog, journal: Journal, clock: Clock, timer: Timer, cut_ms: int
    ) -> None:
        self.opener = opener
        self.catalog = catalog
        self.settings: Settings = catalog.settings
        self.clock = clock
        self.timer = timer
        self.cut_ms = cut_ms
        directory = os.path.abspath(self.settings.text('data'))
        self.node = Node(cluster_id=catalog.cluster_id, directory=directory)
        self.partitions: dict[tuple[bytes, int], Partition] = {}
        self.scheduled = Scheduled(self)
        self.pauses = Pauses(self)
        self.dead_letters = DeadLetters(self)
        self.deliveries = Deliveries(self, journal)
        self.groups = Groups(self)
        self.fetch_sessions = FetchSessions(self.settings.integer('max.incremental.fetch.session.cache.slots'))
        self.retention = Retention(self, self.settings.integer('log.retention.check.interval.ms'))
        self.operations = Operations(self)
        self.stopping = False
        self.clock_set_by = 0  # since it was opened, all steps together, ms
        self.latest = 0  # newest time in the journal when it was opened, ms

    @classmethod
    async def open(cls, opener: Opener, settings: Settings, clock: Clock, timer: Timer, *, cut_ms: int = 0) -> Broker:
        """Recover everything from its logs. `cut_ms`: by how much the clock may show too little, as one does that shows
        whole ms; so much is added to delays, none of which may be short. Raises LogError."""
        catalog = await Catalog.open(opener, clock, settings)
        journal = Journal(await opener.open(JOURNAL, JOURNAL_CONFIG, internal=True), clock, timer)
        broker = cls(opener, catalog, journal, clock, timer, cut_ms)
        broker._configure_journal()
        settings.on_change.append(broker._configure_journal)
        await open_partitions(broker)
        await broker.scheduled.recover()
        broker.latest = await broker.deliveries.recover()
        await broker.pauses.recover()
        await broker.groups.recover()
        broker.retention.start()
        broker.dead_letters.start()
        return broker

    def _configure_journal(self) -> None:
        self.deliveries.journal.configure(
            sync_every=self.settings.text('acklog.state.sync') == 'all',
            sync_ms=self.settings.integer('acklog.state.sync.interval.ms'),
        )

    def clock_steps(self) -> None:
        """The clock is about to be set: what is due by now is done by now."""
        self.deliveries.advance()

    def clock_stepped(self, now: int, by: int) -> None:
        """The clock, which showed `now`, was set by `by` ms, forward or back, and what the timer was asked for moved
        along (rule 11). So does all that follows from a duration; an instant that somebody named is what it was.
        Comes after `clock_steps`, in one step with it."""
        self.clock_set_by += by
        self.deliveries.clock_stepped(now, by)
        self.groups.clock_stepped(by)
        self.retention.clock_stepped(by)

    def stop_waits(self) -> None:
        """The node stops: whoever waits for records is answered now, and nobody waits any more. That connections go is
        no failure of the members (rule 7)."""
        self.stopping = True
        self.groups.stop()
        self.deliveries.end_waits()
        for partition in self.partitions.values():
            partition.end_waits()

    async def close(self) -> None:
        """Everything to disk, cleanly; the next open reads no segment."""
        self.stop_waits()
        self.retention.stopped = True
        await self.dead_letters.close()
        with contextlib.suppress(LogError):  # what could not be written was not answered
            await self.deliveries.journal.close()
        with contextlib.suppress(LogError):  # a start looks further back then
            await self.scheduled.close()
        await concurrently([partition.close() for partition in self.partitions.values()])
        await self.catalog.close()

    # -- looking up ----------------------------------------------------------------------------------------------------

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        """The partition, if it is here. `topic_id`: 16 bytes."""
        return self.partitions.get((topic_id, index))

    def group_by_id(self, group_id: int) -> Group | None:
        """A group by its incarnation."""
        return self.catalog.groups_by_id.get(group_id)

    def authorize(self, caller: Caller, operation: str, kind: str, name: str) -> None:
        """The one place that says whether `caller` may do `operation` (READ, WRITE, CREATE, ...) on a TOPIC, GROUP or
        CLUSTER. There is no authentication yet, so everybody may do everything. Raises Refused."""

    # -- limits --------------------------------------------------------------------------------------------------------

    @property
    def fetch_max_bytes(self) -> int:
        """Bytes of records in one answer."""
        return self.settings.integer('fetch.max.bytes')

    def lock_ms(self, group_name: str) -> int:
        """How long a group's locks last."""
        name, group = 'share.record.lock.duration.ms', self.catalog.groups.get(group_name)
        return self.settings.integer(f'group.{name}') if group is None else group.integer(name)
