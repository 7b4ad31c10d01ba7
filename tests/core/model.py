"""What a share partition must do, record by record: the reference that the real one is tested against.

Plain and slow on purpose: one object per record, no journal, no reservation, no I/O. `core` keeps sets of offsets
instead and must answer every sequence of calls exactly as this does (same results, same states, same next deadline).
Rules named in comments are those of docs/design.md. Times are milliseconds on the owner's clock (rule 11); `now`
never decreases.

Where it is found to be wrong or to say too little it is mended, with a test of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from acklog.core.kinds import Ack
from acklog.errors import InvalidRecordState


class State(Enum):
    AVAILABLE = 'available'
    WAITING = 'waiting'  # until `due`
    ACQUIRED = 'acquired'  # by `member`, until `lock_until`
    PENDING = 'pending'  # acknowledged inside an open transaction; no lock runs out
    DYING = 'dying'  # its dead-letter record is being written; no lock runs out
    DEAD = 'dead'
    # DONE is no state of an entry: it is what lies below `end` without one.


@dataclass
class Batch:
    """A producer's batch as the log has it. Offsets in `first..last` that are not in `records` are gaps: compacted
    away, control records, aborted ones for a group that reads committed."""

    first: int
    last: int
    records: frozenset[int]
    deliver_at: dict[int, int] = field(default_factory=dict)


@dataclass
class Entry:
    state: State
    deliveries: int = 0  # times acquired: Kafka's DeliveryCount
    attempts: int = 0  # deliveries that failed
    leaves: int = 0  # times returned unfinished without being counted as failed
    member: str | None = None
    lock: int = 0  # number of the acquire that holds it, growing; a later acknowledgement may name it
    lock_until: int = 0
    due: int = 0  # when WAITING
    named: bool = False  # when WAITING: whether a client named that time; else it comes from a delay (rule 11)
    deferral_named: bool = True
    deferred: int | None = None  # said for the current delivery, used by its release, expiry or loss (see `defer`)
    reason: str | None = None  # why it died, or how its last delivery failed
    words: str | None = None  # of its subscriber about that
    died: int | None = None  # when DYING or DEAD
    since: int = 0  # when it was acquired
    limited: bool = False  # when WAITING: at `due` it has waited as long as it may, and dies
    outcome: Ack | None = None  # when PENDING


@dataclass
class Config:
    lock_ms: int = 30_000
    attempts_limit: int | None = 5
    max_in_flight: int = 100_000
    backoff: Callable[[int, int], int] = lambda attempts, offset: (
        0
    )  # ms before the next delivery, by failed attempts so far
    dead_letter_topic: bool = False
    waiting_max_ms: int | None = None


def _instant(at: int, now: int) -> tuple[int, bool]:
    """When a release or deferral names an instant, or up to 0 a delay; and whether it is an instant."""
    return (at, True) if at > 0 else (now - at, False)


@dataclass
class SharePartition:
    config: Config
    end: int = 0  # nothing from here on has been taken from the log
    epoch: int = 0  # of the state; a seek starts a new one
    entries: dict[int, Entry] = field(default_factory=dict)  # below `end`, all that is not done
    locks: int = 0
    lost_by_log: int = 0  # owed, and gone with the log
    answered: dict[tuple[int, int], Ack] = field(default_factory=dict)  # by offset and lock, what it was settled by
    expired: int = 0  # dead, and kept as long as configured

    # -- what can be read ------------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        return min((o for o, e in self.entries.items() if e.state is not State.DEAD), default=self.end)

    def offsets(self, *states: State) -> list[int]:
        return sorted(o for o, e in self.entries.items() if e.state in states)

    @property
    def in_flight(self) -> int:
        return len(self.offsets(State.ACQUIRED, State.PENDING, State.DYING))

    def next_deadline(self) -> int | None:
        due = [e.due for e in self.entries.values() if e.state is State.WAITING]
        locks = [e.lock_until for e in self.entries.values() if e.state is State.ACQUIRED]
        return min(due + locks, default=None)

    def why_nothing(self, log_end: int) -> str:
        """Why an acquire just gave nothing (rule 9)."""
        if self.in_flight >= self.config.max_in_flight:
            return 'limit'
        if self.offsets(State.AVAILABLE) or self.end < log_end:
            return 'something'
        if self.offsets(State.ACQUIRED, State.PENDING, State.DYING):
            return 'held'
        return 'waiting' if self.offsets(State.WAITING) else 'nothing new'

    # -- time ------------------------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Do all that is due. Every other call with a `now` does this first."""
        for entry in list(self.entries.values()):
            if entry.state is State.WAITING and entry.due <= now and not entry.limited:
                entry.state = State.AVAILABLE
        for offset in self.offsets(State.ACQUIRED):
            if self.entries[offset].lock_until <= now:
                self._failed(offset, now, None, 'lock ran out')
        for offset in self.offsets(State.WAITING):
            if self.entries[offset].limited and self.entries[offset].due <= now:
                self.entries[offset].member = ''
                self._die(offset, 'waited too long', now)

    # -- acquire ---------------------------------------------------------------------------------------------------

    def acquire(self, now: int, member: str, count: int, log: Iterable[Batch], strict: bool) -> list[tuple[int, int]]:
        """[(offset, deliveries)] in order of offsets (rule 2). `log` is what the log holds, in order.

        Available ones first, then on from `end`. A batch is taken as long as fewer than `count` have been taken and
        fewer than the limit are in flight; then whole, or if `strict` (record-limit mode) only as far as both allow.
        A record on its last attempt comes alone (rule 13).
        """
        self.advance(now)
        self.locks += 1
        taken: list[tuple[int, int]] = []
        room = self.config.max_in_flight - self.in_flight

        def full() -> bool:
            return len(taken) >= count or len(taken) >= room

        for old in (True, False):  # all that is available, before anything new
            for batch in log:
                if full():
                    return taken
                for offset in range(batch.first, batch.last + 1):
                    if old != (offset < self.end) or (strict and full()):
                        continue
                    entry = self.entries.get(offset) if old else self._from_log(offset, batch, now)
                    if entry is not None and entry.state is State.AVAILABLE:
                        alone = self._last_attempt(entry)
                        if alone and taken:
                            return taken
                        taken.append(self._take(offset, now, member))
                        if alone:
                            return taken
        return taken

    def take(
        self, now: int, member: str, offsets: Iterable[int], end: int, log: Iterable[Batch]
    ) -> list[tuple[int, int]]:
        """Acquire exactly these, going on in the log up to `end`: what an acquire comes to that others get in between
        of."""
        self.advance(now)
        self.locks += 1
        for batch in log:
            for offset in range(max(batch.first, self.end), min(batch.last, end - 1) + 1):
                self._from_log(offset, batch, now)
        self.end = max(self.end, end)
        return [self._take(offset, now, member) for offset in offsets]

    def _take(self, offset: int, now: int, member: str) -> tuple[int, int]:
        entry = self.entries[offset]
        assert entry.state is State.AVAILABLE, offset
        entry.state, entry.member, entry.lock = State.ACQUIRED, member, self.locks
        entry.lock_until, entry.deferred, entry.since = now + self.config.lock_ms, None, now
        entry.deliveries = min(entry.deliveries + 1, 32_767)
        return offset, entry.deliveries

    def _last_attempt(self, entry: Entry) -> bool:
        limit = self.config.attempts_limit
        return limit is not None and 0 < entry.attempts == limit - 1

    def _from_log(self, offset: int, batch: Batch, now: int) -> Entry | None:
        self.end = offset + 1
        if offset not in batch.records:
            return None  # a gap is done
        due = batch.deliver_at.get(offset, 0)
        entry = self.entries[offset] = Entry(State.WAITING if due > now else State.AVAILABLE, due=due, named=True)
        return entry

    # -- acknowledge -----------------------------------------------------------------------------------------------

    def acknowledge(
        self,
        now: int,
        member: str,
        acks: list[tuple[int, int, Ack | tuple[Ack, ...], int | None, str | None]],
        *,
        lock: int | None = None,
        transaction: bool = False,
    ) -> None:
        """All of `acks` (first, last, type, release time, words) or, by InvalidRecordState, none (rule 3).

        Done offsets may be part of a range with held ones, or be a GAP alone: gaps look the same. Instead of one type
        there may be one for each offset. In Kafka's protocol a reversed or overlapping list is refused before this,
        as INVALID_REQUEST. The release time is an instant or, up to 0, a delay; it is for RELEASE, words for that and
        REJECT; `lock`, where a protocol has it, fences."""
        self.advance(now)
        seen: set[int] = set()
        for first, last, kinds, _, _ in acks:
            held = [o for o in range(first, last + 1) if self._holds(o, member, lock)]
            others = [o for o in range(first, last + 1) if o in self.entries and o not in held]
            gap = set(kinds if isinstance(kinds, tuple) else [kinds]) == {Ack.GAP}
            there = 0 <= first <= last < self.end
            if (not held and not gap) or others or not there or seen.intersection(held):
                raise InvalidRecordState(f'{first}..{last}')
            seen.update(held)
        for first, last, kinds, at, words in acks:
            for offset in range(first, last + 1):
                if offset in self.entries:
                    kind = kinds[offset - first] if isinstance(kinds, tuple) else kinds
                    self._settle(offset, kind, now, at, transaction)
                    if words and not transaction and kind in (Ack.RELEASE, Ack.REJECT):
                        self.entries[offset].words = words

    def settle(self, now: int, acks: list[tuple[int, int, Ack, int | None, str | None]]) -> list[str]:
        """Each of (offset, lock, kind, release time, words) stands alone; a repeat gives the same answer."""
        self.advance(now)
        outcomes = []
        for offset, lock, kind, at, words in acks:
            entry = self.entries.get(offset)
            if entry is not None and entry.state is State.ACQUIRED and entry.lock == lock:
                assert entry.member is not None
                self.acknowledge(now, entry.member, [(offset, offset, kind, at, words)], lock=lock)
                outcomes.append('renewed' if kind is Ack.RENEW else 'ok')
                if kind is not Ack.RENEW:
                    self.answered[offset, lock] = kind
            else:
                known = self.answered.get((offset, lock))
                outcomes.append('lost' if known is None else 'ok' if known is kind else 'settled')
        return outcomes

    def _holds(self, offset: int, member: str, lock: int | None) -> bool:
        entry = self.entries.get(offset)
        return (
            entry is not None
            and entry.state is State.ACQUIRED
            and entry.member == member
            and (lock is None or entry.lock == lock)
        )

    def _settle(self, offset: int, kind: Ack, now: int, at: int | None, transaction: bool) -> None:
        entry = self.entries[offset]
        if kind is Ack.RENEW:
            entry.lock_until = now + self.config.lock_ms
        elif transaction:
            entry.state, entry.outcome = State.PENDING, kind
            if kind is Ack.RELEASE and at is not None:
                entry.deferred, entry.deferral_named = _instant(at, now)
        elif kind in (Ack.ACCEPT, Ack.GAP):
            del self.entries[offset]
        elif kind is Ack.RELEASE:
            self._failed(offset, now, at, 'released')
        else:
            entry.words = None
            self._die(offset, 'rejected', now)

    def end_transaction(self, now: int, member: str, commit: bool) -> None:
        self.advance(now)
        for offset in self.offsets(State.PENDING):
            entry = self.entries[offset]
            if entry.member != member:
                continue
            if commit:
                self._settle(offset, entry.outcome or Ack.ACCEPT, now, None, False)
            else:
                self._returned(offset)

    def defer(self, now: int, offset: int, at: int, deliveries: int | None = None) -> None:
        self.advance(now)
        entry = self.entries.get(offset)
        if entry is None or entry.state is not State.ACQUIRED or deliveries not in (None, entry.deliveries):
            raise InvalidRecordState(str(offset))
        entry.deferred, entry.deferral_named = _instant(at, now)

    # -- what becomes of a record ------------------------------------------------------------------------------------

    def _failed(self, offset: int, now: int, at: int | None, how: str) -> None:
        """A delivery failed: released, lock expired, member lost (rules 5, 6). It waits no longer than it may."""
        entry = self.entries[offset]
        entry.attempts += 1
        entry.reason, entry.words = how, None
        if self.config.attempts_limit is not None and entry.attempts >= self.config.attempts_limit:
            self._die(offset, 'attempts used up', now)
            return
        if at is not None:
            entry.due, entry.named = _instant(at, now)
        elif entry.deferred is not None:
            entry.due, entry.named = entry.deferred, entry.deferral_named
        else:
            entry.due, entry.named = now + self.config.backoff(entry.attempts, offset), False
        longest = self.config.waiting_max_ms
        entry.limited = longest is not None and entry.due > now + longest
        if longest is not None and entry.limited:
            entry.due, entry.named = now + longest, False
        entry.state = State.WAITING if entry.due > now else State.AVAILABLE
        entry.member, entry.deferred = None, None

    def _returned(self, offset: int) -> None:
        entry = self.entries[offset]
        entry.state, entry.member, entry.outcome, entry.deferred = State.AVAILABLE, None, None, None

    def _die(self, offset: int, reason: str, now: int) -> None:
        """At the member that has it, ''  if none has."""
        entry = self.entries[offset]
        entry.reason, entry.outcome, entry.died, entry.deferred = reason, None, now, None
        entry.state = State.DYING if self.config.dead_letter_topic else State.DEAD

    def dead_letter_written(self, offset: int) -> None:
        entry = self.entries[offset]
        if entry.state is State.DYING:
            entry.state = State.DEAD

    # -- members -----------------------------------------------------------------------------------------------------

    def lost(self, now: int, member: str) -> None:
        """Both connections gone, or the session timed out: a failed delivery of all that it holds (rule 6)."""
        self.advance(now)
        for offset in self.offsets(State.ACQUIRED):
            if self.entries[offset].member == member:
                self._failed(offset, now, None, 'member lost')

    def left(self, now: int, member: str) -> None:
        """A clean leave, or a new session at epoch 0: not attempted, but only as often as the limit (rules 6, 7)."""
        self.advance(now)
        for offset in self.offsets(State.ACQUIRED):
            if self.entries[offset].member == member:
                self._come_back(offset, now)

    def unsent(self, now: int, lock: int, offsets: Iterable[int]) -> int:
        """The answer to that acquire never arrived: as a clean leave, of what it took and its lock still holds."""
        self.advance(now)
        held = [o for o in self.offsets(State.ACQUIRED) if o in offsets and self.entries[o].lock == lock]
        for offset in held:
            self._come_back(offset, now)
        return len(held)

    def spare(self, now: int, lock: int, offsets: Iterable[int]) -> int:
        """There was no room for them in the answer to that acquire: as if they had not been taken."""
        self.advance(now)
        held = [o for o in self.offsets(State.ACQUIRED) if o in offsets and self.entries[o].lock == lock]
        for offset in held:
            self._returned(offset)
        return len(held)

    def _come_back(self, offset: int, now: int) -> None:
        entry, limit = self.entries[offset], self.config.attempts_limit
        if limit is not None and entry.leaves >= limit:
            self._failed(offset, now, None, 'member left too often')
        else:
            entry.leaves += 1
            self._returned(offset)

    # -- the server and the log --------------------------------------------------------------------------------------

    def restarted(self, now: int, session_ms: int) -> None:
        """The server is back; nobody lost anything by it (rule 7). Comes before any `advance`."""
        for entry in self.entries.values():
            if entry.state is State.ACQUIRED:
                entry.lock_until = max(entry.lock_until, now + session_ms)

    def clock_stepped(self, by: int) -> None:
        """The owner's clock was set, forward or back: locks and delays move along, instants that clients named do not
        (rule 11)."""
        for entry in self.entries.values():
            entry.lock_until += by
            if not entry.named:
                entry.due += by  # `died` and `since` say what the clock showed
            if entry.deferred is not None and not entry.deferral_named:
                entry.deferred += by

    def cut(self, log_end: int) -> None:
        """The log came back shorter than the state (power loss): forget what is beyond it."""
        self.end = min(self.end, log_end)
        self.entries = {o: e for o, e in self.entries.items() if o < log_end}

    def log_starts_at(self, offset: int) -> int:
        """Records below are gone for good. How many of them the group had not settled (rule 8)."""
        gone = [o for o in self.entries if o < offset]
        lost = sum(self.entries.pop(o).state is not State.DEAD for o in gone) + max(0, offset - self.end)
        self.end = max(self.end, offset)
        self.lost_by_log += lost
        return lost

    # -- operators ---------------------------------------------------------------------------------------------------

    def redrive(self, offsets: Iterable[int], due: Callable[[int], int] | None = None) -> int:
        """Dead ones, as new, to this group only; at a rate the n-th of them waits until `due(n)`."""
        chosen = [o for o in offsets if o in self.entries and self.entries[o].state is State.DEAD]
        for number, offset in enumerate(chosen):
            self.entries[offset] = Entry(State.AVAILABLE)
            if due is not None:
                self.entries[offset] = Entry(State.WAITING, due=due(number), named=False)
        return len(chosen)

    def expire_dead(self, before: int) -> int:
        """Dead ones have been kept as long as configured."""
        chosen = [o for o in self.offsets(State.DEAD) if (self.entries[o].died or 0) < before]
        for offset in chosen:
            del self.entries[offset]
        self.expired += len(chosen)
        return len(chosen)

    def discard(self, offsets: Iterable[int]) -> int:
        chosen = [o for o in offsets if o in self.entries and self.entries[o].state is State.DEAD]
        for offset in chosen:
            del self.entries[offset]
        return len(chosen)

    def give_up(self, now: int, offsets: Iterable[int], reason: str = 'given up by an operator') -> int:
        self.advance(now)
        states = (State.WAITING, State.AVAILABLE)
        chosen = [o for o in offsets if o in self.entries and self.entries[o].state in states]
        for offset in chosen:
            self.entries[offset].member = ''
            self._die(offset, reason, now)
        return len(chosen)

    def move(self, now: int, offsets: Iterable[int], due: int) -> int:
        """Waiting ones to another time; a time that has come means now."""
        self.advance(now)
        chosen = [o for o in offsets if o in self.entries and self.entries[o].state is State.WAITING]
        for offset in chosen:
            entry = self.entries[offset]
            entry.due, entry.named, entry.limited = due, True, False
        self.advance(now)
        return len(chosen)

    def replay(self, first: int, last: int, log: Iterable[Batch]) -> int:
        """Make what is done in a range available again, as new."""
        there = {o for batch in log for o in batch.records}
        chosen = [o for o in range(first, min(last, self.end - 1) + 1) if o in there and o not in self.entries]
        for offset in chosen:
            self.entries[offset] = Entry(State.AVAILABLE)
        return len(chosen)

    def seek(self, target: int) -> None:
        """A new epoch of the state: all before is settled, all from there on is to come (rule 10)."""
        self.epoch += 1
        self.entries, self.end = {}, target
