"""Space set aside for internal logs, so that sign-offs and retention go on when the disk is full.

Strategy: a file with its blocks really taken. When an internal log finds no space, the file is made smaller step by
step, and the log tries again. As long as it is smaller than it should be, other logs are refused, or they would eat
what was given free; the first of them to ask after a while tries to take the space back.
"""

from __future__ import annotations

import logging

from acklog.log.files import NO_SPACE, Files

RETRY_MS = 200
TELL_MS = 60_000  # between two lines that say that there is no space

_log = logging.getLogger(__name__)


def give_some(files: Files, directory: str, size: int) -> bool:
    """Before there is a `Reserve`, at start on a full disk: set a step of the space free. False if there is none."""
    path = f'{directory}/reserve'
    try:
        handle = files.open(path)
    except FileNotFoundError:
        return False
    try:
        have = files.size(handle)
        files.truncate(handle, max(0, min(have, size) - _step(size)))
    finally:
        files.close(handle)
    return have > 0


def _step(size: int) -> int:
    return max(size // 16, 1)


class Reserve:
    """`size`: bytes to be set aside, 0 for none. Raises nothing: a disk without space has a smaller reserve."""

    def __init__(self, files: Files, directory: str, size: int) -> None:
        self._files, self._directory, self._size = files, directory, size
        self._path = f'{directory}/reserve'
        self._step = _step(size)
        self._have = 0
        self.short = size > 0  # some of it is given free: only internal logs may write
        self._tried: int | None = None
        self._told: int | None = None
        if size:
            self._have = min(size, self._existing())
            self._restore()

    def give(self) -> bool:
        """Set a step free for an internal log. False when there is nothing left."""
        if not self._have:
            return False
        if self._have == self._size:
            _log.warning('%s: no space left; publishing is refused, internal logs use the reserve', self._directory)
        return self._resize(max(0, self._have - self._step))

    def refused(self, now: int) -> None:
        """A log that may not use it has found no space: say so, now and then."""
        if self._told is None or not 0 <= now - self._told < TELL_MS:
            self._told = now
            _log.warning('%s: no space left; publishing is refused', self._directory)

    def restored(self, now: int) -> bool:
        """Whether all of it is there, or can be taken back; tried again at most every RETRY_MS."""
        if not self.short:
            return True
        if self._tried is not None and 0 <= now - self._tried < RETRY_MS:
            return False
        self._tried = now
        if self._restore():
            _log.warning('%s: there is space again; publishing goes on', self._directory)
            return True
        return False

    def _existing(self) -> int:
        try:
            handle = self._files.open(self._path)
        except OSError:
            return 0
        try:
            return self._files.size(handle)
        finally:
            self._files.close(handle)

    def _restore(self) -> bool:
        try:
            if self._have < self._size and self._files.free(self._directory) < self._size - self._have + self._step:
                return False
            handle = self._files.open(self._path, create=True)
            try:
                self._files.allocate(handle, self._size)
            finally:
                self._files.close(handle)
        except OSError as error:
            if error.errno not in NO_SPACE:
                _log.warning('%s: %s', self._path, error)
            return False
        self._have = self._size
        self.short = False
        return True

    def _resize(self, size: int) -> bool:
        self.short = True
        try:
            handle = self._files.open(self._path, create=True)
            try:
                self._files.truncate(handle, size)
            finally:
                self._files.close(handle)
        except OSError as error:
            _log.warning('%s: %s', self._path, error)
            return False
        self._have = size
        return True
