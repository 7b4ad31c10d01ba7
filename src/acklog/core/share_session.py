"""Share sessions: which partitions a member takes from, and the counter that keeps its requests in order (KIP-932).

A session begins with a ShareFetch of epoch 0 that lists the partitions; the next request, be it ShareFetch or
ShareAcknowledge, has epoch 1, and so on; epoch -1 ends it. A client advances its counter on any answer but a session
error, so the counter here moves as soon as a request has passed `next`, whatever its answer will be.

Sessions are remembered over a restart, their counters are not: a session that was recovered is *adoptable*, its first
request may have any epoch (rule 7 of docs/design.md). One that nobody adopts in time is given up (`due`).

Limits: how many sessions there are, and how many partitions they name, each and altogether. What a session names need
not exist, and all of it is looked at, answered and written down again and again, for requests of a few bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from acklog.errors import SessionEpoch, SessionLimit, SessionNotFound

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LAST_EPOCH = 2**31 - 1

TopicPartition = tuple[bytes, int]  # topic id, partition


class SessionKey(NamedTuple):
    """A session belongs to a member of a group."""

    group: str
    member: str


class ShareSession:
    """One session. `partitions` in the order in which they were added; `epoch`: what its next request must have;
    `grace_ms`: for how long its member wants to be without a connection before it counts as lost."""

    __slots__ = ('adopt_until', 'epoch', 'grace_ms', 'key', 'partitions')

    def __init__(self, key: SessionKey, partitions: Iterable[TopicPartition]) -> None:
        self.key = key
        self.partitions: dict[TopicPartition, None] = dict.fromkeys(partitions)
        self.epoch = 1
        self.grace_ms = 0
        self.adopt_until: int | None = None  # ms; set while it is adoptable

    @property
    def adoptable(self) -> bool:
        """It was recovered and has had no request since."""
        return self.adopt_until is not None

    def turn(self, first: int) -> None:
        """Put the first `first` partitions to the end, so that each comes first in turn."""
        for partition in list(self.partitions)[:first]:
            del self.partitions[partition]
            self.partitions[partition] = None


class ShareSessions:
    """The sessions of a node. `limit`: how many; `session_limit`, `partition_limit`: how many partitions in each, and
    in all of them."""

    def __init__(self, limit: int = 2000, partition_limit: int = 500_000, session_limit: int = 10_000) -> None:
        self.limit, self.partition_limit, self.session_limit = limit, partition_limit, session_limit
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._partitions = 0
        self._adoptable: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(list(self._sessions.values()))

    def find(self, key: SessionKey) -> ShareSession | None:
        """The member's session, if it has one."""
        return self._sessions.get(key)

    def open(self, key: SessionKey, partitions: Iterable[TopicPartition]) -> ShareSession:
        """A new session; one that the member had is gone. Raises SessionLimit."""
        self.close(key)
        session = ShareSession(key, partitions)
        if len(self._sessions) >= self.limit:
            raise SessionLimit(f'there are {self.limit} share sessions already')
        self._room(len(session.partitions), 0)
        self._partitions += len(session.partitions)
        self._sessions[key] = session
        return session

    def recover(self, key: SessionKey, partitions: Iterable[TopicPartition], adopt_until: int) -> ShareSession:
        """A session from before a restart, adoptable until `adopt_until` (ms)."""
        session = self.open(key, partitions)
        session.adopt_until = adopt_until
        self._adoptable[key] = session
        return session

    def next(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session for a request with `epoch`, any but 0; its counter moves on, unless the request ends it.

        Raises SessionNotFound and SessionEpoch; then nothing has changed.
        """
        session = self._sessions.get(key)
        if session is None:
            raise SessionNotFound(f'member {key.member} of group {key.group} has no share session here')
        if epoch == FINAL_EPOCH:
            return session
        if session.adopt_until is not None:
            if epoch < 1:
                raise SessionEpoch(f'share session epoch {epoch} is not one of a session that goes on')
            session.adopt_until = None
            del self._adoptable[key]
        elif epoch != session.epoch:
            raise SessionEpoch(f'share session epoch {epoch} came where {session.epoch} was expected')
        session.epoch = 1 if epoch == LAST_EPOCH else epoch + 1
        return session

    def change(
        self, session: ShareSession, added: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]
    ) -> bool:
        """Add partitions, then forget others (one may be listed for its acknowledgements and forgotten in the same
        request). True if the set is another one.

        Raises SessionLimit; then nothing has changed.
        """
        leaving = set(forgotten)
        new = [p for p in dict.fromkeys(added) if p not in session.partitions and p not in leaving]
        if new:
            self._room(len(new), len(session.partitions))
        gone = [p for p in leaving if p in session.partitions]
        for partition in gone:
            del session.partitions[partition]
        session.partitions.update(dict.fromkeys(new))
        self._partitions += len(new) - len(gone)
        return bool(new or gone)

    def close(self, key: SessionKey) -> ShareSession | None:
        """Forget the session; returns it if there was one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._partitions -= len(session.partitions)
            self._adoptable.pop(key, None)
        return session

    def due(self, now: int) -> list[ShareSession]:
        """Recovered sessions that nobody has adopted in time."""
        return [s for s in self._adoptable.values() if s.adopt_until is not None and s.adopt_until <= now]

    def next_deadline(self) -> int | None:
        """When `due` has something next (ms)."""
        return min((s.adopt_until for s in self._adoptable.values() if s.adopt_until is not None), default=None)

    def clock_stepped(self, by: int) -> None:
        """The clock was set by so many ms: deadlines move along."""
        for session in self._adoptable.values():
            if session.adopt_until is not None:
                session.adopt_until += by

    def _room(self, count: int, before: int) -> None:
        if before + count > self.session_limit:
            raise SessionLimit(f'a share session may name {self.session_limit} partitions')
        if self._partitions + count > self.partition_limit:
            raise SessionLimit(f'share sessions may name {self.partition_limit} partitions altogether')
