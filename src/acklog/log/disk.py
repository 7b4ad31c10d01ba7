"""What waits for the disk: syncing a log, closing it, cutting off its start, writing it anew. All of it runs in
threads.

Strategy: functions over a `Store`, which the loop goes on using meanwhile. They read what the loop only ever replaces
or lets grow, and change only what the loop does not touch: `synced`, `fresh` and `complete` of segments, and index
files of segments that are rolled. Files of dirty segments stay open as long as they are dirty, so a handle is good
until the loop has `settled`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec

from acklog.log import start_file
from acklog.log.files import NO_SPACE, log_error, remove_tree
from acklog.log.recovery import Loaded
from acklog.log.rewrite import rewrite
from acklog.log.segment import Segment
from acklog.log.store import Store

_log = logging.getLogger(__name__)

P = ParamSpec('P')


async def in_thread(
    call: Callable[Concatenate[Store, P], None], store: Store, *arguments: P.args, **options: P.kwargs
) -> None:
    """Run one of these. Raises LogError."""
    try:
        await asyncio.to_thread(call, store, *arguments, **options)
    except OSError as error:
        raise log_error(store.path, error) from error


def sync(store: Store, *, closing: bool = False) -> None:
    """Put on disk all that was written before the call; when `closing`, all but the directory's entries. Raises
    OSError.

    The segments go in order, and a rolled one is known as complete before the next one is synced: so what is broken
    with synced bytes behind it was never a torn tail.
    """
    files = store.files
    for segment in store.dirty:
        rolled, size = segment.rolled, segment.size  # in this order: a rolled segment does not grow
        store.shared.sync_directory(store.made_as)
        if segment.fresh and not closing:
            files.fsync_dir(store.path)
            segment.fresh = False
        _fdatasync(store, segment)
        segment.synced = size
        if rolled and segment.completable:
            try:
                segment.complete_on_disk(files, first=segment is store.segments[0])
            except OSError as error:  # the bytes are on disk; only that this is so is not
                _log.warning('%s: %s', segment.index_path, error)


def _fdatasync(store: Store, segment: Segment) -> None:
    if segment.handle >= 0:
        store.files.fdatasync(segment.handle)
        return
    handle = store.files.open(segment.path)  # written before an unclean end, and not since
    try:
        store.files.fdatasync(handle)
    finally:
        store.files.close(handle)


def finish(store: Store) -> None:
    """At a clean close: put all on disk, and what the next opening needs. Raises OSError."""
    if store.sync_failed:
        raise OSError(errno.EIO, os.strerror(errno.EIO), store.path)
    fresh = any(each.fresh for each in store.segments)
    try:
        sync(store, closing=True)
    except OSError:
        store.leave_mark()  # at once, not only when the loop hears of it
        raise
    if not store.sealed:
        fresh = fresh or not store.segments[-1].index_size
        store.seal()
    if fresh:
        store.files.fsync_dir(store.path)


def start_at(store: Store, offset: int) -> None:
    """Write the file `start`, durably; on a full disk with the help of the reserve. Raises OSError."""
    store.shared.sync_directory(store.made_as)
    while True:
        try:
            start_file.write(store.files, store.path, offset)
            return
        except OSError as error:
            if error.errno not in NO_SPACE or not store.shared.reserve.give():
                raise


def sync_index(store: Store, segment: Segment) -> None:
    """Put an index file on disk, and that it is there. Raises OSError; then the file is gone."""
    files = store.files
    handle = files.open(segment.index_path)
    try:
        files.fdatasync(handle)
    except OSError:
        segment.remove_index(files)
        raise
    finally:
        files.close(handle)
    files.fsync_dir(store.path)


def remove(store: Store, segments: Sequence[Segment]) -> None:
    """Remove dropped segments, the oldest first. Their handles are closed. Raises OSError."""
    for each in segments:
        each.remove(store.files)
        store.files.fsync_dir(store.path)  # one by one: never is one missing between two others


def remove_log(store: Store, path: str) -> None:
    """Remove a log whose directory has been renamed to `path`. Raises OSError; what is left goes at the next start."""
    store.files.fsync_dir(store.shared.logs)
    remove_tree(store.files, path)


def rewritten(store: Store, end: int, *, internal: bool) -> Loaded:
    """Put what no sync covered into new files, see `acklog.log.rewrite`. Raises Damaged, OSError."""
    store.leave_mark()  # there may be space for it now
    while True:
        try:
            store.shared.sync_directory(store.made_as)
            return rewrite(store.files, store.path, store.segments, end, store.config.index_interval_bytes)
        except OSError as error:
            if not internal or error.errno not in NO_SPACE or not store.shared.reserve.give():
                raise
