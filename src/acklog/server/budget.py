"""A bound for the bytes of all requests under way together, so that many connections cannot do what one may not."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """`limit`: bytes. One request more is let in as long as there is any room, so a large one always gets its turn."""

    __slots__ = ('_taken', '_waiting', 'limit')

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def has_room(self) -> bool:
        return self._taken < self.limit

    def take(self, size: int) -> None:
        self._taken += size

    def give_back(self, size: int) -> None:
        self._taken -= size
        while self._waiting and self.has_room:
            resume = next(iter(self._waiting))
            del self._waiting[resume]
            resume()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when there is room again, first come, first served."""
        self._waiting[resume] = None
