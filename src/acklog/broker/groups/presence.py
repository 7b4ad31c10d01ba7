"""Which connections each member of a group has, and who has lost its last one.

A member uses up to two connections: one for heartbeats, one for its share session. Clients drop and renew single idle
connections all the time, so a member is gone only when both are (rule 6 of docs/design.md). Where a connection has
never been seen, as after a restart of the server, nothing is concluded from its absence: only the closing of the last
known connection tells that somebody is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from acklog.broker.api import Caller
from acklog.core.share_session import SessionKey


class Use(IntEnum):
    """What a member uses a connection for."""

    HEARTBEAT = 0
    SESSION = 1


class Presence:
    """The connections of all members; `gone(key)` is called once when a member has lost its last one."""

    def __init__(self, gone: Callable[[SessionKey], None]) -> None:
        self.stopped = False  # from then on connections are closed by the server, which says nothing of the members
        self._gone = gone
        self._callers: dict[SessionKey, list[Caller | None]] = {}  # by Use
        self._keys: dict[Caller, set[SessionKey]] = {}

    def seen(self, key: SessionKey, use: Use, caller: Caller) -> None:
        """A request of the member came over `caller`'s connection."""
        callers = self._callers.get(key)
        if caller.closed or (callers is not None and callers[use] is caller):
            return
        if callers is None:
            callers = self._callers[key] = [None, None]
        before = callers[use]
        callers[use] = caller
        if before is not None:
            self._release(before, key)
        keys = self._keys.get(caller)
        if keys is None:
            keys = self._keys[caller] = set()
            caller.on_close[lambda: self._closed(caller)] = None
        keys.add(key)

    def connected(self, key: SessionKey, use: Use) -> bool:
        """The member has a connection for that use."""
        callers = self._callers.get(key)
        return callers is not None and callers[use] is not None

    def present(self, key: SessionKey) -> bool:
        """The member has a connection."""
        return key in self._callers

    def forget(self, key: SessionKey, use: Use) -> None:
        """The member has left the group, or its session has ended."""
        callers = self._callers.get(key)
        if callers is None:
            return
        caller, callers[use] = callers[use], None
        if caller is not None:
            self._release(caller, key)
        if callers == [None, None]:
            del self._callers[key]

    def _release(self, caller: Caller, key: SessionKey) -> None:
        if caller not in self._callers.get(key, ()):
            keys = self._keys.get(caller)
            if keys is not None:
                keys.discard(key)

    def _closed(self, caller: Caller) -> None:
        if self.stopped:
            return
        for key in sorted(self._keys.pop(caller, ())):
            callers = self._callers.get(key)
            if callers is None:
                continue
            callers[:] = [None if c is caller else c for c in callers]
            if callers == [None, None]:
                del self._callers[key]
                self._gone(key)
