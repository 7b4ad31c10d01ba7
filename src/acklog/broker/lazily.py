"""A part of an answer that is made while it is written (`acklog.wire.cold`), a piece at a time: so a long answer does
not hold up others, and it is not there twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic, TypeVar

S = TypeVar('S')
T = TypeVar('T')


class Lazily(Generic[S, T]):
    """`make(item)` for each of `items`, made when its turn comes, and each time anew. `make` finds things as they are
    then, not as they were when the request came."""

    __slots__ = ('_items', '_make')

    def __init__(self, make: Callable[[S], T], items: Collection[S]) -> None:
        self._make = make
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._items)
