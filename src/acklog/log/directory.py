"""The data directory: one process's logs, and what is kept about all of them.

On disk (format 1):

    format       `acklog data, format 1\\n`; a newer format is refused, an older one would be converted here
    lock         locked (flock) by the process that uses the directory; holds its number
    run          JSON: `epoch`, leader epoch of this run, and `identity` of the machine's run, empty as long as a log
                 may have lost something when the machine was down; replaced at each start
    clean        after a clean close only: a line with a CRC, then JSON with the segments of every log; removed at start
    reserve      space set aside for internal logs
    marks-kept   every log with a failed sync has a mark that says so, see `acklog.log.marks`
    logs/<name>/ one log, named `<topic id>-<partition>`, or as an internal one; see `acklog.log.segment`
    logs/*.deleted/  one that is being removed

The promise: a later version reads the formats of all earlier ones, and converts when it opens the directory; an
earlier version refuses a later format and changes nothing.

Strategy: opening reads a few small files. A log that the clean file knows is opened without touching its files; any
other one is recovered when it is opened. Without a clean file the leader epoch goes up first, durably.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from acklog.errors import Closed, ConfigError
from acklog.log.files import Files, OsFiles, log_error, remove_tree
from acklog.log.loaded_indexes import LoadedIndexes
from acklog.log.local import LocalLog
from acklog.log.open_files import OpenFiles
from acklog.log.reserve import Reserve
from acklog.log.run import Run, is_deleted
from acklog.log.seam import Log, LogConfig
from acklog.log.shared import Shared
from acklog.log.store import Store
from acklog.log.sync import Syncer

DAY_MS = 24 * 3_600_000
_CLOSERS = 32

_log = logging.getLogger(__name__)

_NAME = re.compile(r'[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}')


class DataDirectory:
    """An `Opener` of local logs. Making one locks the directory and looks at it; `close` in the end.

    `reserve_bytes`: space kept for internal logs; `open_files`: how many files stay open; `producer_idle_ms`: when an
    idempotent producer that appends nothing is forgotten. Raises ConfigError (in use, newer format, not ours), OSError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        files: Files | None = None,
        *,
        reserve_bytes: int = 64 << 20,
        open_files: int = 2048,
        producer_idle_ms: int = DAY_MS,
    ) -> None:
        self.path = os.fspath(path)
        self._files = files or OsFiles()
        self._open: dict[str, LocalLog] = {}
        self._spoilt = False  # a log could not be closed cleanly
        self._closing = False
        self._recovering = asyncio.Lock()
        self._run = Run(self._files, self.path, reserve_bytes)
        try:
            self._shared = Shared(
                self._files,
                OpenFiles(self._files, open_files),
                Syncer(),
                LoadedIndexes(),
                Reserve(self._files, self.path, reserve_bytes),
                self._run.marks,
                f'{self.path}/logs',
                self._run.epoch,
                producer_idle_ms,
            )
            self._names = self._found()
        except BaseException:
            self._run.let_go()
            raise

    @property
    def epoch(self) -> int:
        """Leader epoch of all logs in this run."""
        return self._shared.epoch

    def names(self) -> Sequence[str]:
        return sorted(self._names)

    async def open(self, name: str, config: LogConfig, *, internal: bool = False) -> Log:
        """See `Opener.open`. A log that is open already is given again. Raises Damaged, Failed, Closed."""
        self._check_open()
        log = self._open.get(name)
        if log is not None:
            return log
        if not _NAME.fullmatch(name) or name.endswith(('.deleted', '.')):
            raise ConfigError('log name', name, 'letters, digits, -, _ and .')
        store = Store(self._shared, f'{self._shared.logs}/{name}', config)
        record = self._run.records.pop(name, None)
        if record is not None:
            store.from_record(record)
        elif name in self._names:
            async with self._recovering:  # one after the other: never two threads at the files of one log
                self._check_open()
                log = self._open.get(name)
                if log is not None:  # somebody else was faster
                    return log
                try:
                    await asyncio.to_thread(self._recover, name, store)
                except OSError as error:
                    raise log_error(store.path, error) from error
                self._check_open()
        self._names.add(name)
        log = self._open[name] = LocalLog(name, store, internal=internal, on_close=self._closed)
        await log.mended()
        return log

    def _recover(self, name: str, store: Store) -> None:
        store.recover(same_run=self._run.same_run, marks_kept=self._run.marks.kept)
        self._run.recovered(name)

    def _check_open(self) -> None:
        if self._closing:
            raise Closed(f'{self.path} is closed')

    async def close(self) -> None:
        """Close all logs; the next start opens no segment. Raises the first error of a log that could not be closed."""
        if self._run.ended:
            return
        self._closing = True
        async with self._recovering:  # no thread is at the files of a log any more
            pass
        with ThreadPoolExecutor(_CLOSERS, 'acklog-close') as self._shared.closers:  # a disk syncs many files at once
            results = await asyncio.gather(*[log.close() for log in self._open.values()], return_exceptions=True)
        await asyncio.to_thread(self._end_run)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def abandon(self) -> None:
        """Let go of the directory as a killed process does: nothing more is written, waiting calls raise Closed."""
        self._closing = True
        for log in list(self._open.values()):
            log.abandon()
        self._open.clear()
        self._shared.syncer.stop()
        self._shared.open_files.close()
        self._run.let_go()

    # --- start and end

    def _found(self) -> set[str]:
        names = set()
        for name in self._files.listdir(self._shared.logs):
            if is_deleted(name):
                remove_tree(self._files, f'{self._shared.logs}/{name}')
            else:
                names.add(name)
        self._run.records = {name: record for name, record in self._run.records.items() if name in names}
        return names

    def _closed(self, log: LocalLog, deleted: bool) -> None:
        self._open.pop(log.name, None)
        if deleted or not log.store.made:
            self._names.discard(log.name)
            self._run.records.pop(log.name, None)
        elif log.clean:
            self._run.records[log.name] = log.store.record()
        else:
            self._spoilt = True

    def _end_run(self) -> None:
        self._shared.syncer.stop()
        self._shared.open_files.close()
        self._run.end(all_clean=not self._spoilt)
