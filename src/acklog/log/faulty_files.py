"""Another file system with faults on demand: errors at chosen calls, short writes, syncs that wait.

Strategy: rules in order; the first one whose operation and path fit, and whose turn it is, raises. Over `MemoryFiles`
a failed sync also does what it does to a real file: the bytes are no longer due to be written. Works over real files
as well.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acklog.log.files import Files
from acklog.log.memory_files import MemoryFiles
from acklog.wire.primitives import Buffer


@dataclass(slots=True)
class Fault:
    """Calls of `operation` (a method's name, or `*`) on paths that fit `path` fail with `error`: `after` that many went
    well, `times` times (None: from then on). `unseen`: what a failed sync leaves is not seen any more either."""

    operation: str
    error: int = errno.EIO
    path: str = '*'
    after: int = 0
    times: int | None = 1
    unseen: bool = False

    def due(self, operation: str, path: str) -> bool:
        """Whether this call fails; counts it."""
        if self.times == 0 or self.operation not in ('*', operation) or not fnmatch.fnmatch(path, self.path):
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultyFiles:
    """Implements `Files` over `inner`, a `MemoryFiles` unless given."""

    def __init__(self, inner: Files | None = None) -> None:
        self.inner: Files = MemoryFiles() if inner is None else inner
        self.faults: list[Fault] = []
        self.calls: Counter[str] = Counter()
        self.short_writes: random.Random | None = None  # when set, each write may be cut anywhere
        self.before_sync: Callable[[str], None] = lambda path: None  # may block, in the thread that syncs
        self._paths: dict[int, str] = {}
        self._guard = threading.Lock()

    @property
    def memory(self) -> MemoryFiles:
        """The file system below, when it is one in memory."""
        assert isinstance(self.inner, MemoryFiles)
        return self.inner

    def fail(
        self,
        operation: str,
        error: int = errno.EIO,
        path: str = '*',
        *,
        after: int = 0,
        times: int | None = 1,
        unseen: bool = False,
    ) -> Fault:
        """Add a fault, and return it."""
        fault = Fault(operation, error, path, after, times, unseen)
        self.faults.append(fault)
        return fault

    def heal(self) -> None:
        """No more faults."""
        self.faults.clear()
        self.short_writes = None

    def kill(self) -> None:
        """The process that used this is killed: every later call of its threads fails, what was written stays."""
        self.fail('*', errno.EIO, times=None)
        self.faults.insert(0, self.faults.pop())
        self.memory.crash()

    def _fault(self, operation: str, path: str) -> Fault | None:
        with self._guard:
            self.calls[operation] += 1
            return next((each for each in self.faults if each.due(operation, path)), None)

    def _raise(self, operation: str, path: str) -> None:
        fault = self._fault(operation, path)
        if fault is not None:
            raise OSError(fault.error, os.strerror(fault.error), path)

    # --- Files

    def open(self, path: str, *, create: bool = False) -> int:
        self._raise('open', path)
        handle = self.inner.open(path, create=create)
        self._paths[handle] = path
        return handle

    def close(self, handle: int) -> None:
        self._raise('close', self._paths[handle])
        self.inner.close(handle)

    def pread(self, handle: int, size: int, position: int) -> bytes:
        self._raise('pread', self._paths[handle])
        return self.inner.pread(handle, size, position)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        self._raise('pwritev', self._paths[handle])
        if self.short_writes is not None:
            data = b''.join(buffers)
            return self.inner.pwritev(handle, [data[: self.short_writes.randint(1, max(len(data), 1))]], position)
        return self.inner.pwritev(handle, buffers, position)

    def fdatasync(self, handle: int) -> None:
        path = self._paths[handle]
        self.before_sync(path)
        fault = self._fault('fdatasync', path)
        if fault is not None:
            if isinstance(self.inner, MemoryFiles):
                self.inner.lose_dirty(handle, unseen=fault.unseen)
            raise OSError(fault.error, os.strerror(fault.error), path)
        self.inner.fdatasync(handle)

    def size(self, handle: int) -> int:
        self._raise('size', self._paths[handle])
        return self.inner.size(handle)

    def truncate(self, handle: int, size: int) -> None:
        self._raise('truncate', self._paths[handle])
        self.inner.truncate(handle, size)

    def allocate(self, handle: int, size: int) -> None:
        self._raise('allocate', self._paths[handle])
        self.inner.allocate(handle, size)

    def free(self, path: str) -> int:
        self._raise('free', path)
        return self.inner.free(path)

    def fsync_dir(self, path: str) -> None:
        self._raise('fsync_dir', path)
        self.inner.fsync_dir(path)

    def listdir(self, path: str) -> list[str]:
        self._raise('listdir', path)
        return self.inner.listdir(path)

    def mkdir(self, path: str) -> None:
        self._raise('mkdir', path)
        self.inner.mkdir(path)

    def rename(self, old: str, new: str) -> None:
        self._raise('rename', old)
        self.inner.rename(old, new)

    def unlink(self, path: str) -> None:
        self._raise('unlink', path)
        self.inner.unlink(path)

    def rmdir(self, path: str) -> None:
        self._raise('rmdir', path)
        self.inner.rmdir(path)

    def lock(self, path: str) -> int:
        self._raise('lock', path)
        handle = self.inner.lock(path)
        self._paths[handle] = path
        return handle

    def identity(self, handle: int) -> str:
        return self.inner.identity(handle)
