"""A file system in memory that knows what is on disk and what is not, and can lose the latter.

Strategy: a file has the bytes that are seen (the page cache), those on disk, and the writes in between, in order. A
directory has its entries as seen, those on disk, and the changes in between. A sync carries over the one, `fsync_dir`
the other. `power_loss` forgets what was not carried over, or keeps a random part of it, as disks do: any of the
writes, torn at sectors, with zeros where an earlier one is missing; directory changes up to some point. A failed sync
drops the writes in between without carrying them over (`lose_dirty`): they are still seen, but no later sync puts them
on disk.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import random
import threading
from collections.abc import Sequence

from acklog.wire.primitives import Buffer

SECTOR = 512


class _File:
    def __init__(self) -> None:
        self.seen = bytearray()
        self.on_disk = bytearray()
        self.between: list[tuple[int, bytes | None]] = []  # (position, bytes written) or (size, None) for a truncation

    def change(self, position: int, data: bytes | None) -> None:
        _apply(self.seen, position, data)
        self.between.append((position, data))

    def sync(self) -> None:
        for change in self.between:
            _apply(self.on_disk, *change)
        self.between.clear()

    def lose_power(self, chance: random.Random | None) -> None:
        for position, data in self.between:
            if chance is None or chance.random() < 0.5:
                continue
            if data is not None and chance.random() < 0.5:
                data = data[: chance.randrange(len(data) // SECTOR + 1) * SECTOR]
            _apply(self.on_disk, position, data)
        self.between.clear()
        self.seen = bytearray(self.on_disk)


class _Directory:
    def __init__(self) -> None:
        self.seen: dict[str, _File | _Directory] = {}
        self.on_disk: dict[str, _File | _Directory] = {}
        self.between: list[dict[str, _File | _Directory]] = []  # the entries after each change

    def changed(self) -> None:
        self.between.append(dict(self.seen))

    def sync(self) -> None:
        self.on_disk = dict(self.seen)
        self.between.clear()

    def lose_power(self, chance: random.Random | None) -> None:
        if chance is not None:
            kept = chance.randrange(len(self.between) + 1)
            if kept:
                self.on_disk = self.between[kept - 1]
        self.between.clear()
        self.seen = dict(self.on_disk)


class MemoryFiles:
    """Implements `Files`. `capacity`: bytes in all files together, None: no limit; may be changed at any time."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.opened: list[str] = []  # paths given to `open`, for tests that count
        self._root = _Directory()
        self._handles: dict[int, tuple[str, _File]] = {}
        self._locked: dict[int, _File] = {}
        self._next = 1000
        self._run = 0
        self._guard = threading.RLock()

    # --- Files

    def open(self, path: str, *, create: bool = False) -> int:
        with self._guard:
            self.opened.append(path)
            directory, name = self._parent(path)
            found = directory.seen.get(name)
            if isinstance(found, _Directory):
                raise _error(errno.EISDIR, path)
            if found is None:
                if not create:
                    raise _error(errno.ENOENT, path)
                found = directory.seen[name] = _File()
                directory.changed()
            self._next += 1
            self._handles[self._next] = path, found
            return self._next

    def close(self, handle: int) -> None:
        with self._guard:
            self._file(handle)
            del self._handles[handle]
            self._locked.pop(handle, None)

    def pread(self, handle: int, size: int, position: int) -> bytes:
        with self._guard:
            return bytes(self._file(handle).seen[position : position + size])

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        with self._guard:
            file = self._file(handle)
            data = b''.join(buffers)
            room = max(self._room(), 0) + max(len(file.seen) - position, 0)
            if data and not room:
                raise _error(errno.ENOSPC, self.path_of(handle))
            data = data[:room]
            file.change(position, data)
            return len(data)

    def fdatasync(self, handle: int) -> None:
        with self._guard:
            self._file(handle).sync()

    def size(self, handle: int) -> int:
        with self._guard:
            return len(self._file(handle).seen)

    def truncate(self, handle: int, size: int) -> None:
        with self._guard:
            file = self._file(handle)
            if size - len(file.seen) > max(self._room(), 0):
                raise _error(errno.ENOSPC, self.path_of(handle))
            if size != len(file.seen):
                file.change(size, None)

    def allocate(self, handle: int, size: int) -> None:
        with self._guard:
            if size > self.size(handle):
                self.truncate(handle, size)

    def free(self, path: str) -> int:
        with self._guard:
            return max(self._room(), 0)

    def fsync_dir(self, path: str) -> None:
        with self._guard:
            self._directory(path).sync()

    def listdir(self, path: str) -> list[str]:
        with self._guard:
            return list(self._directory(path).seen)

    def mkdir(self, path: str) -> None:
        with self._guard:
            directory, name = self._parent(path)
            if name in directory.seen:
                raise _error(errno.EEXIST, path)
            directory.seen[name] = _Directory()
            directory.changed()

    def rename(self, old: str, new: str) -> None:
        with self._guard:
            directory, name = self._parent(old)
            to, fresh = self._parent(new)
            if name not in directory.seen:
                raise _error(errno.ENOENT, old)
            to.seen[fresh] = directory.seen.pop(name)
            directory.changed()
            if to is not directory:
                to.changed()

    def unlink(self, path: str) -> None:
        with self._guard:
            directory, name = self._parent(path)
            if not isinstance(directory.seen.get(name), _File):
                raise _error(errno.ENOENT, path)
            del directory.seen[name]
            directory.changed()

    def rmdir(self, path: str) -> None:
        with self._guard:
            directory, name = self._parent(path)
            if self._directory(path).seen:
                raise _error(errno.ENOTEMPTY, path)
            del directory.seen[name]
            directory.changed()

    def lock(self, path: str) -> int:
        with self._guard:
            handle = self.open(path, create=True)
            file = self._file(handle)
            if file in self._locked.values():
                self.close(handle)
                raise BlockingIOError(errno.EWOULDBLOCK, 'locked', path)
            self._locked[handle] = file
            return handle

    def identity(self, handle: int) -> str:
        with self._guard:
            return f'run {self._run} of file {id(self._file(handle))}'

    # --- what may happen

    def crash(self) -> None:
        """The process is killed: its handles and locks are gone, all that was written is there."""
        with self._guard:
            self._handles.clear()
            self._locked.clear()

    def power_loss(self, chance: random.Random | None = None, paths: str = '*') -> None:
        """The machine goes down. What was not synced is gone, or with `chance` a random part of it, in files whose path
        fits the pattern `paths`; of directories likewise."""
        with self._guard:
            self.crash()
            self._run += 1
            self._lose('', self._root, chance, paths)

    def lose_dirty(self, handle: int, *, unseen: bool = False) -> None:
        """What a failed sync does: writes in between will not reach the disk. `unseen`: nor are they seen any more."""
        with self._guard:
            file = self._file(handle)
            file.between.clear()
            if unseen:
                file.seen = bytearray(file.on_disk)

    def corrupt(self, path: str, position: int, data: bytes) -> None:
        """Other bytes are on the disk and are seen."""
        with self._guard:
            directory, name = self._parent(path)
            file = directory.seen[name]
            assert isinstance(file, _File)
            _apply(file.seen, position, data)
            _apply(file.on_disk, position, data)

    @property
    def used(self) -> int:
        """Bytes in all files together."""
        return _used(self._root)

    def path_of(self, handle: int) -> str:
        return self._handles[handle][0]

    @property
    def open_handles(self) -> int:
        return len(self._handles)

    def _lose(self, path: str, directory: _Directory, chance: random.Random | None, paths: str) -> None:
        directory_fits = paths == '*' or fnmatch.fnmatch(f'{path}/', paths)
        if directory_fits:
            directory.lose_power(chance)
        for name, entry in directory.seen.items():
            if isinstance(entry, _Directory):
                self._lose(f'{path}/{name}', entry, chance, paths)
            elif fnmatch.fnmatch(f'{path}/{name}', paths):
                entry.lose_power(chance)
            else:
                entry.sync()
        if not directory_fits:
            directory.sync()

    def _room(self) -> int:
        return (1 << 62) if self.capacity is None else self.capacity - _used(self._root)

    def _file(self, handle: int) -> _File:
        found = self._handles.get(handle)
        if found is None:
            raise _error(errno.EBADF, str(handle))
        return found[1]

    def _parent(self, path: str) -> tuple[_Directory, str]:
        head, name = os.path.split(path)
        return self._directory(head), name

    def _directory(self, path: str) -> _Directory:
        found: _File | _Directory | None = self._root
        for part in path.split('/'):
            if part in ('', '.'):
                continue
            found = found.seen.get(part) if isinstance(found, _Directory) else None
        if not isinstance(found, _Directory):
            raise _error(errno.ENOENT, path)
        return found


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
    elif data:
        content.extend(bytes(max(position - len(content), 0)))
        content[position : position + len(data)] = data


def _used(directory: _Directory) -> int:
    return sum(_used(each) if isinstance(each, _Directory) else len(each.seen) for each in directory.seen.values())


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
