"""A heap of instants, each with what falls due then: the earliest one is always known, and anything can leave early.

Strategy: a dict from instant to its content says what is there; a heap of the instants says which comes first. An
instant that has become empty leaves the dict at once and the heap when it comes to the top, or when more than half of
the heap is such leftovers, so that the heap never outgrows the dict by more than a factor.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar('T')

SLACK = 64


class Timeline(Generic[T]):
    """Contents by instant (ms)."""

    __slots__ = ('_heap', 'at')

    def __init__(self) -> None:
        self.at: dict[int, T] = {}
        self._heap: list[int] = []

    def first(self) -> int | None:
        """The earliest instant that has a content."""
        heap = self._heap
        while heap:
            if heap[0] in self.at:
                return heap[0]
            heappop(heap)
        return None

    def set(self, instant: int, content: T) -> None:
        """Give a new instant its content."""
        self.at[instant] = content
        heappush(self._heap, instant)
        if len(self._heap) > 2 * len(self.at) + SLACK:
            self._heap = list(self.at)
            heapify(self._heap)

    def drop(self, instant: int) -> None:
        """Its content is gone."""
        del self.at[instant]
        if not self.at:
            self._heap.clear()

    def pop_due(self, now: int) -> list[T]:
        """Take out all that falls due up to `now`, earliest first."""
        due = []
        while (first := self.first()) is not None and first <= now:
            due.append(self.at[first])
            self.drop(first)
        return due

    def due(self, now: int) -> list[T]:
        """What falls due up to `now`, earliest first; it stays."""
        heap = self._heap
        instants = []
        while (first := self.first()) is not None and first <= now:
            heappop(heap)
            instants.append(first)
        for instant in instants:
            heappush(heap, instant)
        return [self.at[instant] for instant in dict.fromkeys(instants)]

    def shift(self, by: int) -> None:
        """Move every instant by so many ms."""
        if not self.at:
            return
        self.at = {instant + by: content for instant, content in self.at.items()}
        self._heap = list(self.at)
        heapify(self._heap)
