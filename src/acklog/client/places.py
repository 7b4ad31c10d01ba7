"""Which node leads the partitions that a member has.

An assignment names topics by id; where they are is asked when it is not known, and again after an answer or a broken
connection says that it is out of date, but not more often than every `LOOK_AGAIN` seconds.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection

from acklog.client.cluster import Cluster
from acklog.client.errors import PASSING, NotFound
from acklog.client.membership import Assignment
from acklog.client.share_session import Key

LOOK_AGAIN = 0.1  # seconds


class Places:
    """`names`: topic names by id, of all topics that were ever assigned."""

    def __init__(self, cluster: Cluster) -> None:
        self.names: dict[uuid.UUID, str] = {}
        self._cluster = cluster
        self._leaders: dict[Key, int] = {}
        self._not_before = 0.0  # loop time

    async def by_node(self, assignment: Assignment) -> dict[int, set[Key]]:
        """The assigned partitions by the node that leads them; those whose leader is not known are left out."""
        assigned = {(id_, index) for id_, indexes in assignment.items() for index in indexes}
        now = asyncio.get_running_loop().time()
        if not assigned <= self._leaders.keys() and now >= self._not_before:
            self._not_before = now + LOOK_AGAIN
            await self._look(assigned)
        by_node: dict[int, set[Key]] = {}
        for key in assigned:
            if key in self._leaders:
                by_node.setdefault(self._leaders[key], set()).add(key)
        return by_node

    def forget(self) -> None:
        """What is known is out of date."""
        self._leaders.clear()

    async def _look(self, assigned: Collection[Key]) -> None:
        try:
            places = await self._cluster.refresh_ids(sorted({id_ for id_, _ in assigned}))
        except (*PASSING, NotFound):
            return
        for place in places.values():
            self.names[place.id] = place.name
            self._leaders.update({(place.id, index): node for index, node in place.leaders.items() if node >= 0})
