"""Removing the segments below a log's start.

Strategy: the start has been moved; now whole segments go that hold nothing from there on. Before that the sync thread
must be done with them, and what they alone say of producers must be on disk elsewhere: in the index file that the next
segment begins with, and with all that lies before that. Only when the files are gone does the log forget the segments,
so what could not be removed is tried again the next time.
"""

from __future__ import annotations

import asyncio

from acklog.log import disk
from acklog.log.appender import Appender
from acklog.log.files import log_error
from acklog.log.reader import Reader
from acklog.log.store import Store


async def drop_below(store: Store, appender: Appender, reader: Reader, offset: int) -> None:
    """Remove whole segments below; nobody else may do so meanwhile. Raises LogError."""
    while any(each in store.dirty for each in store.segments[: store.below(offset)]):
        await appender.flush()
        appender.check_open()
    if not store.below(offset):
        return
    while store.snapshot_alone(store.below(offset)):
        if not store.snapshot_usable():
            appender.roll()
        elif any(each in store.dirty for each in store.segments[:-1]):
            await appender.flush()  # what is cut off after a power loss takes along what lies behind it
            appender.check_open()
        else:
            break
    dropped = store.segments[: store.below(offset)]
    reader.forget()
    for each in dropped:
        store.shared.open_files.forget(each.path)
    if store.snapshot_alone(len(dropped)):
        await _sync_snapshot(store)
    await disk.in_thread(disk.remove, store, dropped)
    store.segments = [each for each in store.segments if each not in dropped]


async def _sync_snapshot(store: Store) -> None:
    """Put the index file on disk that alone will name the producers."""
    last = store.segments[-1]
    try:
        store.write_snapshot()
        await asyncio.to_thread(disk.sync_index, store, last)
    except OSError as error:
        store.begin_index_anew(last)  # a failed sync: another one of the same file would prove nothing
        raise log_error(store.path, error) from error
