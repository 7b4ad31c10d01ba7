"""Records published for later, of all partitions: what is durable about them besides the records themselves.

Strategy: the log is the truth about what was published for later, so publishing writes nothing more. The log
`__scheduled` (bytes: `codec`) keeps what the logs cannot say: from which offset on records are looked into,
what was moved and cancelled since; and, every few seconds of publishing or megabytes, what was found so far, so that a
start looks into the rest only. Moves and cancellations are on disk before they are answered, the beginning of looking
before it counts. When it has grown well beyond what it says, all is written anew, a piece at a time, and what came
before is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from acklog.broker.eager import Eager
from acklog.broker.scheduled.codec import entries, entry
from acklog.broker.scheduled.later import Later
from acklog.core.schedule_events import Cut, Event
from acklog.errors import Damaged, LogError
from acklog.log.seam import Durability, Log, LogConfig
from acklog.wire.record_batch import build, records

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Topic
    from acklog.broker.partition import Partition

logger = logging.getLogger('acklog.scheduled')

NAME = '__scheduled'
CONFIG = LogConfig(segment_bytes=4 << 20, retention_ms=-1, segment_ms=1 << 62)
ENABLE = 'acklog.deliver.at.enable'
CHECKPOINT_MS = 5000
READ_BYTES = 1 << 20
WRITE_BYTES = 256 << 10  # of entries in one batch
SLACK_BYTES = 8 << 20  # the log may always be this large, whatever there is to say
ENTRY_BYTES = 20  # that one scheduled record needs there


class Scheduled:
    """Of one broker. `recover` comes before the first record is published or taken."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.clock = broker.clock
        self._laters: dict[tuple[bytes, int], Later] = {}
        self._log: Log | None = None
        self._entries: list[bytes] = []  # to be written, in order
        self._writing = asyncio.Lock()
        self._looked: dict[Later, None] = {}  # has more than was said of it
        self._armed = False
        self._shortening = False
        self._shortened_to = 0
        self._closed = False

    # -- partitions ----------------------------------------------------------------------------------------------------

    def configure(self, topic: Topic) -> None:
        """The topic's partitions were opened, or its config has changed."""
        enabled = topic.flag(ENABLE)
        for index in range(topic.partitions):
            partition = self._broker.partition(topic.id_bytes, index)
            if partition is not None and (enabled or partition.later is not None):
                self._later(partition).enabled = enabled

    def _later(self, partition: Partition) -> Later:
        if partition.later is None:
            partition.later = Later(partition, self)
            self._laters[partition.topic_id, partition.index] = partition.later
        return partition.later

    def forget(self, partition: Partition) -> None:
        """It was deleted."""
        later = self._laters.pop((partition.topic_id, partition.index), None)
        if later is not None:
            self._looked.pop(later, None)

    def forget_group(self, group: int) -> None:
        """The group (its incarnation) was deleted."""
        for later in self._laters.values():
            later.schedule.groups.pop(group, None)

    # -- the journal ---------------------------------------------------------------------------------------------------

    def looked(self, later: Later, much: bool) -> None:
        """Records were looked into of which the journal does not tell yet; `much`: tell it now."""
        self._looked[later] = None
        if much:
            self.record(later, later.said())
            Eager(self._write(Durability.WRITTEN), self._tried)
        elif not self._armed:
            self._armed = True
            self._broker.timer.at(self.clock() + CHECKPOINT_MS, self._checkpoint)

    def _checkpoint(self) -> None:
        self._armed = False
        if not self._closed:
            self._say_all()
            Eager(self._write(Durability.WRITTEN), self._tried)

    def _say_all(self) -> None:
        looked, self._looked = self._looked, {}
        now = self.clock()
        for later in looked:
            later.schedule.instants.expire(now)
            self.record(later, later.said())

    def _tried(self, _: None, error: BaseException | None) -> None:
        if isinstance(error, LogError):  # it stays to be written; a start looks further back meanwhile
            logger.warning('what is published for later could not be noted: %s', error)
        elif error is not None:
            raise error

    def record(self, later: Later, events: Iterable[Event]) -> None:
        """To be written, in the order of the calls."""
        key = later.partition.topic_id, later.partition.index
        self._entries.extend(entry(key, event) for event in events)

    async def written(self) -> None:
        """All that was recorded is on disk. Raises LogError; it is tried again with what comes next then."""
        await self._write(Durability.SYNCED)

    async def _write(self, durability: Durability) -> None:
        log = await self._open()
        await self._append(log, durability)
        self._tidy(log)

    async def _append(self, log: Log, durability: Durability) -> None:
        async with self._writing:
            while self._entries:
                size = count = 0
                while count < len(self._entries) and size < WRITE_BYTES:
                    size += len(self._entries[count])
                    count += 1
                now = self.clock()
                batch = build([(None, b''.join(self._entries[:count]))], timestamp=now)
                await log.append(batch, now, Durability.WRITTEN)
                del self._entries[:count]
            if durability is Durability.SYNCED:
                await log.flush()

    async def _open(self) -> Log:
        if self._log is None:
            self._log = await self._broker.opener.open(NAME, CONFIG, internal=True)
        return self._log

    def _tidy(self, log: Log) -> None:
        live = ENTRY_BYTES * sum(len(later.schedule.instants) for later in self._laters.values())
        if not self._shortening and log.size - self._shortened_to > SLACK_BYTES + live:
            self._shortening = True
            Eager(self._shorten(log), self._shortened)

    async def _shorten(self, log: Log) -> None:
        """Say all anew; then what came before is not needed."""
        begin = log.end
        for later in list(self._laters.values()):
            await later.switched()  # or what was written of it before `begin` would be neither kept nor said anew
            self.record(later, later.said())
            for event in later.schedule.snapshot(later.partition.log.start, self.clock()):
                self.record(later, [event])
                if sum(map(len, self._entries[-8:])) > WRITE_BYTES:
                    await self._write(Durability.WRITTEN)
        await self._write(Durability.SYNCED)
        await log.truncate_before(begin)
        await log.retain(self.clock(), None)

    def _shortened(self, _: None, error: BaseException | None) -> None:
        self._shortening = False
        self._shortened_to = 0 if self._log is None else self._log.size
        self._tried(None, error)

    # -- begin and end -------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Read the journal, and look into what it does not tell of yet. Raises LogError."""
        for topic in self._broker.catalog.topics.values():
            self.configure(topic)
        if NAME in self._broker.opener.names():
            await self._fold(await self._open())
        for later in self._laters.values():
            for group in later.schedule.groups.keys() - self._broker.catalog.groups_by_id.keys():
                del later.schedule.groups[group]
            later.schedule.begin_at(later.partition.log.start)
            await later.look()
            if later.schedule.seen < later.partition.log.visible_end:
                self.looked(later, False)

    async def _fold(self, log: Log) -> None:
        offset = log.start
        while offset < log.visible_end:
            read = await log.read(offset, READ_BYTES)
            if not read.data:
                raise Damaged(f'{NAME} ends at offset {offset}, not {log.visible_end}')
            for record in records(read.data):
                offset = record.offset + 1
                for key, event in entries(record.value or b''):
                    partition = self._broker.partition(*key)
                    if partition is not None:
                        self._later(partition).schedule.fold(event)
        for later in self._laters.values():
            if later.schedule.seen > later.partition.log.end:
                event = Cut(later.partition.log.end)
                later.schedule.fold(event)
                self.record(later, [event])
        # Before other records get those offsets. It is not shortened: of what has not been looked into yet nothing can
        # be said anew.
        await self._append(log, Durability.SYNCED if self._entries else Durability.WRITTEN)
        with contextlib.suppress(LogError):  # a disk that fails: what is there can be read, changes are refused
            await log.flush()  # the last process may have died before

    async def close(self) -> None:
        """All is said, so that the next start looks into nothing."""
        self._closed = True
        self._say_all()
        if self._entries or self._log is not None:
            await self.written()
        if self._log is not None:
            await self._log.close()
