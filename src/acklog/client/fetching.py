"""Taking records from all nodes that lead partitions of a member, at the same time.

Strategy: one fetch per node is under way at most, as a task of its own; what comes first is returned, the others go on
and are found by whoever asks next. When the assignment changes, the fetches follow it. A server that cannot be reached,
or whose partitions have moved, is looked for again.

While records are held, fetches wait shortly: a server answers the requests of a session in their order, so what is
decided meanwhile would be told only when the fetch is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from acklog.client.errors import PASSING, ClientClosed
from acklog.client.holding import Holding
from acklog.client.membership import Membership
from acklog.client.places import LOOK_AGAIN, Places
from acklog.client.received import Received
from acklog.client.share_link import Fetched, ShareLink
from acklog.client.share_session import Limits

HELD_WAIT = 0.1  # seconds that a fetch waits at most while there are records about which something may be decided
AHEAD_WAIT = 0.5  # seconds that a fetch waits which nobody waits for
LONGEST_WAIT = 3600.0  # seconds that a fetch waits at most
ANSWER_GRACE = 1.0  # seconds that an empty answer may come later than asked for


class Fetching:
    """`link`: makes the share session with a node; `max_bytes`, `strict`: see `Subscription`."""

    def __init__(
        self,
        holding: Holding,
        membership: Membership,
        places: Places,
        link: Callable[[int], ShareLink],
        *,
        max_bytes: int,
        strict: bool,
    ) -> None:
        self._holding, self._links = holding, holding.links
        self._membership, self._places = membership, places
        self._link = link
        self._max_bytes, self._strict = max_bytes, strict

    def check(self) -> None:
        """Raises ClientClosed (also before it is open), and what ended the membership."""
        self._holding.check_open()
        if not self._membership.joined:
            raise ClientClosed('the subscription was not opened yet: async with, or start')
        if self._membership.failure is not None:
            raise self._membership.failure

    @property
    def under_way(self) -> list[asyncio.Task[Fetched]]:
        """All fetches that have not been collected yet."""
        return [link.fetching for link in self._links.values() if link.fetching is not None]

    async def until(self, deadline: float, wanted: int) -> list[Received]:
        """Records as soon as there are some, nothing from `deadline` (loop time) on. Raises as `check`, and Refused."""
        loop = asyncio.get_running_loop()
        while True:
            self.check()
            self._membership.changed.clear()
            left = deadline - loop.time()
            await self._start(max(0.0, left), wanted)
            tasks = self.under_way
            if not tasks and left <= 0:
                return []
            records = await self._first_of(tasks, left)
            if records or loop.time() >= deadline:
                return records

    def ahead(self, wanted: int) -> None:
        """Fetch where nothing is under way. The next `until` finds it."""
        for link in self._links.values():
            if link.wanted:
                link.start(link.wanted, self._limits(AHEAD_WAIT, wanted))

    def _limits(self, wait: float, wanted: int) -> Limits:
        if self._holding.unsettled:
            wait = min(wait, HELD_WAIT, self._holding.lock_seconds / 10)
        return Limits(int(min(wait, LONGEST_WAIT) * 1000), self._max_bytes, wanted, self._strict)

    async def _start(self, wait: float, wanted: int) -> None:
        """Have a fetch under way with each node that leads something, or has still to be told something."""
        by_node = await self._places.by_node(self._membership.assignment)
        limits = self._limits(wait, wanted)
        for node in by_node:
            if node not in self._links:
                self._links[node] = self._link(node)
        for link in self._links.values():
            keys = by_node.get(link.node, ())
            if keys or link.session.partitions or link.session.has_decisions:
                for key in keys:
                    self._holding.comes_from(self._places.names[key[0]], key[1], link, key)
                link.start(keys, limits)

    async def _first_of(self, tasks: Sequence[asyncio.Task[Fetched]], left: float) -> list[Received]:
        """What the first fetch that is done has brought; nothing when the assignment changes first."""
        waiting: list[asyncio.Task[Any]] = [*tasks] or [asyncio.create_task(self._membership.changed.wait())]
        try:
            await asyncio.wait(waiting, timeout=self._patience(tasks, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not tasks:
                waiting[0].cancel()
        records: list[Received] = []
        for link in self._links.values():
            if link.fetching is not None and link.fetching.done():
                task, link.fetching = link.fetching, None
                records += await self._collect(link, task)
        return records

    def _patience(self, tasks: Sequence[asyncio.Task[Fetched]], left: float) -> float:
        left = max(0.0, left)
        if tasks:
            return left + ANSWER_GRACE  # the server waits that long itself
        return min(left, LOOK_AGAIN) if self._membership.assignment else left  # there is something, but where?

    async def _collect(self, link: ShareLink, task: asyncio.Task[Fetched]) -> list[Received]:
        self._holding.note_failures(link)
        try:
            fetched = task.result()
        except PASSING:
            self._places.forget()
            await asyncio.sleep(0.05)
            return []
        if fetched.moved:
            self._places.forget()
        return fetched.records
