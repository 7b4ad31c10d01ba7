"""Appending to a local log: placing batches, one write per turn of the loop, and what follows a failure.

Strategy: `add` places the batches at once, in memory (`Placer`); the bytes go out at the end of the turn in one write
(`write_out`). When that write fails, the turn is undone as a whole: nothing of it has happened. Whoever wants its bytes
on disk waits for that at `Progress`.

    a write finds no space       the turn raises Full, the file is cut back; the next append tries again
    a write fails otherwise      the turn raises Failed, and so does everything until a rewrite has succeeded
    a sync fails                 those waiting raise Failed or Full; all is refused until a rewrite has succeeded

A rewrite (`acklog.log.rewrite`) puts all that no sync had covered into new files. It is tried at once, and again at
each refused append.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from acklog.errors import Closed, Failed, Full, LogError
from acklog.log.files import NO_SPACE, log_error, write_all
from acklog.log.placer import Placer
from acklog.log.progress import Progress, fail
from acklog.log.promise import Promise
from acklog.log.seam import Appended
from acklog.log.segment import MARK_BYTES, Segment
from acklog.log.store import Store
from acklog.wire.primitives import Buffer

_JOINED = 128 << 10  # bytes; several buffers below that are copied into one, which costs less than a vector
_KEPT = 2048  # bytes; as much of each log stays in memory for those who wait at its end


class Appender:
    """The writing side of one log. `end` includes what is still to be written, `progress.written` does not."""

    __slots__ = (
        '_buffers',
        '_listeners',
        '_loop',
        '_placer',
        '_scheduled',
        '_waiting',
        '_written_now',
        'closed',
        'internal',
        'latest',
        'on_failure',
        'progress',
        'store',
    )

    def __init__(self, store: Store, on_failure: Callable[[int | None], None], *, internal: bool) -> None:
        self.store = store
        self.internal = internal
        self.on_failure = on_failure  # called with `now` when a rewrite is due, at once if None
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[], None]] = []
        self._buffers: list[Buffer] = []
        self._waiting: list[tuple[Promise[Appended], Appended, bool]] = []
        self._written_now: list[tuple[Promise[Appended], Appended, bool]] = []  # written, and not answered yet
        self._placer = Placer(store)
        self._scheduled = False
        self.latest = -1  # time (ms) of the latest append
        self.progress = Progress(store, self._sync_failed)

    @property
    def end(self) -> int:
        return self._placer.end

    def adopt(self) -> None:
        """Go on from what the store has. Nothing may be pending."""
        self._placer.adopt()
        self.progress.adopt()

    def check_open(self) -> None:
        """Raises Closed."""
        if self.closed:
            raise Closed(f'{self.store.path} is closed')

    async def flush(self) -> None:
        """Return when all that was appended is on disk. Raises Full, Failed."""
        self.write_out()
        waiting = self.progress.until_on_disk()
        if waiting is not None:
            await waiting

    # --- a turn of appends

    def add(
        self, batches: Buffer, now: int, synced: bool, placed: Callable[[int], None] | None, at_once: bool
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
        if at_once:
            self.write_out()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)
        return future

    def _check(self, now: int) -> None:
        self.check_open()
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
        self.progress.ask()
        return segment

    def _answer_repeat(self, future: Promise[Appended], result: Appended, synced: bool) -> None:
        """Answer it when the original is as durable as asked."""
        progress = self.progress
        if result.last >= progress.written:
            self._waiting.append((future, result, synced))  # with the turn that holds it
        elif synced and result.last >= progress.on_disk:
            progress.waiting.append((progress.written, future, result))
            progress.ask()
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
        latest = buffers[-1]
        segment.latest = bytes(latest) if len(latest) <= _KEPT else None  # a copy: buffers are used again
        progress = self.progress
        progress.written = placer.end
        if segment.size - segment.marked >= MARK_BYTES:
            self.store.mark()
        self._written_now += waiting
        wanted = self.store.shared.open_files.crowded
        for future, result, synced in waiting:
            if synced:
                progress.waiting.append((progress.written, future, result))
                wanted = True
        if wanted:
            progress.ask()

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
        fail([each[0] for each in waiting], lambda: log_error(self.store.path, error))
        if not sound:
            self._broken(error)

    def _broken(self, error: OSError) -> None:
        """Refuse everything until what no sync covered has been written anew."""
        self.progress.end_waiting(lambda: log_error(self.store.path, error))
        self.store.sync_has_failed()
        self.on_failure(None)

    def _sync_failed(self, error: OSError) -> None:
        self._write_pending()
        self._broken(error)
        self._answer()

    # --- the end

    def listen(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def end_waiting(self, error: Callable[[], LogError]) -> None:
        """Those who still wait get such an error."""
        written = [each[0] for each in self._written_now if not each[2]]
        fail([each[0] for each in self._waiting] + written, error)
        self._waiting, self._buffers, self._written_now = [], [], []
        self.progress.end_waiting(error)
