"""Disks that hold up syncs, and waiting for what a thread brings about."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from tests.log.worlds import LocalWorld

LOG = '*/logs/log/*.log'


async def soon(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds. How long that takes does not matter: a test has its own limit."""
    while not condition():  # noqa: ASYNC110 - a thread brings it about
        await asyncio.sleep(0.001)


class Gate:
    """Holds syncs up until they are let through, one by one."""

    def __init__(self, local: LocalWorld) -> None:
        self.begun = 0
        self._through = threading.Semaphore(0)
        self._files = local.files
        local.files.before_sync = self._wait

    def _wait(self, path: str) -> None:
        self.begun += 1
        assert self._through.acquire(timeout=10)

    def let(self, count: int = 1) -> None:
        self._through.release(count)

    def open(self) -> None:
        """Let all through, now and later."""
        self._files.before_sync = lambda path: None
        self._through.release(100)
