"""Appending to a local log: placing batches, one write per turn of the loop, waiting for the disk, and what follows a
failure.

Strategy: `add` places the batches at once, in memory (`Placer`); the bytes go out at the end
of the turn in one write (`write_out`). When that write fails, the turn is undone as a whole: nothing of it has
happened. Whoever wants its bytes on disk is kept until a sync that began after its write.

    a write finds no space       the turn raises Full, the file is cut back; the next append tries again
    a write fails otherwise      the turn raises Failed, and so does everything until a rewrite has succeeded
    a sync fails                 those waiting raise Failed or Full; all is refused until a rewrite has succeeded

A rewrite (`acklog.log.rewrite`) puts all that no sync had covered into new files. It is tried at once, and again at
each refused append.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from acklog.errors import Closed, Failed, Full, LogError
from acklog.log import disk
from acklog.log.files import NO_SPACE, Buffer, log_error, write_all
from acklog.log.placer import Placer
from acklog.log.promise import Promise
from acklog.log.seam import Appended
from acklog.log.segment import MARK_BYTES, Segment
from acklog.log.store import Store

_JOINED = 128 << 10  # bytes; several buffers below that are copied into one, which costs less than a vector


class Appender:
    """The writing side of one log. `end` includes what is still to be written, `written` does not; `on_disk` is
    synced.
    """

    __slots__ = (
        '_answered',
        '_asked',
        '_buffers',
        '_listeners',
        '_loop',
        '_placer',
        '_quiet',
        '_scheduled',
        '_sync_failed',
        '_unsynced',
        '_waiting',
        '_written_now',
        'closed',
        'deleted',
        'internal',
        'latest',
        'on_disk',
        'on_failure',
        'store',
        'sync_queued',
        'written',
    )

    def __init__(self, store: Store, on_failure: Callable[[int | None], None], *, internal: bool) -> None:
        self.store = store
        self.internal = internal
        self.on_failure = on_failure  # called with `now` when a rewrite is due, at once if None
        self.sync_queued = False
        self.closed = False
        self.deleted = False
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[], None]] = []
        self._buffers: list[Buffer] = []
        self._waiting: list[tuple[Promise[Appended], Appended, bool]] = []
        self._unsynced: deque[tuple[int, Promise[Appended], Appended]] = deque()
        self._written_now: list[tuple[Promise[Appended], Appended, bool]] = []  # written, and not answered yet
        self._placer = Placer(store)
        self._scheduled = False
        self.latest = -1  # time (ms) of the latest append
        self._asked = self._answered = 0  # syncs
        self._quiet: list[asyncio.Future[None]] = []
        self.adopt()

    @property
    def end(self) -> int:
        return self._placer.end

    def adopt(self) -> None:
        """Go on from what the store has. Nothing may be pending."""
        self._placer.adopt()
        self._sync_failed = False
        self.written = self.store.end
        self.on_disk = -1 if self.store.dirty else self.written

    # --- a turn of appends

    def add(
        self, batches: Buffer, now: int, synced: bool, placed: Callable[[int], None] | None = None
    ) -> Promise[Appended]:
        """See `Log.append`; the future has its result when the bytes are as durable as asked."""
        if self.closed or self.store.sync_failed or self.store.shared.reserve.short:
            self._check(now)
        total = len(batches)
        placer, config = self._placer, self.store.config
        segment = placer.segment
        if segment is None or placer.tail + total > config.segment_bytes or now - segment.created >= config.segment_ms:
            self._find_segment(total, now)
        if isinstance(batches, bytes) or (isinstance(batches, memoryview) and batches.readonly):
            batches = bytearray(batches)
        if not self._buffers:
            placer.begin()
        result = placer.place(batches, now)
        future: Promise[Appended] = Promise(self._loop)
        if result.duplicate:
            self._answer_repeat(future, result, synced)
            return future
        if placed is not None:
            placed(result.first)
        self.latest = now
        self._buffers.append(batches)
        self._waiting.append((future, result, synced))
        if not self._scheduled:
            self._schedule()
        return future

    def _schedule(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self._turn)

    def _check(self, now: int) -> None:
        if self.closed:
            raise Closed(f'{self.store.path} is closed')
        if self.store.sync_failed:
            self.on_failure(now)
            raise Failed(f'{self.store.path}: a write or sync has failed; what no sync covered is being written anew')
        reserve = self.store.shared.reserve
        if not self.internal and not reserve.restored(now):
            raise Full(f'{self.store.path}: no space left')

    def _find_segment(self, total: int, now: int) -> None:
        """Have the placer at the segment that `total` more bytes go to: another one when it is too large or too old."""
        config = self.store.config
        try:
            segment = self._placer.go_to(self.store.active())
            old = segment.created >= 0 and now - segment.created >= config.segment_ms
            tail = self._placer.tail
            if tail and (old or tail + total > config.segment_bytes):
                self._write_pending()  # who waits for it is answered when the turn ends
                self._check(now)  # that may have failed
                if segment.size:
                    segment = self._next_segment()
        except OSError as error:
            raise log_error(self.store.path, error) from error
        if not segment.size or segment.created < 0:
            segment.created = now

    def roll(self) -> None:
        """Write what is pending, and let later appends go to another segment. Raises Full, Failed."""
        self._write_pending()
        try:
            if self._placer.go_to(self.store.active()).size:
                self._next_segment()
        except OSError as error:
            raise log_error(self.store.path, error) from error

    def _next_segment(self) -> Segment:
        segment = self._placer.go_to(self.store.roll())
        self._ask_sync()
        return segment

    def _answer_repeat(self, future: Promise[Appended], result: Appended, synced: bool) -> None:
        """Answer it when the original is as durable as asked."""
        if result.last >= self.written:
            self._waiting.append((future, result, synced))  # with the turn that holds it
        elif synced and result.last >= self.on_disk:
            self._unsynced.append((self.written, future, result))
            self._ask_sync()
        else:
            future.set_result(result)

    def _turn(self) -> None:
        self._scheduled = False
        self.write_out()

    def write_out(self) -> None:
        """Give to the operating system what has been gathered, and answer those who wait for no more than that.

        They go on, and may append, before this returns.
        """
        self._write_pending()
        self._answer()

    def _write_pending(self) -> None:
        """Write what has been gathered. Nobody is answered yet, so that nothing is pending when this returns."""
        buffers, waiting = self._buffers, self._waiting
        if not waiting:
            return
        self._buffers, self._waiting = [], []
        placer = self._placer
        segment = placer.segment
        assert segment is not None
        try:
            handle = segment.handle if segment.handle >= 0 else self.store.write_to(segment)
            self._write(handle, buffers, segment.size)
        except OSError as error:
            self._undo_turn(segment, error, waiting)
            return
        placer.done()
        segment.size, segment.next = placer.tail, placer.end
        segment.max_timestamp, segment.appended = placer.max_timestamp, self.latest
        self.written = placer.end
        if segment.size - segment.marked >= MARK_BYTES:
            self.store.mark()
        self._written_now += waiting
        wanted = self.store.shared.open_files.crowded
        for future, result, synced in waiting:
            if synced:
                self._unsynced.append((self.written, future, result))
                wanted = True
        if wanted:
            self._ask_sync()

    def _answer(self) -> None:
        """The last step of all that writes: those who waited come back with the next call before this returns."""
        waiting, self._written_now = self._written_now, []
        if not waiting:
            return
        for future, result, synced in waiting:
            if not synced and not future.done():
                future.set_result(result)
        for callback in self._listeners:
            callback()

    def _write(self, handle: int, buffers: list[Buffer], position: int) -> None:
        if len(buffers) > 1 and self._placer.tail - position <= _JOINED:
            buffers = [b''.join(buffers)]
        while True:
            try:
                write_all(self.store.files, handle, buffers, position)
                return
            except OSError as error:
                if not (self.internal and error.errno in NO_SPACE and self.store.shared.reserve.give()):
                    raise

    # --- failures

    def _undo_turn(
        self, segment: Segment, error: OSError, waiting: list[tuple[Promise[Appended], Appended, bool]]
    ) -> None:
        """Nothing of the turn has happened."""
        self._placer.undo()
        sound = error.errno in NO_SPACE or segment.handle < 0  # else it could not even be opened
        try:
            if segment.handle >= 0:
                self.store.files.truncate(segment.handle, segment.size)
        except OSError:
            sound = False
        if error.errno in NO_SPACE and not self.internal:
            self.store.shared.reserve.refused(self.latest)
        self._fail([each[0] for each in waiting], error)
        if not sound:
            self._broken(error)

    def _fail(self, futures: list[Promise[Appended]], error: OSError) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(log_error(self.store.path, error))

    def _broken(self, error: OSError) -> None:
        """Refuse everything until what no sync covered has been written anew."""
        self._fail([each[1] for each in self._unsynced], error)
        self._unsynced.clear()
        self.store.sync_has_failed()
        self.on_failure(None)

    # --- the disk

    def _ask_sync(self) -> None:
        self._asked += self.store.shared.syncer.request(self)

    async def quiet(self) -> None:
        """Wait until the sync thread has nothing to do with this log; it does nothing for a failed or closed one."""
        if self._answered < self._asked:
            future: asyncio.Future[None] = self._loop.create_future()
            self._quiet.append(future)
            await future

    def sync(self) -> int:
        """In the sync thread: see `Target`."""
        if self.deleted or self.store.sync_failed or self._sync_failed:
            return -1
        covered = self.written  # before the sizes of the files are looked at
        try:
            disk.sync(self.store)
        except OSError:
            self._sync_failed = True  # at once: the next sync would succeed, and prove nothing
            raise
        return covered

    def sync_done(self, covered: int, error: OSError | None) -> None:
        """In the loop: see `Target`."""
        self._answered += 1
        if self._answered == self._asked:
            for quiet in self._quiet:
                if not quiet.done():
                    quiet.set_result(None)
            self._quiet.clear()
        if self.deleted or self.store.sync_failed:
            return
        if error is not None:
            self._write_pending()
            self._broken(error)
            self._answer()
            return
        if covered < 0:
            return
        self.store.settle()
        self.on_disk = max(self.on_disk, covered)
        unsynced = self._unsynced
        while unsynced and unsynced[0][0] <= covered:
            _, future, result = unsynced.popleft()
            if not future.done():
                future.set_result(result)

    def until_on_disk(self) -> Promise[Appended] | None:
        """None when all that was appended is on disk, else a future that is done when it is. Raises Failed."""
        self.write_out()
        if self.store.sync_failed:
            raise Failed(f'{self.store.path}: a write or sync has failed')
        if not self.store.dirty:
            return None
        future: Promise[Appended] = Promise(self._loop)
        self._unsynced.append((self.written, future, Appended(-1, -1, -1)))
        self._ask_sync()
        return future

    def all_on_disk(self) -> None:
        """All that was written has been put on disk by somebody else: answer those who wait."""
        self.on_disk = self.written
        unsynced, self._unsynced = self._unsynced, deque()
        for _, future, result in unsynced:
            if not future.done():
                future.set_result(result)

    def listen(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def end_waiting(self, error: LogError) -> None:
        """Those who still wait get this error."""
        written = [each[0] for each in self._written_now if not each[2]]
        for future in [each[0] for each in self._waiting] + [each[1] for each in self._unsynced] + written:
            if not future.done():
                future.set_exception(error)
        self._waiting, self._buffers, self._written_now = [], [], []
        self._unsynced.clear()
