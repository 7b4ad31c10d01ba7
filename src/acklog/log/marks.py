"""Whether every log with a failed sync says so to the next process.

After a failed sync a log leaves a mark in its directory, `sync-failed`: what the operating system has of it may never
reach the disk, whatever a later sync says. But a sync often fails because the disk is full, and then the mark may find
no space either. Therefore the opposite is a file as well, `marks-kept` in the data directory, and is removed when a
mark could not be left: removing needs no space. A process that finds it missing takes every log as marked.

It comes back when nothing can be unmarked any more: after a clean close of all logs, and after the machine was down,
since what is seen then was read from the disk.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from acklog.log.files import Files

_log = logging.getLogger(__name__)

MARKS_KEPT = 'marks-kept'


class Marks:
    """`kept`: a log without a mark had no failed sync. `none_missing`: none can have had one before this process."""

    def __init__(self, files: Files, directory: str, *, none_missing: bool) -> None:
        self._files = files
        self._path = f'{directory}/{MARKS_KEPT}'
        self.kept = none_missing or MARKS_KEPT in files.listdir(directory)
        if none_missing:
            with suppress(OSError):  # without it all is well, and an unclean start slower
                files.close(files.open(self._path, create=True))

    def lost(self) -> None:
        """A mark could not be left. In any thread."""
        self.kept = False
        try:
            with suppress(FileNotFoundError):
                self._files.unlink(self._path)
        except OSError as error:
            _log.error(
                '%s: %s; if this process is killed now, the next one trusts what no sync has covered', self._path, error
            )
