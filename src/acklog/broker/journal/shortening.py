"""Keeping the journal short.

Strategy: old history is dropped by whole segments. The share partition whose history begins earliest holds that up:
when the journal is more than twice what the live state needs, that one is written as a snapshot (a list of events like
any other) and so moves to the end. A mark says where the snapshot was taken; its parts follow, with what others write
in between, and only when the last one is written does the history begin at the mark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from acklog.broker import eager
from acklog.broker.eager import Eager
from acklog.broker.journal import event_codec
from acklog.broker.journal.format import Kind, ShareKey, chunks, mark
from acklog.errors import LogError

if TYPE_CHECKING:
    from acklog.broker.journal.journal import Journal
    from acklog.broker.time import Clock
    from acklog.core.events import Event

SLACK_BYTES = 32 * 1024 * 1024  # the journal may always be this large, whatever the live state needs
SMALL_STATE = 200  # bytes that a share partition without a snapshot is taken to need
TURN_BYTES = 512 * 1024  # of a snapshot; what is more waits for the next batch


class Shortening:
    """Of one journal. `snapshot_of`: the events that rebuild a share partition, None if it cannot be had now."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.snapshot_of: Callable[[ShareKey], Iterable[Event] | None] = lambda key: None
        self._journal, self._clock = journal, clock
        self._number = 0  # of the latest snapshot
        self._under_way = False

    def look(self) -> None:
        """Begin if the journal has become too long. Asked after each batch."""
        size = self._journal.log.size
        if not self._under_way and size > SLACK_BYTES and size > SLACK_BYTES + 2 * self._live_bytes():
            self._under_way = True
            Eager(self.shorten(), self._ended)

    def _live_bytes(self) -> int:
        """What all share partitions would need as snapshots, by their newest ones."""
        journal = self._journal
        return sum(journal.sizes.values()) + SMALL_STATE * (len(journal.bases) - len(journal.sizes))

    def _ended(self, _: None, error: BaseException | None) -> None:
        self._under_way = False
        if error is not None and not isinstance(error, LogError):
            raise error

    async def shorten(self) -> None:
        """Snapshot the share partitions that hold up truncation, until the journal may be cut below its middle."""
        journal, log = self._journal, self._journal.log
        middle = (log.start + log.end) // 2
        while journal.bases:
            key, position = next(iter(journal.bases.items()))
            if position > middle:
                break
            await self.snapshot(key)
            if journal.bases.get(key) == position:  # it could not be had (being folded anew): try again later
                break
        begin = journal.needed_from
        if begin > log.start:
            await log.flush()  # first the snapshots: what is cut off is gone at once, also by a power loss
            await log.truncate_before(begin)
        await log.retain(self._clock(), None)

    async def snapshot(self, key: ShareKey) -> None:
        """Write a share partition anew, so that its history begins here. Raises LogError, and then it does not."""
        journal = self._journal
        events = self.snapshot_of(key)
        if events is None:
            return
        self._number += 1
        number = (journal.log.epoch << 40) + self._number
        journal.add(key, Kind.MARK, mark(number))
        marked = journal.log.end  # the mark comes here or, behind a write under way, later
        written = journal.pending()
        payload = await asyncio.get_running_loop().run_in_executor(None, event_codec.encode, events)
        await journal.confirmed(written)  # without its mark nobody reads a snapshot
        turn_bytes = 0
        for part in chunks(number, payload):
            if turn_bytes > TURN_BYTES:
                written = journal.pending()
                await eager.turn()  # others have theirs, however fast the disk is
                await journal.confirmed(written)
                turn_bytes = 0
            if key not in journal.bases:
                return
            journal.add(key, Kind.CHUNK, part)
            turn_bytes += len(part)
        await journal.written()
        if key in journal.bases:
            journal.sizes[key] = len(payload)
            del journal.bases[key]
            journal.bases[key] = marked  # at the end: bases stay in order
