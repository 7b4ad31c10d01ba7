"""How far one log has got on its way to the disk, and who waits for it to get there.

Strategy: what is written is told in the loop (`written`). Whoever wants its bytes on disk is kept, with the offset up
to which they go, until a sync that began after their write has covered it. The sync itself runs in the thread of
`Syncer`; a log is queued there once, however many wait.

A sync that failed proves that nothing is on disk, and the next one, which would succeed, proves nothing either: so none
follows until `adopt`, after all that no sync had covered was written anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from acklog.errors import Failed, LogError
from acklog.log import disk
from acklog.log.promise import Promise
from acklog.log.seam import Appended
from acklog.log.store import Store


class Progress:
    """`written`: offset behind what the operating system has; `on_disk`: behind what is synced, as far as is known."""

    __slots__ = (
        '_answered',
        '_asked',
        '_failed',
        '_loop',
        '_on_failure',
        '_quiet',
        '_store',
        'ended',
        'on_disk',
        'sync_queued',
        'waiting',
        'written',
    )

    def __init__(self, store: Store, on_failure: Callable[[OSError], None]) -> None:
        self._store = store
        self._on_failure = on_failure  # called, in the loop, when a sync has failed
        self._loop = asyncio.get_running_loop()
        self.waiting: deque[tuple[int, Promise[Appended], Appended]] = deque()  # for the disk to have it up to there
        self.sync_queued = False
        self.ended = False  # the log is deleted or abandoned: nothing is put on disk any more
        self._asked = self._answered = 0  # syncs
        self._quiet: list[asyncio.Future[None]] = []
        self.adopt()

    def adopt(self) -> None:
        """Go on from what the store has. Nobody may be waiting."""
        self._failed = False
        self.written = self._store.end
        self.on_disk = -1 if self._store.dirty else self.written

    # --- who waits

    def until_on_disk(self) -> Promise[Appended] | None:
        """None when all that is written is on disk, else a future that is done when it is. Raises Failed."""
        if self._store.sync_failed:
            raise Failed(f'{self._store.path}: a write or sync has failed')
        if not self._store.dirty:
            return None
        future: Promise[Appended] = Promise(self._loop)
        self.waiting.append((self.written, future, Appended(-1, -1, -1)))
        self.ask()
        return future

    def all_on_disk(self) -> None:
        """All that is written has been put on disk by somebody else: answer those who wait."""
        self.on_disk = self.written
        waiting, self.waiting = self.waiting, deque()
        for _, future, result in waiting:
            if not future.done():
                future.set_result(result)

    def end_waiting(self, error: Callable[[], LogError]) -> None:
        """Those who still wait get such an error."""
        fail([each[1] for each in self.waiting], error)
        self.waiting.clear()

    # --- syncs

    def ask(self) -> None:
        """Have all that is written until the sync begins put on disk."""
        self._asked += self._store.shared.syncer.request(self)

    async def quiet(self) -> None:
        """Wait until the sync thread has nothing to do with this log; it does nothing for a failed or ended one."""
        if self._answered < self._asked:
            future: asyncio.Future[None] = self._loop.create_future()
            self._quiet.append(future)
            await future

    def sync(self) -> int:
        """In the sync thread: see `Target`."""
        if self.ended or self._store.sync_failed or self._failed:
            return -1
        covered = self.written  # before the sizes of the files are looked at
        try:
            disk.sync(self._store)
        except OSError:
            self._failed = True  # at once, not only when the loop hears of it
            self._store.leave_mark()
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
        if self.ended or self._store.sync_failed:
            return
        if error is not None:
            self._on_failure(error)
            return
        if covered < 0:
            return
        self._store.settle()
        self.on_disk = max(self.on_disk, covered)
        waiting = self.waiting
        while waiting and waiting[0][0] <= covered:
            _, future, result = waiting.popleft()
            if not future.done():
                future.set_result(result)


def fail(futures: Iterable[Promise[Appended]], error: Callable[[], LogError]) -> None:
    """Those of them that still wait get such an error, each one of its own, since it keeps where it was raised."""
    for future in futures:
        if not future.done():
            future.set_exception(error())
