"""What is remembered of records beside where they are: how often they were delivered, failed and came back, how the
last delivery failed, what their subscriber said about it, and of dead ones why, when and at whom they died.

Strategy: nothing is kept by object. Numbers are counters in bit planes, reasons and causes sets of offsets; of a record
that was merely released, which is what most failures are, no cause is kept at all. Words and deferrals are dicts by
offset, the text of one acknowledgement once for all of it: a group whose subscribers say nothing pays nothing.
"""

from __future__ import annotations

from typing import TypeVar

from pyroaring import BitMap64

from acklog.core.burials import Burials
from acklog.core.counters import Counter
from acklog.core.kinds import Cause, Until

T = TypeVar('T')

RELEASED = 'released'
CAUSES = {Cause.EXPIRED: 'lock ran out', Cause.LOST: 'member lost', Cause.LEFT: 'member left too often'}


class History:
    """By offset. `causes` has no RELEASED; `causes` and `reasons` (of dying and dead ones) have no empty sets;
    `deferred` (ms, and whether that was named) was said for the current delivery of acquired and pending ones."""

    __slots__ = ('attempts', 'burials', 'causes', 'deferred', 'deliveries', 'leaves', 'reasons', 'words')

    def __init__(self) -> None:
        self.deliveries, self.attempts, self.leaves = Counter(), Counter(), Counter()
        self.deferred: dict[int, tuple[int, Until]] = {}
        self.causes: dict[Cause, BitMap64] = {}
        self.words: dict[int, str] = {}
        self.reasons: dict[str, BitMap64] = {}
        self.burials = Burials()

    # -- a delivery ends -----------------------------------------------------------------------------------------------

    def failed(self, offsets: BitMap64, cause: Cause) -> None:
        """Their delivery failed; what was told of the one before is of no interest any more."""
        self._ended(offsets)
        self.attempts.add(offsets)
        self._untell(offsets)
        if cause is not Cause.RELEASED:
            self.caused(offsets, cause)

    def died(self, offsets: BitMap64, failed: bool) -> None:
        """Their delivery was the last; `failed`: that counts."""
        if failed:
            self.attempts.add(offsets)
        self._ended(offsets)
        self._untell(offsets)

    def returned(self, offsets: BitMap64, left: bool) -> None:
        """They came back without having failed; `left`: because their member did."""
        if left:
            self.leaves.add(offsets)
        self._ended(offsets)

    def _ended(self, offsets: BitMap64) -> None:
        """What was said for their delivery goes with it."""
        if self.deferred:
            _drop(self.deferred, offsets)

    def clock_stepped(self, by: int) -> None:
        """What was computed from a delay moves along."""
        for offset, (at, until) in self.deferred.items():
            if until is Until.DELAY:
                self.deferred[offset] = at + by, until

    # -- what is told --------------------------------------------------------------------------------------------------

    def caused(self, offsets: BitMap64, cause: Cause) -> None:
        """Their last delivery failed so."""
        having = self.causes.setdefault(cause, BitMap64())
        having |= offsets

    def said(self, offsets: BitMap64, words: str) -> None:
        """Their subscriber's own words."""
        self.words.update(dict.fromkeys(offsets, words))

    def because(self, offsets: BitMap64, reason: str) -> None:
        """They die or are dead for that reason."""
        having = self.reasons.setdefault(reason, BitMap64())
        having |= offsets

    def failure(self, offset: int) -> str | None:
        """How its last delivery failed, where that was not a release."""
        return next((CAUSES[cause] for cause, having in self.causes.items() if offset in having), None)

    def reason(self, offset: int) -> str:
        """Why a dying or dead one does."""
        return next(reason for reason, having in self.reasons.items() if offset in having)

    # -- forgetting ----------------------------------------------------------------------------------------------------

    def forget(self, offsets: BitMap64) -> None:
        """All but why, when and at whom they died."""
        for counter in (self.deliveries, self.attempts, self.leaves):
            if counter.planes:
                counter.clear(offsets)
        if self.words or self.causes:
            self._untell(offsets)
        if self.deferred:
            _drop(self.deferred, offsets)

    def forget_death(self, offsets: BitMap64) -> None:
        """Why, when and at whom they died."""
        self.burials.remove(offsets)
        _take_out(self.reasons, offsets)

    def _untell(self, offsets: BitMap64) -> None:
        """Causes and words."""
        if self.causes:
            _take_out(self.causes, offsets)
        if self.words:
            _drop(self.words, offsets)


def _take_out(sets: dict[T, BitMap64], offsets: BitMap64) -> None:
    for key, having in list(sets.items()):
        having -= offsets
        if not having:
            del sets[key]


def _drop(by_offset: dict[int, T], offsets: BitMap64) -> None:
    if len(offsets) < len(by_offset):
        for offset in offsets:
            by_offset.pop(offset, None)
    else:
        for offset in [offset for offset in by_offset if offset in offsets]:
            del by_offset[offset]
