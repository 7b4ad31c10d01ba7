"""A log in memory with the same contract as any other, and with as much trouble as wanted.

Strategy: each call first lets other tasks run a seeded random number of times (`Trouble.delay`), so that callers meet
what a log on another machine would do to them: appends are stored in the order of the calls, but answered in any
order, and everything may change while one waits. Failures come on demand (`fail_next`) or by a rate.
`MemoryDirectory.restarted` gives what a new process would find: all that was written, or, after a power loss, what was
synced.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from acklog.errors import Closed, Failed, Full, LogError, OutcomeUnknown, OutOfOrderSequence, OutOfRange
from acklog.log.producers import Producers
from acklog.log.retention import overdue, roll_due, start_due
from acklog.log.scan import stored
from acklog.log.seam import Appended, Durability, LogConfig, Overdue, Read
from acklog.wire.record_batch import CONTROL, place, spans, stamp

DAY_MS = 24 * 3_600_000


class _Pause:
    """Lets every other task of the loop run once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass(slots=True)
class Trouble:
    """What may happen to the logs of a directory. `delay`: largest number of times that other tasks run first;
    `failure_rate`: share of appends that fail at random, with one of `failures`."""

    seed: int = 0
    delay: int = 0
    failure_rate: float = 0.0
    failures: tuple[type[LogError], ...] = (Full, Failed, OutcomeUnknown)
    on_demand: dict[str, list[type[LogError]]] = field(default_factory=dict)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def failure(self, name: str) -> type[LogError] | None:
        """How the next append to this log fails, if it does."""
        for key in (name, ''):
            waiting = self.on_demand.get(key)
            if waiting:
                return waiting.pop(0)
        if self.failure_rate and self.random.random() < self.failure_rate:
            return self.random.choice(self.failures)
        return None

    async def pause(self) -> None:
        if self.delay:
            for _ in range(self.random.randint(0, self.delay)):
                await _Pause()


class _Batch(NamedTuple):
    first: int
    last: int
    max_timestamp: int
    data: bytes


class _Segment:
    """Batches that retention drops together; see `retention.Aged`."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.size = 0
        self.max_timestamp = self.created = self.appended = -1
        self.batches: list[_Batch] = []


class _Content:
    """What would be on disk."""

    def __init__(self) -> None:
        self.segments = [_Segment(0)]
        self.start = self.end = self.synced = 0
        self.producers = Producers()
        self.synced_producers = Producers()

    def sync(self) -> None:
        """All of it is on disk."""
        self.synced = self.end
        self.synced_producers = deepcopy(self.producers)

    def cut(self) -> None:
        """Forget what was not synced."""
        self.end = max(self.synced, self.start)
        while len(self.segments) > 1 and self.segments[-1].base >= self.end:
            self.segments.pop()
        self.producers = deepcopy(self.synced_producers)
        for segment in self.segments:
            segment.batches = [each for each in segment.batches if each.first < self.end]
            segment.size = sum(len(each.data) for each in segment.batches)
            segment.max_timestamp = max((each.max_timestamp for each in segment.batches), default=-1)


class MemoryLog:
    """See `acklog.log.seam.Log`."""

    def __init__(self, name: str, content: _Content, config: LogConfig, directory: MemoryDirectory) -> None:
        self.name = name
        self._content, self._config, self._directory = content, config, directory
        self._trouble = directory.trouble
        self._pending = 0  # records
        self._writing = asyncio.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._closed = False

    @property
    def start(self) -> int:
        return self._content.start

    @property
    def end(self) -> int:
        return self._content.end + self._pending

    @property
    def visible_end(self) -> int:
        return self._content.end

    @property
    def stable_end(self) -> int:
        return self._content.end

    @property
    def epoch(self) -> int:
        return self._directory.epoch

    @property
    def size(self) -> int:
        return sum(each.size for each in self._content.segments)

    async def append(
        self,
        batches: bytes | bytearray | memoryview,
        now: int,
        durability: Durability,
        placed: Callable[[int], None] | None = None,
        *,
        at_once: bool = False,
    ) -> Appended:
        self._check_open()
        records = sum(each.last - each.first + 1 for each in spans(batches))
        self._pending += records
        try:
            async with self._writing:
                await self._trouble.pause()
                self._check_open()
                result = self._store(bytearray(batches), now, durability, placed)
        finally:
            self._pending -= records
        await self._trouble.pause()
        return result

    async def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> Read:
        await self._trouble.pause()
        self._check_open()
        content = self._content
        if not content.start <= offset <= self.end:
            raise OutOfRange(offset, content.start, content.end)
        end = content.end if up_to is None else min(up_to, content.end)
        taken: list[bytes] = []
        size = 0
        for segment in content.segments[_at(content.segments, offset) :]:
            for batch in segment.batches:
                if batch.last < offset:
                    continue
                if offset >= end or batch.first >= end or (taken and size + len(batch.data) > max_bytes):
                    return Read(b''.join(taken))
                taken.append(batch.data)
                size += len(batch.data)
        return Read(b''.join(taken))

    async def offset_at(self, timestamp: int) -> tuple[int, int] | None:
        await self._trouble.pause()
        self._check_open()
        for segment in self._content.segments:
            for batch in segment.batches:
                if batch.max_timestamp >= timestamp and batch.last >= self._content.start:
                    return batch.first, batch.max_timestamp
        return None

    async def truncate_before(self, offset: int) -> int:
        async with self._writing:
            await self._trouble.pause()
            self._check_open()
            content = self._content
            if offset > content.end:
                raise OutOfRange(offset, content.start, content.end)
            if offset > content.start:
                if offset == content.end:
                    self._roll()
                self._start_at(offset)
            return content.start

    async def retain(self, now: int, keep_from: int | None, moving_from: int | None = None) -> int:
        async with self._writing:
            await self._trouble.pause()
            self._check_open()
            content = self._content
            content.producers.expire(now, DAY_MS)
            if roll_due(content.segments[-1], self._config, now):
                self._roll()
            self._start_at(start_due(content.segments, content.start, self._config, now, keep_from, moving_from))
            return content.start

    def overdue(self, now: int, keep_from: int | None) -> Overdue:
        return overdue(self._content.segments, self._content.start, self._config, now, keep_from)

    async def flush(self) -> None:
        async with self._writing:
            await self._trouble.pause()
            self._check_open()
            self._content.sync()

    async def close(self) -> None:
        async with self._writing:
            if not self._closed:
                self._content.sync()
                self._closed = True
                self._directory.closed(self.name)

    async def delete(self) -> None:
        self._closed = True
        self._directory.deleted(self.name)
        await self._trouble.pause()

    def configure(self, config: LogConfig) -> None:
        self._config = config

    def listen(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def crash(self) -> None:
        """Nothing more happens to it; those waiting get Closed when they go on."""
        self._closed = True

    # --- storing

    def _check_open(self) -> None:
        if self._closed:
            raise Closed(f'{self.name} is closed')

    def _store(
        self, batches: bytearray, now: int, durability: Durability, placed: Callable[[int], None] | None
    ) -> Appended:
        failure = self._trouble.failure(self.name)
        if failure is not None and not (failure is OutcomeUnknown and self._trouble.random.random() < 0.5):
            raise failure(f'{self.name}: by demand')
        result = self._repeat(batches)
        if result is None:
            if placed is not None:
                placed(self._content.end)
            result = self._put(batches, now)
        if durability is Durability.SYNCED:
            self._content.sync()
        if failure is not None:
            raise failure(f'{self.name}: by demand')
        return result

    def _repeat(self, batches: bytearray) -> Appended | None:
        """Where the batches are, when they are repeats; checks the sequences of all."""
        originals = []
        found = spans(batches)
        for span in found:
            batch = stored(batches, span.position, 0)
            assert batch is not None
            if batch.producer_id >= 0 and not batch.attributes & CONTROL:
                count = span.last - span.first + 1
                original = self._content.producers.duplicate(
                    batch.producer_id, batch.producer_epoch, batch.base_sequence, count
                )
                if original is not None:
                    originals.append(original)
        if not originals:
            return None
        if len(originals) < len(found):
            raise OutOfOrderSequence(f'{self.name}: new batches beside repeated ones')
        return Appended(originals[0].first, originals[-1].last, originals[0].append_time, True)

    def _put(self, batches: bytearray, now: int) -> Appended:
        content, config = self._content, self._config
        segment = content.segments[-1]
        if segment.size and (
            segment.size + len(batches) > config.segment_bytes or now - segment.created >= config.segment_ms
        ):
            segment = self._roll()
        if not segment.size:
            segment.created = now
        segment.appended = now
        first = content.end
        append_time = now if config.log_append_time else -1
        for span in spans(batches):
            place(batches, span.position, content.end, self.epoch)
            if append_time >= 0:
                stamp(batches, span.position, now)
            found = stored(batches, span.position, 0)
            assert found is not None
            data = bytes(batches[span.position : span.position + span.size])
            batch = _Batch(found.first, found.last, found.max_timestamp, data)
            segment.batches.append(batch)
            segment.size += span.size
            segment.max_timestamp = max(segment.max_timestamp, found.max_timestamp)
            content.end = found.last + 1
            _learn(content.producers, batch, now, append_time)
        for callback in self._listeners:
            asyncio.get_running_loop().call_soon(callback)
        return Appended(first, content.end - 1, append_time)

    def _roll(self) -> _Segment:
        segments = self._content.segments
        if segments[-1].size:
            segments.append(_Segment(self._content.end))
        return segments[-1]

    def _start_at(self, offset: int) -> None:
        segments = self._content.segments
        self._content.start = offset
        del segments[: _at(segments, offset)]


class MemoryDirectory:
    """An `Opener` of memory logs."""

    def __init__(self, trouble: Trouble | None = None, *, epoch: int = 0) -> None:
        self.trouble = trouble or Trouble()
        self.epoch = epoch
        self._contents: dict[str, _Content] = {}
        self._open: dict[str, MemoryLog] = {}

    async def open(self, name: str, config: LogConfig, *, internal: bool = False) -> MemoryLog:
        await self.trouble.pause()
        log = self._open.get(name)
        if log is None:
            content = self._contents.setdefault(name, _Content())
            log = self._open[name] = MemoryLog(name, content, config, self)
        return log

    def names(self) -> Sequence[str]:
        return sorted(self._contents)

    def fail_next(self, error: type[LogError], name: str = '', count: int = 1) -> None:
        """The next `count` appends (to the log `name`, or to any) fail so; OutcomeUnknown ones may be stored."""
        self.trouble.on_demand.setdefault(name, []).extend([error] * count)

    async def close(self) -> None:
        for log in list(self._open.values()):
            await log.close()

    def restarted(self, *, power_loss: bool = False, names: Sequence[str] | None = None) -> MemoryDirectory:
        """What a new process finds after this one was killed; after a power loss what was synced. `names`: the logs
        that lost what was not synced, all by default."""
        after = MemoryDirectory(self.trouble, epoch=self.epoch + 1)
        for log in self._open.values():
            log.crash()
        for name, content in self._contents.items():
            content = after._contents[name] = deepcopy(content)
            if power_loss and (names is None or name in names):
                content.cut()
        return after

    def closed(self, name: str) -> None:
        """A log of this directory has been closed."""
        self._open.pop(name, None)

    def deleted(self, name: str) -> None:
        """A log of this directory has been deleted."""
        self._open.pop(name, None)
        self._contents.pop(name, None)


def _at(segments: Sequence[_Segment], offset: int) -> int:
    return max(bisect_right(segments, offset, key=_base) - 1, 0)


def _base(segment: _Segment) -> int:
    return segment.base


def _learn(producers: Producers, batch: _Batch, now: int, append_time: int = -1) -> None:
    found = stored(batch.data, 0, 0)
    assert found is not None
    if found.producer_id >= 0 and not found.attributes & CONTROL:
        producers.appended(
            found.producer_id, found.producer_epoch, found.base_sequence, batch.first, batch.last, now, append_time
        )
