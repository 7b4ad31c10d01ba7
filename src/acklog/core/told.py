"""What is told about records beside where they are: how their last delivery failed, what their subscriber said about
it, when and at whom dead ones died.

Strategy: nothing is kept of a record that was merely released, which is what most failures are; so a group whose
subscribers say nothing pays nothing. Words are kept by offset, the text of one acknowledgement once for all of it.
"""

from __future__ import annotations

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.burials import Burials

RELEASED = 'released'
REASONS = {ev.Cause.EXPIRED: 'lock ran out', ev.Cause.LOST: 'member lost', ev.Cause.LEFT: 'member left too often'}


class Told:
    """By offset. `causes` has no RELEASED and no empty sets."""

    __slots__ = ('burials', 'causes', 'words')

    def __init__(self) -> None:
        self.causes: dict[ev.Cause, BitMap64] = {}
        self.words: dict[int, str] = {}
        self.burials = Burials()

    def failed(self, offsets: BitMap64, cause: ev.Cause) -> None:
        """Their delivery failed; what was told of the one before is of no interest any more."""
        self.forget(offsets)
        if cause is not ev.Cause.RELEASED:
            self.caused(offsets, cause)

    def caused(self, offsets: BitMap64, cause: ev.Cause) -> None:
        """Their last delivery failed so."""
        having = self.causes.setdefault(cause, BitMap64())
        having |= offsets

    def said(self, offsets: BitMap64, words: str) -> None:
        """Their subscriber's own words."""
        self.words.update(dict.fromkeys(offsets, words))

    def forget(self, offsets: BitMap64) -> None:
        """Causes and words."""
        if self.causes:
            for cause, having in list(self.causes.items()):
                having -= offsets
                if not having:
                    del self.causes[cause]
        words = self.words
        if not words:
            return
        if len(offsets) < len(words):
            for offset in offsets:
                words.pop(offset, None)
        else:
            for offset in [offset for offset in words if offset in offsets]:
                del words[offset]

    def last(self, offset: int) -> str | None:
        """How its last delivery failed, where that was not a release."""
        return next((REASONS[cause] for cause, having in self.causes.items() if offset in having), None)
