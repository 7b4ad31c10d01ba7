"""Share sessions at work: core's sessions joined to connections, the catalog and the locks of their members (KIP-932).

A session that ends returns what its member holds: not counted as failed when the member said goodbye or began a new one
(rules 6 and 7 of docs/design.md), failed when the member is lost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.groups.presence import Presence, Use
from acklog.broker.groups.remembered import Remembered
from acklog.core.share_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    ShareSessions,
    TopicPartition,
)
from acklog.errors import SessionEpoch, SessionLimit, SessionNotFound, ShareSessionError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

CODES: dict[type[ShareSessionError], ErrorCode] = {
    SessionNotFound: ErrorCode.SHARE_SESSION_NOT_FOUND,
    SessionEpoch: ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    SessionLimit: ErrorCode.SHARE_SESSION_LIMIT_REACHED,
}


class Sessions:
    """The share sessions of this node."""

    def __init__(self, broker: Broker, presence: Presence, remembered: Remembered) -> None:
        self._broker = broker
        self._presence = presence
        self._remembered = remembered
        self._sessions = ShareSessions()
        self._principals: dict[SessionKey, str] = {}  # locks belong to (principal, member)

    def request(
        self,
        caller: Caller,
        key: SessionKey,
        epoch: int,
        added: Collection[TopicPartition],
        forgotten: Collection[TopicPartition],
        acknowledges: bool,
    ) -> ShareSession:
        """See `Groups.session`."""
        try:
            if caller.closed:  # its connection went while the request waited its turn
                raise SessionNotFound('the connection is closed')
            if self._principals.get(key, caller.principal) != caller.principal:
                raise SessionNotFound('the member belongs to somebody else')
            if epoch == INITIAL_EPOCH:
                if acknowledges:
                    raise SessionEpoch('an acknowledgement cannot begin a share session')
                return self._open(caller, key, added)
            session = self._sessions.next(key, epoch)
            if epoch != FINAL_EPOCH and (added or forgotten) and self._sessions.change(session, added, forgotten):
                self._remembered.session(session, caller.principal)
        except ShareSessionError as error:
            raise Refused(CODES[type(error)], str(error)) from error
        self._presence.seen(key, Use.SESSION, caller)
        return session

    def _open(self, caller: Caller, key: SessionKey, partitions: Collection[TopicPartition]) -> ShareSession:
        self._sessions.limit = self._broker.settings.integer('group.share.max.share.sessions')
        self._sessions.session_limit = self._most_partitions()
        self._left(key)
        known = self._sessions.find(key) is not None
        try:
            session = self._sessions.open(key, partitions)
        except SessionLimit:
            if known:
                self._ended(key)
            raise
        self._principals[key] = caller.principal
        self._presence.seen(key, Use.SESSION, caller)
        self._remembered.session(session, caller.principal)
        return session

    def _most_partitions(self) -> int:
        """That a session may name: as many as there may be, or are."""
        return max(self._broker.settings.integer('acklog.max.partitions'), self._broker.catalog.partitions)

    def close(self, session: ShareSession) -> None:
        """See `Groups.close_session`."""
        key = session.key
        if self._sessions.find(key) is session:
            self._left(key)
            self._sessions.close(key)
            self._ended(key)

    def grace_ms(self, key: SessionKey) -> int:
        """For how long the member may be without a connection: as it asked, at most its session timeout."""
        session, group = self._sessions.find(key), self._broker.catalog.groups.get(key.group)
        if session is None or group is None:
            return 0
        return min(session.grace_ms, group.integer('share.session.timeout.ms'))

    def lost(self, key: SessionKey) -> None:
        """The member is gone: what it held has failed, at once."""
        self._broker.deliveries.wake_member(key.group, key.member)
        self._fail(key)
        if self._sessions.close(key) is not None:
            self._ended(key)

    def timed_out(self, key: SessionKey) -> None:
        """No heartbeat in time: what it held has failed. Its session goes on if it has a connection."""
        if self._presence.connected(key, Use.SESSION):
            self._fail(key)
        else:
            self.lost(key)

    def group_deleted(self, name: str) -> None:
        """Its sessions end."""
        for session in self._sessions:
            if session.key.group == name:
                self._sessions.close(session.key)
                self._ended(session.key)

    def recover(self, now: int) -> None:
        """Sessions from before a restart; those that nobody adopts in time are lost."""
        broker = self._broker
        self._sessions.limit = broker.settings.integer('group.share.max.share.sessions')
        self._sessions.session_limit = self._most_partitions()
        for key, principal, partitions in list(self._remembered.sessions()):
            group = broker.catalog.groups.get(key.group)
            if group is None:
                self._remembered.no_session(key)
                continue
            try:
                self._sessions.recover(key, partitions, now + group.integer('share.session.timeout.ms'))
            except SessionLimit:
                self._remembered.no_session(key)
            else:
                self._principals[key] = principal
        self._arm()

    def clock_stepped(self, by: int) -> None:
        """See `Broker.clock_stepped`."""
        self._sessions.clock_stepped(by)

    def _arm(self) -> None:
        if (deadline := self._sessions.next_deadline()) is not None:
            self._broker.timer.at(deadline, self._due)

    def _due(self) -> None:
        for session in self._sessions.due(self._broker.clock()):
            self.lost(session.key)
        self._arm()

    def _ended(self, key: SessionKey) -> None:
        self._principals.pop(key, None)
        self._presence.forget(key, Use.SESSION)
        self._remembered.no_session(key)

    def _left(self, key: SessionKey) -> None:
        if (group := self._broker.catalog.groups.get(key.group)) is not None:
            for delivery in self._broker.deliveries.of_group(group.id):
                delivery.left(key.member)

    def _fail(self, key: SessionKey) -> None:
        if (group := self._broker.catalog.groups.get(key.group)) is not None:
            for delivery in self._broker.deliveries.of_group(group.id):
                delivery.lost(key.member)
