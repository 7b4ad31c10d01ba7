"""Opening a log that was not closed cleanly: what is there, where it ends, who its producers are.

Strategy: a segment that is complete (its index file ends with such a chunk) is not read. Of any other one, only what
the index file does not vouch for: after a crash of the process the operating system still has all that was written, so
that is what lies behind the last chunk; after a crash of the machine it is what lies behind the last byte known to be
synced. There the batches are walked over and their CRCs checked.

    broken at or above the synced part of the last segment      a torn tail: cut, with a line in the log
    broken below the synced part, or with synced bytes behind   Damaged: file and position; nothing is changed
    an index file that tells of synced bytes, and no segment    Damaged

A file `sync-failed` in the directory says that a sync failed (`acklog.log.marks`): then what the operating system has
may not be what a later sync puts on disk, so all above the synced part is written anew (`acklog.log.rewrite`).
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from acklog.errors import Damaged
from acklog.log import start_file
from acklog.log.files import Files
from acklog.log.index import ALL_PRODUCERS, COMPLETE, Chunk
from acklog.log.producers import Producers
from acklog.log.segment import Segment, chunks_of, fold, read_trailer, walk_on

_log = logging.getLogger(__name__)

SYNC_FAILED = 'sync-failed'


class Loaded(NamedTuple):
    """A log as found on disk. `segments` may be empty."""

    segments: list[Segment]
    start: int
    producers: Producers
    sync_failed: bool


def load(files: Files, directory: str, *, same_run: bool, marks_kept: bool, interval: int) -> Loaded:
    """What is in the directory of a log. `same_run`: the machine has not gone down since the last write; `marks_kept`:
    a log without a `sync-failed` had no failed sync.

    Raises Damaged, OSError (FileNotFoundError when there is no such directory).
    """
    while (found := _loaded(files, directory, same_run, marks_kept, interval)) is None:
        pass
    return found


def _loaded(files: Files, directory: str, same_run: bool, marks_kept: bool, interval: int) -> Loaded | None:
    """None when something had to be cut off: what is left is to be looked at anew, for what segments behind the cut
    say of producers does not count."""
    names = files.listdir(directory)
    for name in names:
        if name.endswith('.new'):
            files.unlink(f'{directory}/{name}')
    same_run = same_run and marks_kept and SYNC_FAILED not in names
    segments = [Segment(directory, base) for base in sorted(int(name[:-4]) for name in names if name.endswith('.log'))]
    _check_missing(files, directory, names, [each.base for each in segments])
    start = start_file.read(files, directory)
    segments = _without_empty(files, segments)
    producers = Producers()
    from_here = _producers_from(files, segments, same_run)
    for number, segment in enumerate(segments):
        below = _below(segments, number)
        segment.rolled = number + 1 < len(segments)
        fault = _load(files, segment, below, producers if number >= from_here else None, same_run, interval)
        if fault is None and below is not None and segment.next < below and start < below:
            fault = f'offsets from {segment.next} up to {below} are missing'
        if fault is not None:
            _cut(files, segments[number:], fault, same_run)
            return None
        if segment.rolled and number >= from_here:
            _mark(files, segment, producers)
    if _drop_orphan(files, segments, start, same_run):
        return None
    for segment in segments:
        segment.own = segment.size
        if segment.rolled:
            segment.index = None
    unsure = not marks_kept and any(each.synced < each.size for each in segments)
    return Loaded(segments, start, producers, unsure or SYNC_FAILED in names)


def _mark(files: Files, segment: Segment, producers: Producers) -> None:
    """Let the index file of a segment that does not grow speak of what had to be walked over."""
    if segment.marked < segment.size:
        try:
            segment.write_chunk(files, segment.chunk(ALL_PRODUCERS, producers.encode_all()))
        except OSError as error:
            _log.warning('%s: %s', segment.index_path, error)


def _without_empty(files: Files, segments: list[Segment]) -> list[Segment]:
    """Fill in the sizes of the files, and remove empty ones that nothing was ever written to, but for the last one:
    they are left over from a segment that could not be begun, and say nothing of where the one before ends."""
    kept = []
    for segment in segments:
        handle = files.open(segment.path)
        try:
            segment.size = files.size(handle)
        finally:
            files.close(handle)
        if segment.size or segment is segments[-1] or any(each.synced for each in chunks_of(files, segment)):
            kept.append(segment)
        else:
            segment.remove(files)
    return kept


def _drop_orphan(files: Files, segments: list[Segment], start: int, same_run: bool) -> bool:
    """The same for the last one, once it is known where the one before it ends; says whether it did. It begins above
    that when what was written between them is lost."""
    if len(segments) < 2 or segments[-1].size:
        return False
    last, end = segments[-1], segments[-2].next
    if last.base == end or end < last.base <= start:
        return False
    if end < last.base:
        missing = f'{last.path}: at 0: offsets from {end} up to {last.base} are missing'
        if same_run:
            raise Damaged(missing)
        _log.warning('%s; no sync had covered them', missing)
    last.remove(files)
    return True


def _check_missing(files: Files, directory: str, names: list[str], bases: list[int]) -> None:
    """Index files without a segment are left over from one whose entry in the directory no sync had covered; but if
    they say that some of it was on disk, somebody has taken it away."""
    for base in {int(name[:-6]) for name in names if name.endswith('.index')} - set(bases):
        segment = Segment(directory, base)
        synced = max((chunk.synced for chunk in chunks_of(files, segment)), default=0)
        if synced:
            raise Damaged(f'{segment.path}: at 0: there is no such file, {synced} bytes of it were on disk')
        files.unlink(segment.index_path)


def _below(segments: list[Segment], number: int) -> int | None:
    """Offsets from here on do not count in that segment."""
    return next((each.base for each in segments[number + 1 :] if each.size), None)


def _producers_from(files: Files, segments: list[Segment], same_run: bool) -> int:
    """Number of the last segment whose index file begins with all producers, in a chunk that can be believed."""
    for number in range(len(segments) - 1, 0, -1):
        segment = segments[number]
        chunks, _ = _vouched(files, segment, _below(segments, number), same_run, segment.size)
        if chunks and chunks[0].flags & ALL_PRODUCERS:
            return number
    return 0


def _load(
    files: Files, segment: Segment, below: int | None, producers: Producers | None, same_run: bool, interval: int
) -> str | None:
    """Fill in the segment, whose `size` is that of its file; returns what is wrong at its end, if anything."""
    there, segment.size = segment.size, 0
    trailer = read_trailer(files, segment)
    if trailer and trailer.written <= there and (below is None or trailer.next_offset <= below):
        segment.complete = segment.rolled = True
        segment.fresh = False
        if producers is None:
            segment.take(trailer)
            segment.synced = segment.size
            return None
    chunks, segment.synced = _vouched(files, segment, below, same_run, there)
    if segment.complete and trailer and not (chunks and chunks[-1].flags & COMPLETE):
        segment.complete = False  # what it says holds, but what it should say of the batches got lost
        segment.synced = max(segment.synced, trailer.written)
    if not chunks and producers:
        chunks = _snapshot(files, segment, producers)
    fold(segment, chunks, producers)
    segment.snapshot_late = bool(chunks) and chunks[0].written > segment.synced
    _cut_index(files, segment)
    if segment.complete:
        return None
    fault = walk_on(files, segment, there, below, producers, interval)
    if segment.size < segment.synced:
        raise Damaged(f'{segment.path}: at {segment.size}: {fault or "bytes that were on disk are missing"}')
    return fault


def _snapshot(files: Files, segment: Segment, producers: Producers) -> list[Chunk]:
    """The index file got lost: let it begin anew with all producers, as they were when the segment began."""
    segment.index_size = segment.index_crc = 0
    try:
        segment.write_chunk(files, segment.chunk(ALL_PRODUCERS, producers.encode_all()))
    except OSError as error:
        _log.warning('%s: %s', segment.index_path, error)
    return chunks_of(files, segment)[:1]


def _cut_index(files: Files, segment: Segment) -> None:
    """Cut off chunks that cannot be believed: after other batches have taken the place of those they speak of, and
    another crash of the process, they would be."""
    try:
        handle = files.open(segment.index_path)
    except FileNotFoundError:
        return
    try:
        if files.size(handle) > segment.index_size:
            files.truncate(handle, segment.index_size)
    finally:
        files.close(handle)


def _vouched(files: Files, segment: Segment, below: int | None, same_run: bool, there: int) -> tuple[list[Chunk], int]:
    """The chunks of the index file that can be believed, and how many bytes of the segment are on disk."""
    chunks = [each for each in chunks_of(files, segment) if below is None or each.next_offset <= below]
    synced = max((each.synced for each in chunks), default=0)
    sure = there if same_run else synced
    return [each for each in chunks if each.written <= min(sure, there)], synced


def _cut(files: Files, segments: list[Segment], fault: str, same_run: bool) -> None:
    """Cut the first of these segments behind its last sound batch, and drop the others; or raise Damaged."""
    broken, later = segments[0], segments[1:]
    where = f'{broken.path}: at {broken.size}: {fault}'
    if later and (same_run or any(chunk.synced for each in later for chunk in chunks_of(files, each))):
        raise Damaged(f'{where}; there are sound batches behind')
    handle = files.open(broken.path)
    try:
        lost = files.size(handle) - broken.size
        _log.warning('%s; cut off a tail of %d bytes that no sync had covered', where, lost)
        files.truncate(handle, broken.size)
        files.fdatasync(handle)
    finally:
        files.close(handle)
    for each in reversed(later):
        _log.warning('%s: dropped, it lies behind that cut', each.path)
        each.remove(files)
    if later:
        files.fsync_dir(broken.directory)
