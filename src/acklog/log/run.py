"""One process's run of a data directory: the lock, what the last run left, and what the next one has to know.

Strategy: `run` says at once what an unclean end would mean, `clean` at the end that there was none. A run names the
machine's run only when no log is left that may have lost something when the machine was down: a process that ends
before it has come to all of them leaves the rest to the next one as they were.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import crc32c as _crc32c

from acklog.errors import ConfigError, Damaged
from acklog.log.files import NO_SPACE, Files, read_file, replace_file, write_all
from acklog.log.marks import Marks
from acklog.log.reserve import give_some

FORMAT = 1

_log = logging.getLogger(__name__)

_FORMAT_LINE = re.compile(rb'acklog data, format (\d+)\n')


class Run:
    """Begins with being made, and ends with `end` or `let_go`.

    `epoch`: leader epoch of all logs; `same_run`: the machine has not gone down since the last run; `marks`: see there;
    `records`: of logs that were closed cleanly and have not been opened since, by name. Raises ConfigError (in use,
    newer format, not ours), Damaged, OSError.
    """

    def __init__(self, files: Files, path: str, reserve_bytes: int) -> None:
        self._files, self._path = files, path
        self.records: dict[str, Sequence[Any]] = {}
        self._unclean: set[str] = set()  # logs that the last run did not close cleanly, not opened since
        self._lock = self._take_lock()
        try:
            self._check_format()
            self._make(f'{path}/logs')
            try:
                self._begin()
            except OSError as error:
                if error.errno not in NO_SPACE or not give_some(files, path, reserve_bytes):
                    raise
                self._begin()
        except BaseException:
            self.let_go()
            raise

    @property
    def ended(self) -> bool:
        return self._lock < 0

    def recovered(self, name: str) -> None:
        """The files of that log have been looked at. In a thread, one after the other."""
        self._unclean.discard(name)
        if not self._unclean and not self.same_run:
            try:
                self._write_run()
            except OSError as error:
                _log.warning('%s/run: %s; an unclean start may take longer', self._path, error)

    def end(self, *, all_clean: bool) -> None:
        """Say what `records` has to the next run; `all_clean`: no log of this one could not be closed."""
        all_clean = all_clean and not self._unclean
        body = json.dumps({'all': all_clean, 'logs': self.records}, separators=(',', ':')).encode()
        try:
            replace_file(self._files, self._path, 'clean', b'acklog clean %08x\n' % _crc32c.crc32c(body) + body)
        except OSError as error:
            _log.warning('%s/clean: %s; the next start looks at all logs', self._path, error)
        self._files.close(self._lock)
        self._lock = -1

    def let_go(self) -> None:
        """Without a word to the next one, as a killed process does."""
        with suppress(OSError):
            self._files.close(self._lock)
        self._lock = -1

    # --- the beginning

    def _take_lock(self) -> int:
        self._make(self._path)
        try:
            handle = self._files.lock(f'{self._path}/lock')
        except BlockingIOError:
            owner = read_file(self._files, f'{self._path}/lock').decode(errors='replace').strip()
            raise ConfigError('data', self._path, f'process {owner} uses this directory; one at a time can') from None
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
            found = read_file(self._files, f'{self._path}/format')
        except FileNotFoundError:
            others = set(self._files.listdir(self._path)) - {'lock', 'lost+found', 'format.new'}
            if others:
                raise ConfigError('data', self._path, 'an empty directory, or one that acklog has made') from None
            replace_file(self._files, self._path, 'format', b'acklog data, format %d\n' % FORMAT)
            return
        match = _FORMAT_LINE.fullmatch(found)
        if match is None:
            raise ConfigError('data', self._path, 'a directory of acklog; its file `format` cannot be read')
        if int(match[1]) > FORMAT:
            raise ConfigError(
                'data',
                self._path,
                f'format {int(match[1])} was written by a newer acklog; this one knows up to {FORMAT}',
            )

    def _begin(self) -> None:
        """Read what the last run left, and leave for the next one what it has to know if this one ends uncleanly."""
        identity = self._files.identity(self._lock)
        last = self._last_run()
        self.same_run = bool(identity) and last['identity'] == identity
        clean = self._read_clean()
        epoch: int = last['epoch']
        if clean is None or not clean['all'] or epoch < 0:
            epoch += 1
        if clean is not None:
            self.records = clean['logs']
        self.epoch, self._identity = epoch, identity
        there = self._files.listdir(f'{self._path}/logs')
        self._unclean = {each for each in there if not is_deleted(each)} - self.records.keys()
        self._write_run()
        was_down = bool(identity) and last['identity'] not in ('', identity)
        self.marks = Marks(
            self._files, self._path, none_missing=epoch == 0 or was_down or (clean is not None and clean['all'])
        )
        if clean is not None:
            self._files.unlink(f'{self._path}/clean')
            self._files.fsync_dir(self._path)

    def _write_run(self) -> None:
        """With this run's identity only when no log is left that may have lost something when the machine was down."""
        identity = self._identity if self.same_run or not self._unclean else ''
        replace_file(self._files, self._path, 'run', json.dumps({'epoch': self.epoch, 'identity': identity}).encode())

    def _last_run(self) -> dict[str, Any]:
        path = f'{self._path}/run'
        try:
            last = json.loads(read_file(self._files, path))
            return {'epoch': int(last['epoch']), 'identity': str(last['identity'])}
        except FileNotFoundError:
            if self._files.listdir(f'{self._path}/logs'):
                raise Damaged(f'{path}: at 0: there is no such file, but there are logs') from None
            return {'epoch': -1, 'identity': ''}
        except (ValueError, TypeError, LookupError):  # a guess could use an epoch for the second time
            raise Damaged(f'{path}: at 0: not as it was written') from None

    def _read_clean(self) -> dict[str, Any] | None:
        try:
            data = read_file(self._files, f'{self._path}/clean')
        except FileNotFoundError:
            return None
        head, _, body = data.partition(b'\n')
        if head != b'acklog clean %08x' % _crc32c.crc32c(body):
            _log.warning('%s/clean: not as it was written; the logs are looked at one by one', self._path)
            return {'all': False, 'logs': {}}
        found: dict[str, Any] = json.loads(body)
        return found


def is_deleted(name: str) -> bool:
    """Whether a directory below `logs` is what is left of a log."""
    return name.endswith('.deleted')
