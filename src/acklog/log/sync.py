"""Group commit: one thread that puts logs on disk for all that wait for it.

Strategy: a log that wants its bytes on disk is queued once, however many wait. When its turn comes the thread first
takes it out of the queue's books, then asks it to sync: what was written before that moment is covered, what is
written later queues it anew. So whoever waits, waits for exactly one sync that began after its write. Results go back
by one `call_soon_threadsafe` for all that has been done since the loop last looked.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections import deque
from queue import SimpleQueue
from typing import Protocol

_log = logging.getLogger(__name__)


class Target(Protocol):
    """Something that can be put on disk."""

    sync_queued: bool

    def sync(self) -> int:
        """In the thread: put on disk all that is written, return up to where. Raises OSError."""
        ...

    def sync_done(self, covered: int, error: OSError | None) -> None:
        """In the loop: what came of it."""
        ...


class Syncer:
    """The thread. It starts when first asked for something, and belongs to one event loop."""

    def __init__(self) -> None:
        self._wanted: SimpleQueue[Target | None] = SimpleQueue()
        self._done: deque[tuple[Target, int, OSError | None]] = deque()
        self._posted = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def request(self, target: Target) -> bool:
        """Sync `target` soon, with all it has written up to now. In the loop. False when it is queued already."""
        if target.sync_queued:
            return False
        target.sync_queued = True
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, name='acklog-sync', daemon=True)
            self._thread.start()
        self._wanted.put(target)
        return True

    def stop(self) -> None:
        """End the thread; what was asked for is done first."""
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            target = self._wanted.get()
            if target is None:
                return
            target.sync_queued = False  # before it looks at what is written
            covered, failure = -1, None
            try:
                covered = target.sync()
            except OSError as error:
                failure = error
            except Exception as error:  # a bug; whoever waits must not do so for ever
                _log.exception('sync')
                failure = OSError(errno.EIO, f'{error!r}')
            self._done.append((target, covered, failure))
            if not self._posted:
                self._posted = True
                assert self._loop is not None
                try:
                    self._loop.call_soon_threadsafe(self._tell)
                except RuntimeError:
                    _log.debug('the loop is closed; nobody waits for this sync')
                    return

    def _tell(self) -> None:
        self._posted = False  # before looking: what is done from here on is posted again
        while self._done:
            target, covered, error = self._done.popleft()
            target.sync_done(covered, error)
