"""What all local logs of one data directory share."""

from __future__ import annotations

from dataclasses import dataclass

from acklog.log.files import Files
from acklog.log.loaded_indexes import LoadedIndexes
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
    logs: str
    epoch: int
    producer_idle_ms: int
