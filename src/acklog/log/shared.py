"""What all local logs of one data directory share."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from acklog.log.files import Files
from acklog.log.loaded_indexes import LoadedIndexes
from acklog.log.marks import Marks
from acklog.log.open_files import OpenFiles
from acklog.log.reserve import Reserve
from acklog.log.sync import Syncer


@dataclass(slots=True)
class Shared:
    """`logs`: the directory with one directory per log; `epoch`: leader epoch of this run."""

    files: Files
    open_files: OpenFiles
    syncer: Syncer
    indexes: LoadedIndexes
    reserve: Reserve
    marks: Marks
    logs: str
    epoch: int
    producer_idle_ms: int
    closers: Executor | None = None  # threads that close many logs at once
    directories: int = 1  # made in `logs`, those found there counting as one: their entries may not be on disk
    directories_on_disk: int = 0  # so many of them are known to be

    def another_directory(self) -> int:
        """A log's directory has been made; the number tells `sync_directory` of it. In the loop."""
        self.directories += 1
        return self.directories

    def sync_directory(self, number: int) -> None:
        """Put the entry of that directory on disk, and of all made before. In any thread. Raises OSError."""
        if number > self.directories_on_disk:
            made = self.directories
            self.files.fsync_dir(self.logs)
            self.directories_on_disk = max(self.directories_on_disk, made)
