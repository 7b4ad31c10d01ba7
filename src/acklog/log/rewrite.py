"""After a failed write or sync: what no sync had covered is put into new files.

Once a sync has failed, the operating system may have dropped the bytes or taken them for written, so another sync of
the same file proves nothing. The bytes are therefore read back, checked by their CRC, written to a new file and synced
there; only then is the old file cut back. The new file is named by the first offset in it; a crash in between leaves a
`*.new` file, or an overlap that the next opening resolves (offsets at or above a later segment's base do not count).

What cannot be read back, or is not sound, makes the whole attempt fail: the log goes on refusing writes until it is
opened anew, which cuts it there. The old file is cut back only when nobody reads from it any more (`trim`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from acklog.errors import Damaged
from acklog.log.files import Files, write_all
from acklog.log.recovery import SYNC_FAILED, Loaded, load
from acklog.log.scan import WINDOW, Walk
from acklog.log.segment import Segment


def rewrite(files: Files, directory: str, segments: Sequence[Segment], end: int, interval: int) -> Loaded:
    """Put all unsynced bytes of these segments on disk, in order; returns the log as it is then. In a thread.

    `end`: offset behind what is written, which must not change. Raises Damaged, OSError.
    """
    for segment in segments:
        if segment.synced < segment.size:
            _rewrite(files, directory, segment)
        else:
            with suppress(FileNotFoundError):  # half removed
                _cut(files, segment)  # a failed write may have left something behind
    found = load(files, directory, same_run=True, marks_kept=True, interval=interval)
    if found.segments and max(found.segments[-1].next, found.start) != end:
        raise Damaged(f'{directory}: ends at {found.segments[-1].next} now, not at {end}')
    with suppress(FileNotFoundError):
        files.unlink(f'{directory}/{SYNC_FAILED}')
    files.fsync_dir(directory)
    for segment in found.segments:
        segment.synced = segment.size
        segment.fresh = False
        if segment.rolled and segment.completable:
            segment.complete_on_disk(files, first=segment is found.segments[0])
    return found._replace(sync_failed=False)


def trim(files: Files, segments: Sequence[Segment]) -> None:
    """Cut off what lies behind the end of segments that are followed by others. In a thread; errors do no harm."""
    for segment in segments:
        with suppress(OSError):
            _cut(files, segment)


def _cut(files: Files, segment: Segment) -> None:
    handle = files.open(segment.path)
    try:
        if files.size(handle) > segment.size:
            files.truncate(handle, segment.size)
    finally:
        files.close(handle)


def _rewrite(files: Files, directory: str, segment: Segment) -> None:
    old = files.open(segment.path)
    try:
        first = _check(files, segment, old)
        path = f'{directory}/{first:020d}.log'
        _copy(files, old, segment, f'{path}.new')
        files.rename(f'{path}.new', path)
        files.fsync_dir(directory)
    finally:
        files.close(old)
    if segment.synced:  # else it is the segment's own, which may be all that tells of producers
        with suppress(FileNotFoundError):
            files.unlink(f'{directory}/{first:020d}.index')


def _check(files: Files, segment: Segment, handle: int) -> int:
    """First offset of the unsynced part, which is sound."""
    walk = Walk(files, handle, segment.synced, segment.size, segment.base)
    first = -1
    for batch in walk:
        first = batch.first if first < 0 else first
    if walk.fault or first < 0:
        raise Damaged(f'{segment.path}: at {walk.position}: {walk.fault}')
    return first if segment.synced else segment.base


def _copy(files: Files, old: int, segment: Segment, path: str) -> None:
    fresh = files.open(path, create=True)
    try:
        files.truncate(fresh, 0)
        position = segment.synced
        while position < segment.size:
            data = files.pread(old, min(WINDOW, segment.size - position), position)
            if not data:
                raise Damaged(f'{segment.path}: at {position}: the file ends')
            write_all(files, fresh, [data], position - segment.synced)
            position += len(data)
        files.fdatasync(fresh)
    finally:
        files.close(fresh)
