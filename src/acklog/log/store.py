"""What one local log has on disk: its segments and its start, opened when first needed.

Strategy: a log that was closed cleanly is known from the directory's checkpoint alone (`from_record`); its files are
looked at when somebody reads or appends. Otherwise `recover` reads what has to be read. Nothing here waits for a disk
to sync; that is `acklog.log.disk`, which works on a store in threads.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from contextlib import suppress

from acklog.log.files import Files
from acklog.log.index import ALL_PRODUCERS, Index
from acklog.log.producers import Producers
from acklog.log.recovery import SYNC_FAILED, Loaded, load
from acklog.log.seam import LogConfig
from acklog.log.segment import Segment, read_index
from acklog.log.shared import Shared

_log = logging.getLogger(__name__)


class Store:
    """The files of one log. `start` is its first readable offset, `path` its directory, which exists once `made`."""

    __slots__ = (
        '_all_producers',
        '_ready',
        'config',
        'dirty',
        'made',
        'made_as',
        'path',
        'producers',
        'segments',
        'shared',
        'start',
        'sync_failed',
    )

    def __init__(self, shared: Shared, path: str, config: LogConfig) -> None:
        self.shared, self.path, self.config = shared, path, config
        self.segments: list[Segment] = []
        self.dirty: tuple[Segment, ...] = ()  # those with bytes that are not on disk, in order; replaced, never changed
        self.start = 0
        self.producers: Producers | None = None
        self.made = False
        self.made_as = 0
        self.sync_failed = False
        self._ready = False
        self._all_producers = True  # to be written with the next chunk

    @property
    def files(self) -> Files:
        return self.shared.files

    @property
    def end(self) -> int:
        """Offset behind what is written."""
        return max(self.segments[-1].next, self.start) if self.segments else self.start

    @property
    def size(self) -> int:
        return sum(each.size for each in self.segments)

    def from_record(self, record: Sequence[object]) -> None:
        """Take what `record` gave at the clean close."""
        self.start, *rest = record  # type: ignore[assignment]
        self.made_as = self.shared.directories
        for fields in rest:
            segment = Segment(self.path, 0)
            segment.restore(fields)  # type: ignore[arg-type]
            self.segments.append(segment)
        self.made = True

    def record(self) -> list[object]:
        """What the checkpoint of a clean close keeps: [start, segment, ...]."""
        return [self.start, *(each.record() for each in self.segments)]

    def recover(self, *, same_run: bool, marks_kept: bool) -> None:
        """Look at the files. Raises Damaged, OSError; FileNotFoundError when there are none."""
        interval = self.config.index_interval_bytes
        try:
            found = load(self.files, self.path, same_run=same_run, marks_kept=marks_kept, interval=interval)
        except FileNotFoundError:
            raise
        except OSError:
            self.leave_mark()  # it may have been a sync
            raise
        self.adopt(found)
        self.made_as = self.shared.another_directory()  # whoever made it may not have come to sync that

    def adopt(self, found: Loaded) -> None:
        """Take what has been found on disk."""
        self.segments, self.producers, self.sync_failed = found.segments, found.producers, found.sync_failed
        self.start = max(self.start, found.start, found.segments[0].base if found.segments else 0)
        self.made = True
        self._all_producers = False
        self.dirty = tuple(each for each in self.segments if each.synced < each.size)
        self._ready = bool(self.segments) and not self.segments[-1].rolled and self.segments[-1].next >= self.start

    def active(self) -> Segment:
        """The segment to append to, with its index and the producers loaded. Raises Damaged, OSError."""
        if not self._ready:
            self._make_ready()
        return self.segments[-1]

    def _make_ready(self) -> None:
        if not self.made:
            with suppress(FileExistsError):  # the one before this failed, and had made it
                self.files.mkdir(self.path)
            self.made_as = self.shared.another_directory()
            self.made = True
        if self.producers is None and self.segments:
            producers = Producers()
            found = read_index(self.files, self.segments[-1], producers, self.config.index_interval_bytes)
            if found.all_producers:
                self.segments[-1].take_index(found)
                self.producers, self._all_producers = producers, False
            else:
                self.recover(same_run=True, marks_kept=True)
        if self.producers is None:
            self.producers = Producers()
        if not self.segments or self.segments[-1].rolled or self.segments[-1].next < self.start:
            self.roll()
        self._ready = True

    def known_producers(self) -> Producers:
        self.active()
        producers = self.producers
        assert producers is not None
        return producers

    def roll(self) -> Segment:
        """Begin another segment at `end`. Raises OSError."""
        segment = Segment(self.path, self.end)
        segment.index = Index()
        last = self.segments[-1] if self.segments else None
        if last is not None:
            if last.size == 0 and last.base == segment.base and not last.rolled:
                return last
            if not last.rolled:
                self.mark()
        handle = self.files.open(segment.path, create=True)
        try:
            if self.files.size(handle):  # somebody else's; never ours
                self.files.truncate(handle, 0)
        finally:
            self.files.close(handle)
        if last is not None:
            last.rolled = True
            if last.size and not last.complete and last not in self.dirty:
                self.dirty = (*self.dirty, last)
            last.index = None if last.marked == last.size else last.index
        self.segments.append(segment)
        self._all_producers = True
        if self.producers:
            self.mark()
        return segment

    def write_to(self, segment: Segment) -> int:
        """A handle to append with; the segment counts as dirty from here on. Raises OSError."""
        if segment.handle < 0:
            self._hold(segment)
        return segment.handle

    def _hold(self, segment: Segment) -> None:
        segment.handle = self.shared.open_files.hold(segment.path, create=True)
        if segment not in self.dirty:
            self.dirty = (*self.dirty, segment)

    def mark(self, *, always: bool = False) -> None:
        """Add to the index file what it does not speak of yet. What fails here costs time after an unclean end, no
        more.
        """
        segment, producers = self.segments[-1], self.producers
        if producers is None or not (always or segment.marked < segment.size or not segment.index_size):
            return
        everything = self._all_producers or not segment.index_size
        encoded = producers.encode_all() if everything else producers.encode_changed()
        first = not segment.index_size
        try:
            segment.write_chunk(self.files, segment.chunk(ALL_PRODUCERS if everything else 0, encoded))
            self._all_producers = False
            if first:
                segment.snapshot_late = segment.size > segment.synced
        except OSError as error:
            self._all_producers = True
            _log.warning('%s: %s', segment.index_path, error)

    def settle(self) -> None:
        """After a sync, in the loop: what is on disk is no longer dirty."""
        clean = [each for each in self.dirty if each.synced == each.size]
        if clean:
            self.dirty = tuple(each for each in self.dirty if each.synced < each.size)
            for each in clean:
                if each.handle >= 0:
                    each.handle = -1
                    self.shared.open_files.release(each.path)

    def sync_has_failed(self) -> None:
        """Tell whoever opens this log next that what the operating system has may never reach the disk."""
        self.sync_failed = True
        self.leave_mark()

    def leave_mark(self) -> None:
        """The mark for that, in any thread: left before anybody hears of the failed sync."""
        try:
            self.files.close(self.files.open(f'{self.path}/{SYNC_FAILED}', create=True))
        except OSError as error:
            _log.warning('%s/%s: %s', self.path, SYNC_FAILED, error)
            self.shared.marks.lost()

    @property
    def sealed(self) -> bool:
        """The index file of the last segment says all, on disk; so there is nothing to do at a clean close."""
        if not self._ready:
            return True
        last = self.segments[-1]
        return last.marked_synced == last.size == last.marked and not (last.size == 0 and self.producers)

    def index_of(self, segment: Segment) -> Index:
        """Its index, loaded if need be; a bounded number of them stay. Raises Damaged, OSError."""
        if segment is self.segments[-1] and not segment.rolled:
            self.active()
            segment = next((each for each in self.segments if each.base == segment.base), segment)
            if segment.index is not None:
                return segment.index
        return self.shared.indexes.loaded(segment, self.files, self.config.index_interval_bytes)

    def below(self, offset: int) -> int:
        """How many segments hold nothing at or above `offset`; the last one always stays."""
        count = 0
        while count < len(self.segments) - 1 and self.segments[count + 1].base <= offset:
            count += 1
        return count

    def snapshot_alone(self, count: int) -> bool:
        """Whether the index file of the last segment alone names the producers when `count` segments are removed."""
        return bool(self.producers) and not any(each.complete for each in self.segments[count:])

    def snapshot_usable(self) -> bool:
        """Whether that file begins with all producers, or can be made to: as they were when the segment began, for of
        what it says of later batches nothing counts that no sync has covered."""
        last = self.segments[-1]
        return not last.size or (last.index_size > 0 and not last.snapshot_late)

    def write_snapshot(self) -> None:
        """Have that file begin with all producers. Raises OSError."""
        last = self.segments[-1]
        while not last.index_size:
            self.mark(always=True)
            if self._all_producers and not self.shared.reserve.give():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), last.index_path)

    def begin_index_anew(self, segment: Segment) -> None:
        """Its index file is gone, or of no use."""
        segment.begin_index_anew()
        self._all_producers = True

    def seal(self) -> None:
        """In a thread, at a clean close, when all bytes are on disk: let the index file say all, durably. OSError."""
        segment, producers = self.segments[-1], self.producers
        assert producers is not None
        chunk = segment.chunk(ALL_PRODUCERS, producers.encode_all())
        segment.write_chunk(self.files, chunk, sync=True, first=segment is self.segments[0])

    def close_files(self) -> None:
        for each in self.segments:
            each.handle = -1
            self.shared.open_files.forget(each.path)
        self.dirty = ()
