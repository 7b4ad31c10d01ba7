"""A bounded number of open files for all segments of a directory, the least recently used closed first.

Strategy: a file with bytes that are not yet on disk is held: it must not be closed, since a failed write-back is
reported to those handles that were open at the time. Who has too many held asks for a sync (`crowded`). Used in the
loop only; the sync thread uses the handles of held files, which stay.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from acklog.log.files import Files


class OpenFiles:
    """Handles by path. `limit`: how many may be open, those held beyond it excepted."""

    __slots__ = ('_files', '_handles', '_held', 'limit')

    def __init__(self, files: Files, limit: int) -> None:
        self._files = files
        self._handles: OrderedDict[str, int] = OrderedDict()
        self._held: dict[str, int] = {}
        self.limit = limit

    def __len__(self) -> int:
        return len(self._handles) + len(self._held)

    @property
    def crowded(self) -> bool:
        """More than half of the limit is held."""
        return 2 * len(self._held) > self.limit

    def get(self, path: str, *, create: bool = False) -> int:
        """A handle, good until the next call of anything here. Raises OSError."""
        handle = self._held.get(path)
        if handle is not None:
            return handle
        handle = self._handles.get(path)
        if handle is not None:
            self._handles.move_to_end(path)
            return handle
        while self._handles and len(self) >= self.limit:
            self._close(self._handles.popitem(last=False)[1])
        handle = self._handles[path] = self._files.open(path, create=create)
        return handle

    def hold(self, path: str, *, create: bool = False) -> int:
        """A handle that stays open until `release`."""
        handle = self.get(path, create=create)
        if self._handles.pop(path, None) is not None:
            self._held[path] = handle
        return handle

    def release(self, path: str) -> None:
        """No longer held; it may be closed when others are wanted."""
        handle = self._held.pop(path, None)
        if handle is not None:
            self._handles[path] = handle

    def forget(self, path: str) -> None:
        """Close it, held or not."""
        for handles in (self._held, self._handles):
            handle = handles.pop(path, None)
            if handle is not None:
                self._close(handle)

    def close(self) -> None:
        for path in [*self._held, *self._handles]:
            self.forget(path)

    def _close(self, handle: int) -> None:
        with suppress(OSError):  # nothing unsynced is in it
            self._files.close(handle)
