"""Who holds which offsets until when.

Strategy: one object per acquire, with its offsets as a set; deadlines and expiry cost per lock, not per record. The
locks of an offset are found through an index by block of 512 offsets, so that settling one record among many locks
stays cheap. Renewing some of a lock's offsets splits them off into another lock object with the same number (the
number is that of the acquire; it is what a protocol may name to fence an old holder).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyroaring import BitMap64

from acklog.core.timeline import Timeline

BLOCK = 9  # bits


class Lock:
    """`offsets` held by `member` since `since` until `until` (ms), taken by acquire `number`.

    The set may be an event's as well: it is replaced, never changed.
    """

    __slots__ = ('blocks', 'member', 'number', 'offsets', 'since', 'until')

    def __init__(self, number: int, member: str, until: int, offsets: BitMap64, since: int) -> None:
        self.number, self.member, self.until, self.offsets, self.since = number, member, until, offsets, since
        first, last = offsets.min() >> BLOCK, offsets.max() >> BLOCK
        self.blocks: Iterable[int] = range(first, last + 1)
        if last - first > len(offsets):
            self.blocks = {offset >> BLOCK for offset in offsets}


class Locks:
    """All locks of a share partition. An offset is in one lock at most (rule 1)."""

    __slots__ = ('_blocks', '_borrowed', '_deadlines', 'held')

    def __init__(self) -> None:
        self.held: dict[str, BitMap64] = {}  # by member, without empty ones
        self._borrowed: set[str] = set()  # members whose set is an event's: it is replaced, never changed
        self._blocks: dict[int, dict[Lock, None]] = {}
        self._deadlines: Timeline[dict[Lock, None]] = Timeline()

    def add(self, number: int, member: str, until: int, offsets: BitMap64, since: int) -> None:
        """A new lock on `offsets` (not empty), which no other lock has."""
        held = self.held.get(member)
        if held is None:
            self.held[member] = offsets
            self._borrowed.add(member)
        elif member in self._borrowed:
            self.held[member] = held | offsets
            self._borrowed.remove(member)
        else:
            held |= offsets
        self._enter(Lock(number, member, until, offsets, since))

    def _enter(self, lock: Lock) -> None:
        for block in lock.blocks:
            inside = self._blocks.get(block)
            if inside is None:
                self._blocks[block] = {lock: None}
            else:
                inside[lock] = None
        self._set_deadline(lock)

    def _set_deadline(self, lock: Lock) -> None:
        due = self._deadlines.at.get(lock.until)
        if due is None:
            self._deadlines.set(lock.until, {lock: None})
        else:
            due[lock] = None

    def _drop_deadline(self, lock: Lock) -> None:
        due = self._deadlines.at[lock.until]
        del due[lock]
        if not due:
            self._deadlines.drop(lock.until)

    def _leave(self, lock: Lock) -> None:
        for block in lock.blocks:
            inside = self._blocks[block]
            del inside[lock]
            if not inside:
                del self._blocks[block]
        self._drop_deadline(lock)

    def of(self, offset: int) -> Lock | None:
        """The lock on one offset."""
        for lock in self._blocks.get(offset >> BLOCK, ()):
            if offset in lock.offsets:
                return lock
        return None

    def _parts(self, offsets: BitMap64) -> Iterator[tuple[Lock, BitMap64]]:
        """`offsets`, all of them locked, by lock. Each lock may be changed when it is given."""
        rest = offsets
        while rest:
            lock = self.of(rest.min())
            if lock is None:
                raise LookupError(f'no lock on offset {rest.min()}')
            part = rest & lock.offsets
            yield lock, part
            rest = rest - part

    def release(self, offsets: BitMap64) -> None:
        """Take `offsets`, all of them locked, out of their locks."""
        lock = self.of(offsets.min()) if offsets else None
        if lock is not None and offsets <= lock.offsets:  # by far the most frequent
            self._shrink(lock, offsets)
            return
        for lock, part in self._parts(offsets):
            self._shrink(lock, part)

    def _shrink(self, lock: Lock, part: BitMap64) -> None:
        member = lock.member
        held = self.held[member]
        if len(part) == len(held):
            del self.held[member]
            self._borrowed.discard(member)
        elif member in self._borrowed:
            self.held[member] = held - part
            self._borrowed.remove(member)
        else:
            held -= part
        if len(part) == len(lock.offsets):
            self._leave(lock)
        else:
            lock.offsets = lock.offsets - part

    def renew(self, offsets: BitMap64, until: int) -> None:
        """Another deadline for `offsets`, all of them locked."""
        for lock, part in self._parts(offsets):
            if len(part) == len(lock.offsets):
                self._drop_deadline(lock)
                lock.until = until
                self._set_deadline(lock)
            else:
                lock.offsets = lock.offsets - part
                self._enter(Lock(lock.number, lock.member, until, part, lock.since))

    def under(self, number: int, offsets: BitMap64) -> BitMap64:
        """Those of `offsets`, all of them locked, that the acquire `number` took."""
        result = BitMap64()
        for lock, part in self._parts(offsets):
            if lock.number == number:
                result |= part
        return result

    def first_deadline(self) -> int | None:
        """The earliest deadline (ms)."""
        return self._deadlines.first()

    def run_out(self, now: int) -> BitMap64:
        """Offsets whose deadline has come; they stay locked."""
        result = BitMap64()
        for locks in self._deadlines.due(now):
            for lock in locks:
                result |= lock.offsets
        return result

    def extend_all(self, until: int) -> None:
        """No deadline before `until` (rule 7)."""
        for early in [instant for instant in self._deadlines.at if instant < until]:
            locks = list(self._deadlines.at[early])
            self._deadlines.drop(early)
            for lock in locks:
                lock.until = until
                self._set_deadline(lock)

    def shift(self, by: int) -> None:
        """Move every deadline by so many ms."""
        self._deadlines.shift(by)
        for lock in self:
            lock.until += by

    def __iter__(self) -> Iterator[Lock]:
        for locks in self._deadlines.at.values():
            yield from locks
