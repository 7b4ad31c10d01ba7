"""A log in memory with the same contract as any other, and with as much trouble as wanted.

Strategy: each call first lets other tasks run a seeded random number of times (`Trouble.delay`), so that callers meet
what a log on another machine would do to them: appends are stored in the order of the calls, but answered in any
order, and everything may change while one waits. Failures come on demand (`fail_next`) or by a rate.
`MemoryDirectory.restarted` gives what a new process would find: all that was written, or, after a power loss, what was
synced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy

from acklog.errors import Closed, LogError, OutcomeUnknown, OutOfOrderSequence, OutOfRange
from acklog.log.memory_content import Content, MemoryBatch, MemorySegment, at, learn
from acklog.log.retention import overdue, roll_due, start_due
from acklog.log.scan import stored
from acklog.log.seam import Appended, Durability, LogConfig, Overdue, Read
from acklog.log.trouble import Trouble as Trouble
from acklog.wire.record_batch import CONTROL, place, spans, stamp

DAY_MS = 24 * 3_600_000


class MemoryLog:
    """See `acklog.log.seam.Log`."""

    def __init__(self, name: str, content: Content, config: LogConfig, directory: MemoryDirectory) -> None:
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
        for segment in content.segments[at(content.segments, offset) :]:
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
            batch = MemoryBatch(found.first, found.last, found.max_timestamp, data)
            segment.batches.append(batch)
            segment.size += span.size
            segment.max_timestamp = max(segment.max_timestamp, found.max_timestamp)
            content.end = found.last + 1
            learn(content.producers, batch, now, append_time)
        for callback in self._listeners:
            asyncio.get_running_loop().call_soon(callback)
        return Appended(first, content.end - 1, append_time)

    def _roll(self) -> MemorySegment:
        segments = self._content.segments
        if segments[-1].size:
            segments.append(MemorySegment(self._content.end))
        return segments[-1]

    def _start_at(self, offset: int) -> None:
        segments = self._content.segments
        self._content.start = offset
        del segments[: at(segments, offset)]


class MemoryDirectory:
    """An `Opener` of memory logs."""

    def __init__(self, trouble: Trouble | None = None, *, epoch: int = 0) -> None:
        self.trouble = trouble or Trouble()
        self.epoch = epoch
        self._contents: dict[str, Content] = {}
        self._open: dict[str, MemoryLog] = {}

    async def open(self, name: str, config: LogConfig, *, internal: bool = False) -> MemoryLog:
        await self.trouble.pause()
        log = self._open.get(name)
        if log is None:
            content = self._contents.setdefault(name, Content())
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
