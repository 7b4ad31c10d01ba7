"""The catalog's events in the log `__catalog`: written, read back, and kept short.

Format: each record's value is one event as JSON (`state`). A snapshot is a run of records

    {"kind": "snapshot", "part": 0, "parts": 3, "events": [...]}

that stands for everything before it once all its parts are there; one that is cut off by a crash counts for nothing.
After a snapshot the log is truncated before it, so it stays below twice the live state and a constant.

An append that failed half-way may turn up again at the next start. So before anything else is written a snapshot puts
down how things are, which overrules it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator

from acklog.broker.catalog.state import CatalogState, Event
from acklog.errors import Damaged, Failed, LogError, OutcomeUnknown
from acklog.log.seam import Durability, Log, LogConfig
from acklog.wire.record_batch import build, records

NAME = '__catalog'
CONFIG = LogConfig(segment_bytes=4 << 20, retention_ms=-1)
BATCH_EVENTS = 500  # events in one record batch
SLACK_BYTES = 1 << 20  # the log may always be this large, whatever the live state needs
READ_BYTES = 4 << 20


class CatalogLog:
    """Writes events to a log, one caller at a time; `state` is what they fold to."""

    def __init__(self, log: Log, state: CatalogState, clock: Callable[[], int]) -> None:
        self.state = state
        self._log, self._clock = log, clock
        self._snapshot_bytes = 0
        self._in_doubt = False  # an append failed in a way that may still come to light

    @property
    def position(self) -> tuple[int, int]:
        """The log's leader epoch and visible end."""
        return self._log.epoch, self._log.visible_end

    async def recover(self) -> None:
        """Fold what the log holds into the (empty) state."""
        parts: list[Event] = []
        offset = self._log.start
        while offset < self._log.visible_end:
            read = await self._log.read(offset, READ_BYTES)
            if not read.data:
                raise Damaged(f'the catalog ends at offset {offset}, not {self._log.visible_end}')
            for record in records(read.data):
                offset = record.offset + 1
                event = json.loads(record.value or b'')
                if event['kind'] == 'snapshot':
                    parts = self._part(parts, event)
                else:
                    parts = []
                    self.state.fold(event)

    def _part(self, parts: list[Event], event: Event) -> list[Event]:
        """The parts of a snapshot so far; the last one replaces the state."""
        if event['part'] != len(parts):
            return []
        parts = [*parts, event]
        if len(parts) < event['parts']:
            return parts
        self.state.clear()
        for part in parts:
            for one in part['events']:
                self.state.fold(one)
        return []

    async def write(self, events: list[Event], durability: Durability) -> None:
        """Write these, fold them, and shorten the log when it has grown. Raises LogError; nothing is folded then."""
        if self._in_doubt:
            await self._snapshot()
        await self._append(events, durability)
        for event in events:
            self.state.fold(event)
        if self._log.size > SLACK_BYTES + 2 * self._snapshot_bytes:
            with contextlib.suppress(LogError):  # these are written; it is tried again with the next ones
                await self._snapshot()

    async def _append(self, events: Iterable[Event], durability: Durability) -> int:
        now = self._clock()
        data = bytearray()
        for values in _batches(events):
            data += build([(None, value) for value in values], timestamp=now)
        try:
            appended = await self._log.append(data, now, durability)
        except (Failed, OutcomeUnknown):
            self._in_doubt = True
            raise
        return appended.first

    async def _snapshot(self) -> None:
        chunks = list(_chunks(self.state.events(), BATCH_EVENTS))
        parts = [
            {'kind': 'snapshot', 'part': part, 'parts': len(chunks), 'events': events}
            for part, events in enumerate(chunks)
        ]
        before = self._log.size
        first = await self._append(parts, Durability.SYNCED)
        self._in_doubt = False
        self._snapshot_bytes = self._log.size - before
        await self._log.truncate_before(first)
        await self._log.retain(self._clock(), None)

    async def close(self) -> None:
        await self._log.close()


def _chunks(events: Iterable[Event], size: int) -> Iterator[list[Event]]:
    chunk: list[Event] = []
    for event in events:
        chunk.append(event)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _batches(events: Iterable[Event]) -> Iterator[list[bytes]]:
    for chunk in _chunks(events, BATCH_EVENTS):
        yield [json.dumps(event, separators=(',', ':')).encode() for event in chunk]
