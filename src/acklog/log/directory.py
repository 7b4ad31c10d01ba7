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
import json
import logging
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import crc32c as _crc32c

from acklog.errors import Closed, ConfigError, Damaged
from acklog.log.files import NO_SPACE, Files, OsFiles, log_error, read_file, remove_tree, replace_file, write_all
from acklog.log.loaded_indexes import LoadedIndexes
from acklog.log.local import LocalLog
from acklog.log.marks import Marks
from acklog.log.open_files import OpenFiles
from acklog.log.reserve import Reserve, give_some
from acklog.log.seam import Log, LogConfig
from acklog.log.shared import Shared
from acklog.log.store import Store
from acklog.log.sync import Syncer

FORMAT = 1
DAY_MS = 24 * 3_600_000
_CLOSERS = 32

_log = logging.getLogger(__name__)

_NAME = re.compile(r'[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}')
_FORMAT_LINE = re.compile(rb'acklog data, format (\d+)\n')


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
        self._records: dict[str, Sequence[Any]] = {}  # of cleanly closed logs, not opened since
        self._unclean: set[str] = set()  # logs not closed cleanly by the last run, nor opened since
        self._spoilt = False  # a log could not be closed cleanly
        self._closing = False
        self._recovering = asyncio.Lock()
        self._lock = self._take_lock()
        try:
            self._check_format()
            self._make(f'{self.path}/logs')
            epoch = self._begin_run_on_full_disk(reserve_bytes)
            self._shared = Shared(
                self._files,
                OpenFiles(self._files, open_files),
                Syncer(),
                LoadedIndexes(),
                Reserve(self._files, self.path, reserve_bytes),
                self._marks,
                f'{self.path}/logs',
                epoch,
                producer_idle_ms,
            )
            self._names = self._found()
        except BaseException:
            self._files.close(self._lock)
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
        record = self._records.pop(name, None)
        if record is not None:
            store.from_record(record)
        elif name in self._names:
            async with self._recovering:  # one after the other: never two threads at the files of one log
                self._check_open()
                log = self._open.get(name)
                if log is not None:  # somebody else was faster
                    return log
                try:
                    await asyncio.to_thread(store.recover, same_run=self._same_run, marks_kept=self._marks.kept)
                except OSError as error:
                    raise log_error(store.path, error) from error
                await self._recovered(name)
                self._check_open()
        self._names.add(name)
        log = self._open[name] = LocalLog(name, store, internal=internal, on_close=self._closed)
        await log.mended()
        return log

    async def _recovered(self, name: str) -> None:
        self._unclean.discard(name)
        if not self._unclean and not self._same_run:
            try:
                await asyncio.to_thread(self._write_run)
            except OSError as error:
                _log.warning('%s/run: %s; an unclean start may take longer', self.path, error)

    def _check_open(self) -> None:
        if self._closing:
            raise Closed(f'{self.path} is closed')

    async def close(self) -> None:
        """Close all logs; the next start opens no segment. Raises the first error of a log that could not be closed."""
        if self._lock < 0:
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
        with suppress(OSError):
            self._files.close(self._lock)
        self._lock = -1

    # --- start and end

    def _take_lock(self) -> int:
        self._make(self.path)
        try:
            handle = self._files.lock(f'{self.path}/lock')
        except BlockingIOError:
            owner = read_file(self._files, f'{self.path}/lock').decode(errors='replace').strip()
            raise ConfigError('data', self.path, f'process {owner} uses this directory; one at a time can') from None
        with suppress(OSError):  # for people only; the disk may be full
            self._files.truncate(handle, 0)
            write_all(self._files, handle, [b'%d\n' % os.getpid()], 0)
        return handle

    def _make(self, path: str) -> None:
        try:
            self._files.mkdir(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            self._make(os.path.dirname(path) or '.')
            self._files.mkdir(path)
        self._files.fsync_dir(os.path.dirname(path) or '.')

    def _check_format(self) -> None:
        try:
            found = read_file(self._files, f'{self.path}/format')
        except FileNotFoundError:
            others = set(self._files.listdir(self.path)) - {'lock', 'lost+found', 'format.new'}
            if others:
                raise ConfigError('data', self.path, 'an empty directory, or one that acklog has made') from None
            replace_file(self._files, self.path, 'format', b'acklog data, format %d\n' % FORMAT)
            return
        match = _FORMAT_LINE.fullmatch(found)
        if match is None:
            raise ConfigError('data', self.path, 'a directory of acklog; its file `format` cannot be read')
        if int(match[1]) > FORMAT:
            raise ConfigError(
                'data',
                self.path,
                f'format {int(match[1])} was written by a newer acklog; this one knows up to {FORMAT}',
            )

    def _begin_run_on_full_disk(self, reserve_bytes: int) -> int:
        try:
            return self._begin_run()
        except OSError as error:
            if error.errno not in NO_SPACE or not give_some(self._files, self.path, reserve_bytes):
                raise
        return self._begin_run()

    def _begin_run(self) -> int:
        """Read what the last run left, and leave for the next one what it has to know if this one ends uncleanly."""
        identity = self._files.identity(self._lock)
        last = self._last_run()
        self._same_run = bool(identity) and last['identity'] == identity
        clean = self._read_clean()
        epoch: int = last['epoch']
        if clean is None or not clean['all'] or epoch < 0:
            epoch += 1
        if clean is not None:
            self._records = clean['logs']
        self._epoch, self._identity = epoch, identity
        self._unclean = {each for each in self._files.listdir(f'{self.path}/logs') if not _deleted(each)}
        self._unclean -= self._records.keys()
        self._write_run()
        was_down = bool(identity) and last['identity'] not in ('', identity)
        self._marks = Marks(
            self._files, self.path, none_missing=epoch == 0 or was_down or (clean is not None and clean['all'])
        )
        if clean is not None:
            self._files.unlink(f'{self.path}/clean')
            self._files.fsync_dir(self.path)
        return epoch

    def _write_run(self) -> None:
        """With this run's identity only when no log is left that may have lost something when the machine was down."""
        identity = self._identity if self._same_run or not self._unclean else ''
        replace_file(self._files, self.path, 'run', json.dumps({'epoch': self._epoch, 'identity': identity}).encode())

    def _last_run(self) -> dict[str, Any]:
        path = f'{self.path}/run'
        try:
            last = json.loads(read_file(self._files, path))
            return {'epoch': int(last['epoch']), 'identity': str(last['identity'])}
        except FileNotFoundError:
            if self._files.listdir(f'{self.path}/logs'):
                raise Damaged(f'{path}: at 0: there is no such file, but there are logs') from None
            return {'epoch': -1, 'identity': ''}
        except (ValueError, TypeError, LookupError):  # a guess could use an epoch for the second time
            raise Damaged(f'{path}: at 0: not as it was written') from None

    def _read_clean(self) -> dict[str, Any] | None:
        try:
            data = read_file(self._files, f'{self.path}/clean')
        except FileNotFoundError:
            return None
        head, _, body = data.partition(b'\n')
        if head != b'acklog clean %08x' % _crc32c.crc32c(body):
            _log.warning('%s/clean: not as it was written; the logs are looked at one by one', self.path)
            return {'all': False, 'logs': {}}
        found: dict[str, Any] = json.loads(body)
        return found

    def _found(self) -> set[str]:
        names = set()
        for name in self._files.listdir(self._shared.logs):
            if _deleted(name):
                remove_tree(self._files, f'{self._shared.logs}/{name}')
            else:
                names.add(name)
        self._records = {name: record for name, record in self._records.items() if name in names}
        return names

    def _closed(self, log: LocalLog, deleted: bool) -> None:
        self._open.pop(log.name, None)
        if deleted or not log.store.made:
            self._names.discard(log.name)
            self._records.pop(log.name, None)
        elif log.clean:
            self._records[log.name] = log.store.record()
        else:
            self._spoilt = True

    def _end_run(self) -> None:
        shared = self._shared
        shared.syncer.stop()
        shared.open_files.close()
        body = json.dumps(
            {'all': not (self._spoilt or self._unclean), 'logs': self._records}, separators=(',', ':')
        ).encode()
        try:
            replace_file(self._files, self.path, 'clean', b'acklog clean %08x\n' % _crc32c.crc32c(body) + body)
        except OSError as error:
            _log.warning('%s/clean: %s; the next start looks at all logs', self.path, error)
        self._files.close(self._lock)
        self._lock = -1


def _deleted(name: str) -> bool:
    return name.endswith('.deleted')
