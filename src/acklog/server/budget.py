"""A bound for the bytes of all requests together, those still being received included, so that many connections cannot
do what one may not.

Strategy: who holds bytes of a request and finds no room is not read until there is room again. One at a time goes on
above the limit, so that what has begun gets finished however full it is: whoever asked first has the *turn* until its
request is complete. Who is too slow with that is closed (see `Connection`).
"""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """`limit`: bytes; `turn`: who may go on above it."""

    __slots__ = ('_taken', '_waiting', 'limit', 'turn')

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.turn: object | None = None
        self._taken = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def has_room(self) -> bool:
        return self._taken < self.limit

    @property
    def taken(self) -> int:
        """Bytes that are held now."""
        return self._taken

    def take(self, size: int) -> None:
        self._taken += size

    def give_back(self, size: int) -> None:
        self._taken -= size
        if self._waiting and self._taken < self.limit:
            self._wake(lambda: self.has_room)

    def take_turn(self, who: object) -> bool:
        """Whether `who` has the turn now: it had it, or nobody did."""
        if self.turn is None:
            self.turn = who
        return self.turn is who

    def end_turn(self, who: object) -> None:
        """`who` has received its request, or is gone."""
        if self.turn is who:
            self.turn = None
            self._wake(lambda: self.has_room or self.turn is None)

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when there is room or the turn is free, first come, first served."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        """Whoever waits with `resume` is gone."""
        self._waiting.pop(resume, None)

    def _wake(self, sensible: Callable[[], bool]) -> None:
        for _ in range(len(self._waiting)):  # each once: who finds no room after all waits again, behind the others
            resume = next(iter(self._waiting), None)
            if resume is None or not sensible():
                return
            del self._waiting[resume]
            resume()
