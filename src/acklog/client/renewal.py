"""Keeps the locks of what a subscription holds from running out, for as long as it holds it (KIP-1222).

Strategy: after a third of a lock's time all that is open is renewed at once, as ranges, one request per server. So a
lock is begun anew twice before it would run out, and a request may fail. A server that cannot renew, or a group that
may not, is left in peace: locks run out there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from acklog.client.errors import PASSING
from acklog.client.share_link import ShareLink

UNKNOWN = 0.2  # seconds to wait while no server has said how long locks last
SHORTEST = 0.02  # seconds


class Renewal:
    """The renewals of one subscription, between `start` and `stop`. `links`: its share sessions by node, as they are at
    the time."""

    def __init__(self, links: Mapping[int, ShareLink]) -> None:
        self._links = links
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            lock = min((link.lock_ms for link in self._links.values() if link.lock_ms), default=0) / 1000
            await asyncio.sleep(max(SHORTEST, lock / 3) if lock else UNKNOWN)
            for link in list(self._links.values()):
                if link.renews and link.session.held:
                    with contextlib.suppress(*PASSING):  # there is time for another attempt
                        await link.renew_open()
