"""What a worker writes down as it goes, so that it can be read after a kill -9 of the worker.

Strategy: one file per worker, one JSON array per line, each written with a single write to the operating system. A
line that the kill cut short has no line end and is not read. Times are the system's monotonic clock, which all
processes of a machine share. `accepting` is written before the stock client is asked, `accepted` after it has said
yes; so what was asked and not answered is known.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

What = Literal[
    'confirmed',  # publisher: these records are at these offsets, the server said
    'failed',  # publisher: the client gave up on these; they may be stored or not
    'finished',  # publisher: nothing more to come
    'delivered',  # subscriber: got these, with these delivery counts
    'accepting',  # subscriber: is about to sign these off
    'accepted',  # subscriber: the client reported that these are signed off
    'releasing',  # subscriber: is about to give these back
    'released',  # subscriber: the client reported that these are given back
    'rejecting',  # subscriber: is about to say that nobody can process these
    'rejected',  # subscriber: the client reported that these are dead
    'unsure',  # subscriber: the client reported an error for these: signed off, given back, or neither
    'refused',  # subscriber: the server said that these are not this member's any more
    'damaged',  # subscriber: records whose content is not what was published
    'trouble',  # words: an error that the client reported
]


class Entry(NamedTuple):
    """One line. `records` are numbers of records; `offsets` and `deliveries` go with them where they are known. `dues`:
    when released ones were told to come again, in the time of `at`."""

    what: What
    at: float  # s, monotonic
    partition: int = -1
    records: Sequence[int] = ()
    offsets: Sequence[int] = ()
    deliveries: Sequence[int] = ()
    words: str = ''
    dues: Sequence[float] = ()


class Diary:
    """The writing side."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(
        self,
        what: What,
        *,
        at: float | None = None,
        partition: int = -1,
        records: Sequence[int] = (),
        offsets: Sequence[int] = (),
        deliveries: Sequence[int] = (),
        words: str = '',
        dues: Sequence[float] = (),
    ) -> None:
        """Add a line; `at` is now when not given."""
        at = time.monotonic() if at is None else at
        entry = Entry(what, at, partition, records, offsets, deliveries, words, dues)
        os.write(self._file, json.dumps(entry, separators=(',', ':')).encode() + b'\n')

    def close(self) -> None:
        os.close(self._file)


class DiaryReader:
    """The reading side; reads on while the worker writes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._position = 0

    def read(self) -> list[Entry]:
        """The whole lines that have come since the last call."""
        if not self._path.exists():
            return []
        with self._path.open('rb') as file:
            file.seek(self._position)
            data = file.read()
        whole = data[: data.rfind(b'\n') + 1]
        self._position += len(whole)
        return [Entry(*json.loads(line)) for line in whole.splitlines()]
