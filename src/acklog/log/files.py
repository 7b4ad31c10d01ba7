"""The file-system seam: the few calls that the local log makes, as a protocol, and the real ones.

Strategy: handles are plain ints as the operating system's, so that the hot path is a direct call. Everything raises
OSError. Two more implementations are for tests: `acklog.log.memory_files` keeps all in memory and can forget what was
not synced, `acklog.log.faulty_files` injects faults. `write_all`, `replace_file` and `read_file` are what the rest
builds on: short writes, atomic replacement, whole reads.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from acklog.errors import Failed, Full
from acklog.wire.primitives import Buffer

MAX_BUFFERS = 1000  # of one pwritev; IOV_MAX is 1024

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


class Files(Protocol):
    """What a log needs of a file system. Paths are absolute or relative to the process; all calls raise OSError."""

    def open(self, path: str, *, create: bool = False) -> int:
        """Handle for reading and writing. Raises FileNotFoundError unless `create`."""
        ...

    def close(self, handle: int) -> None: ...

    def pread(self, handle: int, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        ...

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        """Write at most MAX_BUFFERS buffers; returns the number of bytes written, which may be fewer than given."""
        ...

    def fdatasync(self, handle: int) -> None:
        """All bytes of the file are on disk when it returns, whoever wrote them."""
        ...

    def size(self, handle: int) -> int: ...

    def truncate(self, handle: int, size: int) -> None: ...

    def allocate(self, handle: int, size: int) -> None:
        """Make the file at least `size` bytes large, with the space really taken. Raises ENOSPC."""
        ...

    def free(self, path: str) -> int:
        """Bytes that may still be written to the file system of `path`."""
        ...

    def fsync_dir(self, path: str) -> None:
        """The entries of the directory are on disk when it returns."""
        ...

    def listdir(self, path: str) -> list[str]: ...

    def mkdir(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def rmdir(self, path: str) -> None: ...

    def lock(self, path: str) -> int:
        """Create the file if need be, lock it for this process until the handle is closed. Raises BlockingIOError."""
        ...

    def identity(self, handle: int) -> str:
        """Names file and run of the machine: the same only while what was written without sync is still there."""
        ...


class OsFiles:
    """The operating system's file system."""

    def open(self, path: str, *, create: bool = False) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)

    def close(self, handle: int) -> None:
        os.close(handle)

    def pread(self, handle: int, size: int, position: int) -> bytes:
        data = os.pread(handle, size, position)
        if not data or len(data) == size:
            return data
        parts = [data]  # a read may be cut short (2 GB, signals); the end is where nothing more comes
        have = len(data)
        while have < size and (data := os.pread(handle, size - have, position + have)):
            parts.append(data)
            have += len(data)
        return b''.join(parts)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        if len(buffers) == 1:
            return os.pwrite(handle, buffers[0], position)
        return os.pwritev(handle, buffers, position)

    def fdatasync(self, handle: int) -> None:
        if sys.platform == 'darwin':
            import fcntl

            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(handle)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def allocate(self, handle: int, size: int) -> None:
        if hasattr(os, 'posix_fallocate'):
            os.posix_fallocate(handle, 0, size)
            return
        zeros = bytes(1 << 20)
        for position in range(self.size(handle), size, len(zeros)):
            write_all(self, handle, [memoryview(zeros)[: size - position]], position)

    def free(self, path: str) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def fsync_dir(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def mkdir(self, path: str) -> None:
        os.mkdir(path, 0o755)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def lock(self, path: str) -> int:
        import fcntl  # not there on Windows, where only the client runs

        handle = self.open(path, create=True)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        return handle

    def identity(self, handle: int) -> str:
        found = os.fstat(handle)
        try:
            with open('/proc/sys/kernel/random/boot_id') as file:
                boot = file.read().strip()
        except OSError:
            return ''  # unknown: never taken for the same
        return f'{boot}/{found.st_dev}/{found.st_ino}'


def log_error(path: str, error: OSError) -> Full | Failed:
    """What a log tells its caller of an error of the operating system."""
    kind = Full if error.errno in NO_SPACE else Failed
    return kind(f'{path}: {error.strerror or error}')


def write_all(files: Files, handle: int, buffers: Sequence[Buffer], position: int) -> int:
    """Write all of the buffers from `position` on, however short the single writes are; returns the position behind.

    Raises OSError; then a part may have been written.
    """
    for at in range(0, len(buffers), MAX_BUFFERS):
        part = buffers if len(buffers) <= MAX_BUFFERS else buffers[at : at + MAX_BUFFERS]
        expected = len(part[0]) if len(part) == 1 else sum(map(len, part))
        written = files.pwritev(handle, part, position)
        position += written
        if written < expected:
            rest = memoryview(b''.join(part))[written:]
            while rest:
                written = files.pwritev(handle, [rest], position)
                if not written:
                    raise OSError(errno.EIO, 'nothing was written')
                position += written
                rest = rest[written:]
    return position


def replace_file(files: Files, directory: str, name: str, data: bytes) -> None:
    """Put `data` in the place of the file `name`, durably and as a whole: after a crash there is the old or the new
    one.
    """
    path = f'{directory}/{name}'
    fresh = f'{path}.new'
    handle = files.open(fresh, create=True)
    try:
        files.truncate(handle, 0)
        write_all(files, handle, [data], 0)
        files.fdatasync(handle)
    finally:
        files.close(handle)
    files.rename(fresh, path)
    files.fsync_dir(directory)


def read_file(files: Files, path: str) -> bytes:
    """All of a file. Raises FileNotFoundError."""
    handle = files.open(path)
    try:
        return files.pread(handle, files.size(handle), 0)
    finally:
        files.close(handle)


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory of files, not nested; what is already gone is no error."""
    with suppress(FileNotFoundError):
        for name in files.listdir(path):
            with suppress(FileNotFoundError):
                files.unlink(f'{path}/{name}')
        files.rmdir(path)
