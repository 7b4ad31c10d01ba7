"""What is recorded in several turns of the loop is in the journal when each of the writes that it went out with is: one
that failed in between is known to nobody who asks for the last one only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acklog.broker.journal.journal import Journal
    from acklog.errors import LogError
    from acklog.log.promise import Promise


class Recorded:
    """By one request."""

    __slots__ = ('_journal', '_writes')

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._writes: dict[Promise[LogError | None], None] = {}

    def note(self) -> None:
        """What has been recorded up to now counts. Comes before each turn that others get."""
        if (pending := self._journal.pending()) is not None:
            self._writes[pending] = None

    async def written(self) -> None:
        """Wait until all of it is in the journal. Raises LogError if some is not."""
        self.note()
        self._journal.hurry()
        for write in self._writes:
            await self._journal.confirmed(write)
