"""The journal of the share partitions: what they decided, written down before anybody hears of it.

Strategy: `record` collects the events of one turn of the loop; they go out as one batch, one append at a time, and
`written` waits for it. Share partitions have already applied what they record, so an append that fails (or whose
outcome is unknown) means that memory is ahead of the journal: all share partitions of that turn and of the one
collected meanwhile are reported to `on_lost`, which drops them and folds them anew.

Two things cannot be taken back: a step of the clock, which happens to all share partitions, lost ones too (`steps`),
and that a share partition has ended. If the turn that says so is lost, the next one says it first, which comes by
itself after a second; whether or not it has begun anew meanwhile, for that beginning is lost as well. A beginning that
is lost may have been written all the same, so it is ended likewise: what is there counts for nothing.

See `format` for the bytes, `shortening` for how it stays short, `replay` for the way back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from acklog.broker.eager import Eager
from acklog.broker.journal import event_codec
from acklog.broker.journal.format import Kind, ShareKey, entry
from acklog.broker.journal.shortening import Shortening
from acklog.broker.journal.steps import Steps
from acklog.errors import Failed, LogError
from acklog.log.promise import Promise
from acklog.log.seam import Durability, Log
from acklog.wire.record_batch import build_one

if TYPE_CHECKING:
    from acklog.broker.time import Clock, Timer
    from acklog.core.events import ClockStepped, Event

logger = logging.getLogger('acklog.journal')

AGAIN_MS = 1000  # after it got lost, if nothing else is written


class Journal:
    """One journal over one log. `on_lost`: told of the share partitions whose last events could not be written."""

    def __init__(self, log: Log, clock: Clock, timer: Timer) -> None:
        self.log = log
        self.bases: dict[ShareKey, int] = {}  # where a share partition's history begins, earliest first
        self.sizes: dict[ShareKey, int] = {}  # bytes of its newest snapshot
        self.steps = Steps()
        self.shortening = Shortening(self, clock)
        self.on_lost: Callable[[Collection[ShareKey]], None] = lambda keys: None
        self._clock, self._timer = clock, timer
        self._durability, self._sync_ms = Durability.WRITTEN, 50
        self._sync_due = False
        self._latest = -1  # when a batch was written last (ms)
        self._entries: list[bytes] = []
        self._keys: set[ShareKey] = set()  # that the entries tell of, short of those that have ended since
        self._keys_being_written: set[ShareKey] = set()  # the same of the batch under way
        self._ended: set[ShareKey] = set()  # whose tombstones are among the entries
        self._turn: Promise[LogError | None] | None = None
        self._writing: Promise[LogError | None] | None = None
        self._begins = 0  # where the batch being written will be
        self._again_asked = False  # the timer was asked

    def configure(self, *, sync_every: bool, sync_ms: int) -> None:
        """From now on sync before each answer, or so long after a write (acklog.state.sync)."""
        self._durability = Durability.SYNCED if sync_every else Durability.WRITTEN
        self._sync_ms = sync_ms

    # -- writing -------------------------------------------------------------------------------------------------------

    def record(self, key: ShareKey, events: Sequence[Event]) -> None:
        """What has happened to a share partition."""
        if events:
            self.add(key, Kind.EVENTS, event_codec.encode(events))

    def begin(self, key: ShareKey, events: Sequence[Event]) -> None:
        """A new share partition, and the events that build it."""
        self.add(key, Kind.BEGIN, event_codec.encode(events))

    def end(self, key: ShareKey) -> None:
        """The share partition is no more."""
        self._put(entry(key, Kind.TOMBSTONE))
        self._ended.add(key)
        for keys in (self._keys, self._keys_being_written):  # what they tell of it begins no history
            keys.discard(key)
        self.bases.pop(key, None)
        self.sizes.pop(key, None)

    def add(self, key: ShareKey, kind: Kind, payload: bytes) -> None:
        """Write an entry down with what else this turn of the loop brings; in the order of the calls."""
        self._keys.add(key)
        self._put(entry(key, kind, payload))

    def clock_stepped(self, event: ClockStepped) -> None:
        """It has happened to all share partitions, after all that has been recorded."""
        self._latest += event.by
        self._put(self.steps.add(event))

    async def written(self) -> None:
        """Wait until all that has been recorded is in the journal, and what is to be said again. Raises LogError if it
        is not. For what was recorded before others had their turn `pending` is to be asked at once: it may be lost."""
        if self._entries:
            self._take_turn()
        turn = self.pending()  # first: when `hurry` returns it may be settled and gone
        self.hurry()
        await self.confirmed(turn)

    def pending(self) -> Promise[LogError | None] | None:
        """What to await later for all that has been recorded up to now: why it is not in the journal, None if it is.
        None if there is nothing to wait for."""
        return self._turn or self._writing

    @property
    def needed_from(self) -> int:
        """The lowest offset at which the history of a share partition begins, or may: what is being written counts."""
        return min(self.bases.values(), default=self.log.end if self._writing is None else self._begins)

    @staticmethod
    async def confirmed(pending: Promise[LogError | None] | None) -> None:
        """Wait for what `pending` gave. Raises LogError if it is not in the journal."""
        if pending is not None and (error := await pending) is not None:
            raise error

    def hurry(self) -> None:
        """No more is to come of this step. Where there was nothing to write in this millisecond yet, nobody else is
        waited for: at a low rate a turn of the loop is a good part of an answer's time."""
        if self._turn is not None and self._writing is None and self._clock() != self._latest:
            self._write()

    def _put(self, data: bytes) -> None:
        self._entries.append(data)
        self._take_turn()

    def _take_turn(self) -> None:
        if self._turn is None:
            loop = asyncio.get_running_loop()
            self._turn = Promise(loop)
            if self._writing is None:
                loop.call_soon(self._write)

    def _write(self) -> None:
        if self._turn is not None and self._writing is None:
            Eager(self._append(), self._appended)

    def _write_soon(self) -> None:
        if self._turn is not None:
            asyncio.get_running_loop().call_soon(self._write)

    def _appended(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            raise error  # a bug: LogErrors end in the turn's future

    async def _append(self) -> None:
        turn = self._turn
        assert turn is not None
        self._writing, self._turn = turn, None
        entries, self._entries = self._entries, []
        self._keys_being_written, self._keys = self._keys, set()
        ended, self._ended = self._ended, set()
        begin = self._begins = self.log.end
        self.steps.told(begin)
        failure: LogError | None = None
        now = self._latest = self._clock()
        try:
            batch = build_one(entries[0] if len(entries) == 1 else b''.join(entries), now)
            at = await self.log.append(batch, now, self._durability, at_once=True)
            self._note(at.first)
        except LogError as error:
            failure = error
        except Exception as error:  # a bug, or no memory: whoever waits must not do so for ever
            logger.exception('a batch for the journal')
            failure = Failed(f'the journal: {error!r}')
        self._writing = None
        if failure is not None:
            if self.log.end == begin:  # else it is there
                self.steps.lost(begin)
            self._lose(ended, failure)
        self._write_soon()
        turn.set_result(failure)  # last: who waits goes on within this call

    def _lose(self, ended: set[ShareKey], failure: LogError) -> None:
        """Nothing of this turn counts, nor what was built on it meanwhile, but for what cannot be taken back."""
        keys = self._keys_being_written | self._keys
        self._ended |= ended | (keys - self.bases.keys())
        self._entries = [*self.steps.to_tell(), *(entry(key, Kind.TOMBSTONE) for key in self._ended)]
        self._keys = set()
        if self._entries and not self._again_asked:
            self._again_asked = True
            self._timer.at(self._clock() + AGAIN_MS, self._say_again)
        lost, self._turn = self._turn, None
        self.on_lost(keys)
        if lost is not None:
            lost.set_result(failure)

    def _say_again(self) -> None:
        self._again_asked = False
        if self._entries:
            self._take_turn()

    def _note(self, position: int) -> None:
        for key in self._keys_being_written:
            self.bases.setdefault(key, position)
        if not self._sync_due and self._durability is Durability.WRITTEN:
            self._sync_due = True
            self._timer.at(self._clock() + self._sync_ms, self._sync)
        self.shortening.look()

    # -- on disk -------------------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._sync_due = False
        Eager(self.log.flush(), self._synced)

    def _synced(self, _: None, error: BaseException | None) -> None:
        # A sync that failed makes the log refuse writes until it has written them anew: the next append says so.
        if error is not None and not isinstance(error, LogError):
            raise error

    async def close(self) -> None:
        """Write what is recorded, then close the log."""
        try:
            await self.written()
        finally:
            await self.log.close()
