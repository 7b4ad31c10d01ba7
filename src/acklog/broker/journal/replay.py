"""From the journal back to share partitions: the way that recovery and a lost write take.

A share partition whose history is all there is folded from its first event on; its later snapshots say nothing new.
One whose early history was dropped begins with a snapshot: from its MARK on events are kept aside, its CHUNKs are put
together, and when the last one is there the snapshot is folded, then what was kept aside. Events before that MARK are
in it. A STEP of the clock is an event of every share partition that there is by then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container
from dataclasses import dataclass, field

from acklog.broker.eager import turn
from acklog.broker.journal import event_codec
from acklog.broker.journal.format import Kind, ShareKey, chunk, entries, number_of
from acklog.core.events import ClockStepped
from acklog.core.share_partition import SharePartition
from acklog.errors import Failed
from acklog.log.seam import Log
from acklog.wire.record_batch import records, spans

READ_BYTES = 256 * 1024  # some milliseconds' work; then others have their turn


@dataclass(slots=True)
class _Snapshot:
    number: int
    position: int
    parts: list[bytes] = field(default_factory=list)
    later: list[bytes] = field(default_factory=list)  # EVENTS and STEPs since its mark


@dataclass(slots=True)
class Replay:
    """What the journal says. `create` makes an empty share partition; it is given the key. `only`: these, None: all."""

    create: Callable[[ShareKey], SharePartition]
    only: Container[ShareKey] | None = None
    states: dict[ShareKey, SharePartition] = field(default_factory=dict)
    bases: dict[ShareKey, int] = field(default_factory=dict)
    sizes: dict[ShareKey, int] = field(default_factory=dict)
    latest: int = 0  # newest time in the journal, ms: the clock must not show less (rule 11)
    end: int = 0  # where reading ended
    highest_lock: int = 0  # number of a lock of share partitions that have ended
    _partial: dict[ShareKey, _Snapshot] = field(default_factory=dict)

    async def run(self, log: Log, first: int | None = None) -> Replay:
        """Read the journal from `first` (default: its start) to where its end is now. Raises LogError."""
        self.end = log.end
        begin = log.start if first is None else max(first, log.start)
        async for position, timestamp, value in _values(log, begin, self.end):
            for key, kind, payload in entries(value):
                if kind is Kind.STEP:
                    self._step(payload)
                elif self.only is None or key in self.only:
                    self._entry(position, key, kind, payload)
            self.latest = max(self.latest, timestamp)
        self.bases = dict(sorted(self.bases.items(), key=lambda item: item[1]))
        return self

    def _entry(self, position: int, key: ShareKey, kind: Kind, payload: bytes) -> None:
        if kind is Kind.EVENTS:
            self._events(key, payload)
        elif kind is Kind.BEGIN:
            self.states[key] = self.create(key)
            self.bases[key] = position
            _fold(self.states[key], payload)
        elif kind is Kind.TOMBSTONE:
            if (ended := self.states.get(key)) is not None:
                self.highest_lock = max(self.highest_lock, ended.status.lock_number)
            for found in (self.states, self.bases, self.sizes, self._partial):
                found.pop(key, None)
        elif kind is Kind.MARK:
            self._partial[key] = _Snapshot(number_of(payload), position)
        else:
            self._chunk(key, payload)

    def _step(self, payload: bytes) -> None:
        [step] = event_codec.decode(payload)
        assert isinstance(step, ClockStepped)
        self.latest = step.now + step.by
        for state in self.states.values():
            state.fold(step)
        for partial in self._partial.values():
            partial.later.append(payload)

    def _events(self, key: ShareKey, payload: bytes) -> None:
        if (state := self.states.get(key)) is not None:
            _fold(state, payload)
        elif (partial := self._partial.get(key)) is not None:
            partial.later.append(payload)

    def _chunk(self, key: ShareKey, payload: bytes) -> None:
        partial = self._partial.get(key)
        if partial is None or partial.number != number_of(payload):
            return  # the rest of a snapshot that was given up or whose mark was dropped
        last, part = chunk(payload)
        partial.parts.append(part)
        if not last:
            return
        del self._partial[key]
        snapshot = b''.join(partial.parts)
        self.bases.pop(key, None)
        self.bases[key], self.sizes[key] = partial.position, len(snapshot)
        if key in self.states:
            return
        self.states[key] = self.create(key)
        for payload in (snapshot, *partial.later):
            _fold(self.states[key], payload)


def _fold(state: SharePartition, payload: bytes) -> None:
    for event in event_codec.decode(payload):
        state.fold(event)


async def _values(log: Log, offset: int, end: int) -> AsyncIterator[tuple[int, int, bytes]]:
    """(offset, timestamp, value) of each record from `offset` up to, not including, `end`."""
    while offset < end:
        if log.visible_end <= offset:
            await turn()  # what was appended in this turn is written at its end
        read = await log.read(offset, READ_BYTES, up_to=end)
        if not read.data:
            raise Failed(f'the journal is not written from offset {offset} on, up to {end}')
        for record in records(read.data):
            if record.value is not None:
                yield record.offset, record.timestamp, record.value
        offset = spans(read.data)[-1].last + 1
        await turn()
