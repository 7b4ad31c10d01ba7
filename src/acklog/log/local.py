"""The local log: a `Log` over segments in a directory of its own.

Strategy: the parts do the work (`Appender`, `Reader`, `Store`), this joins them and does what takes more than one
step: keeping to retention, cutting off the start, rewriting after a failed sync, closing, deleting. Appends and reads
touch only memory and the page cache; whatever waits for a disk runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from acklog.errors import Closed, Damaged, OutOfRange
from acklog.log import disk
from acklog.log.appender import Appender
from acklog.log.dropping import drop_below
from acklog.log.files import log_error
from acklog.log.reader import Reader
from acklog.log.retention import overdue, roll_due, start_due
from acklog.log.rewrite import trim
from acklog.log.seam import Appended, Durability, LogConfig, Overdue, Read
from acklog.log.store import Store

_log = logging.getLogger(__name__)

RETRY_MS = 500  # between two attempts to write anew what no sync covered

_NOTHING = Read(b'')


class LocalLog:
    """See `acklog.log.seam.Log`. `on_close(log, deleted)` is called once, at the end."""

    __slots__ = (
        '_appender',
        '_closing',
        '_deleting',
        '_on_close',
        '_one_at_a_time',
        '_progress',
        '_reader',
        '_rewriting',
        '_store',
        '_tried',
        'clean',
        'name',
    )

    def __init__(self, name: str, store: Store, *, internal: bool, on_close: Callable[[LocalLog, bool], None]) -> None:
        self.name = name
        self.clean = False  # closed, and nothing is left to be done at the next opening
        self._store = store
        self._reader = Reader(store)
        self._appender = Appender(store, self._rewrite_soon, internal=internal)
        self._progress = self._appender.progress
        self._on_close = on_close
        self._one_at_a_time: asyncio.Lock | None = None
        self._rewriting: asyncio.Task[None] | None = None
        self._tried: int | None = None  # when a rewrite was last asked for by an append, ms
        self._closing: asyncio.Task[None] | None = None
        self._deleting: asyncio.Task[None] | None = None
        if store.sync_failed:
            self._rewrite_soon()

    @property
    def start(self) -> int:
        return self._store.start

    @property
    def end(self) -> int:
        return self._appender.end

    @property
    def visible_end(self) -> int:
        return self._progress.written

    @property
    def stable_end(self) -> int:
        return self._progress.written

    @property
    def epoch(self) -> int:
        return self._store.shared.epoch

    @property
    def size(self) -> int:
        return self._store.size

    def __repr__(self) -> str:
        return f'<LocalLog {self.name} [{self.start}, {self.end})>'

    async def append(
        self,
        batches: bytes | bytearray | memoryview,
        now: int,
        durability: Durability,
        placed: Callable[[int], None] | None = None,
        *,
        at_once: bool = False,
    ) -> Appended:
        return await self._appender.add(batches, now, durability is Durability.SYNCED, placed, at_once)

    async def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> Read:
        self._appender.check_open()
        visible = self._progress.written
        end = visible if up_to is None or up_to > visible else up_to
        if self._store.start <= offset < end:
            return Read(self._reader.read(offset, end, max_bytes))
        if offset < self._store.start or offset > self._appender.end:
            raise OutOfRange(offset, self._store.start, visible)
        return _NOTHING

    async def offset_at(self, timestamp: int) -> tuple[int, int] | None:
        self._appender.check_open()
        return self._reader.at_time(timestamp, self._store.start, self._progress.written)

    async def truncate_before(self, offset: int) -> int:
        self._appender.check_open()
        async with self._lock():
            self._appender.write_out()
            store = self._store
            if offset > self._progress.written:
                raise OutOfRange(offset, store.start, self._progress.written)
            if offset <= store.start:
                if not store.below(store.start):
                    return store.start
                offset = store.start  # where retention has moved it, and could not remove what is below
            if offset > self._progress.on_disk and not store.sync_failed:
                await self.flush()  # or a power loss leaves the start, and not what the producers below it had sent
            if offset == self._progress.written and not store.sync_failed:
                self._appender.roll()
            await disk.in_thread(disk.start_at, store, offset)
            self._appender.check_open()
            store.start = max(store.start, offset)
            await drop_below(store, self._appender, self._reader, offset)
            return store.start

    async def retain(self, now: int, keep_from: int | None, moving_from: int | None = None) -> int:
        self._appender.check_open()
        store = self._store
        if store.producers is not None:
            store.producers.expire(now, store.shared.producer_idle_ms)
        if not store.segments or self._progress.written == store.start == store.segments[-1].base:
            return store.start
        async with self._lock():
            self._appender.check_open()
            if not (store.segments[-1].rolled or store.sync_failed) and roll_due(store.segments[-1], store.config, now):
                self._appender.roll()
            store.start = start_due(store.segments, store.start, store.config, now, keep_from, moving_from)
            await drop_below(store, self._appender, self._reader, store.start)  # also what could not be removed before
            return store.start

    def overdue(self, now: int, keep_from: int | None) -> Overdue:
        store = self._store
        return overdue(store.segments, store.start, store.config, now, keep_from)

    async def flush(self) -> None:
        self._appender.check_open()
        await self._appender.flush()

    async def close(self) -> None:
        if self._deleting is not None:
            await asyncio.shield(self._deleting)
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def delete(self) -> None:
        if self._deleting is None:
            self._give_up('deleted')
            self._deleting = asyncio.ensure_future(self._delete())
        await asyncio.shield(self._deleting)

    def abandon(self) -> None:
        """Nothing more happens to it; see `DataDirectory.abandon`."""
        self._give_up('closed')

    def _give_up(self, how: str) -> None:
        self._appender.closed = self._progress.ended = True
        self._appender.end_waiting(lambda: Closed(f'{self._store.path} is {how}'))

    @property
    def store(self) -> Store:
        return self._store

    def configure(self, config: LogConfig) -> None:
        self._store.config = config

    def listen(self, callback: Callable[[], None]) -> None:
        self._appender.listen(callback)

    # --- closing

    def _lock(self) -> asyncio.Lock:
        if self._one_at_a_time is None:
            self._one_at_a_time = asyncio.Lock()
        return self._one_at_a_time

    async def _close(self) -> None:
        appender, store = self._appender, self._store
        appender.closed = True  # first: who is answered may append again
        appender.write_out()
        if self._rewriting is not None:
            await asyncio.wait([self._rewriting])
        try:
            async with self._lock():
                await self._progress.quiet()
                if store.dirty or not store.sealed:
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(store.shared.closers, disk.finish, store)
                self._progress.all_on_disk()
                self.clean = True
        except OSError as error:
            store.sync_has_failed()
            raise log_error(store.path, error) from error
        finally:
            self._progress.ended = True
            appender.end_waiting(lambda: Closed(f'{store.path} is closed'))
            store.close_files()
            self._on_close(self, False)

    async def _delete(self) -> None:
        store = self._store
        for under_way in (self._rewriting, self._closing):
            if under_way is not None:
                await asyncio.wait([under_way])
        async with self._lock():
            await self._progress.quiet()
            store.close_files()
            gone = f'{store.path}.{store.shared.epoch}-{store.shared.another_directory()}.deleted'
            try:
                if store.made:
                    store.files.rename(store.path, gone)
            except OSError as error:
                self._on_close(self, False)
                raise log_error(store.path, error) from error
            self._on_close(self, True)
            if store.made:
                await disk.in_thread(disk.remove_log, store, gone)

    # --- after a failure

    async def mended(self) -> None:
        """What a failed sync did not cover has been written anew, or could not be: writes are refused then."""
        if self._rewriting is not None:
            await asyncio.wait([self._rewriting])

    def _rewrite_soon(self, now: int | None = None) -> None:
        """Unless it is under way, or was tried less than RETRY_MS ago."""
        if self._rewriting is not None and not self._rewriting.done():
            return
        if now is not None:
            if self._tried is not None and 0 <= now - self._tried < RETRY_MS:
                return
            self._tried = now
        self._rewriting = asyncio.ensure_future(self._rewrite())

    async def _rewrite(self) -> None:
        store, appender = self._store, self._appender
        async with self._lock():
            await self._progress.quiet()
            if self._progress.ended or not store.sync_failed:
                return
            try:
                found = await asyncio.to_thread(
                    disk.rewritten, store, self._progress.written, internal=appender.internal
                )
            except (OSError, Damaged) as error:
                _log.warning('%s: what no sync covered cannot be written anew: %s', store.path, error)
                return
            store.close_files()
            store.adopt(found)
            self._reader.forget()
            appender.adopt()
            self._progress.all_on_disk()
            _log.warning('%s: what no sync covered has been written anew; writes go on', store.path)
            await asyncio.to_thread(trim, store.files, tuple(store.segments[:-1]))
