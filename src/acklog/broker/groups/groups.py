"""Share groups (KIP-932): that they exist is the catalog's, their members and share sessions are here, what they have
taken and signed off is the deliveries'. This joins the three.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.groups.members import Members
from acklog.broker.groups.presence import Presence
from acklog.broker.groups.remembered import Remembered
from acklog.broker.groups.share_sessions import Sessions
from acklog.broker.refusals import check_group_name, check_member_name, has_members, no_group
from acklog.core.share_session import INITIAL_EPOCH, SessionKey, ShareSession, TopicPartition
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group
    from acklog.broker.time import Scheduled


class Groups:
    """All share groups of this node. `members`: their members."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._remembered = Remembered(broker.catalog)
        self._presence = Presence(self._gone)
        self._sessions = Sessions(broker, self._presence, self._remembered)
        self._absent: dict[SessionKey, Scheduled] = {}  # members without a connection, until their grace is over
        self.members = Members(broker, self._presence, self._remembered, self._sessions)

    # -- groups --------------------------------------------------------------------------------------------------------

    async def ensure(self, name: str) -> Group:
        """The group of that name, made if there is none. Raises Refused, LogError."""
        group = self._broker.catalog.groups.get(name)
        if group is not None:
            return group
        check_group_name(name)
        try:
            return await self._broker.catalog.create_group(name)
        except Refused as refused:  # there are too many; clients of groups do not know the catalog's code for it
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, refused.message) from refused

    def existing(self, name: str) -> Group:
        """The group of that name. Raises Refused(GROUP_ID_NOT_FOUND)."""
        group = self._broker.catalog.groups.get(name)
        if group is None:
            raise no_group(name)
        return group

    def empty(self, name: str) -> Group:
        """The group of that name, which must have no members. Raises Refused."""
        group = self.existing(name)
        if self.members.any(name):
            raise has_members(name)
        return group

    def state(self, name: str) -> str:
        """'Empty' or 'Stable', as Kafka names them."""
        return 'Stable' if self.members.any(name) else 'Empty'

    async def delete(self, name: str) -> None:
        """Delete a group without members, with all that it has taken and signed off. Raises Refused, LogError."""
        group = self.empty(name)
        await self._broker.catalog.delete_group(group)
        self.members.group_deleted(name)
        self._sessions.group_deleted(name)
        try:
            await self._broker.deliveries.delete_group(group)
        finally:
            await self._broker.pauses.forget(group)

    def topics_changed(self) -> None:
        """Topics were created or deleted, or have more partitions: members learn it with their next heartbeat."""
        self.members.topics_changed()

    def _gone(self, key: SessionKey) -> None:
        """A member has lost its last connection: it is gone, unless it asked for a grace and is back by then."""
        if before := self._absent.pop(key, None):
            before.cancel()
        if grace := self._sessions.grace_ms(key):
            self._absent[key] = self._broker.timer.at(self._broker.clock() + grace, lambda: self._grace_over(key))
        else:
            self._lose(key)

    def _grace_over(self, key: SessionKey) -> None:
        self._absent.pop(key, None)
        if not self._presence.present(key) and not self._presence.stopped:
            self._lose(key)

    def _lose(self, key: SessionKey) -> None:
        self.members.gone(key)
        self._sessions.lost(key)

    # -- share sessions ------------------------------------------------------------------------------------------------

    def session(
        self,
        caller: Caller,
        name: str,
        member_id: str,
        epoch: int,
        added: Collection[TopicPartition] = (),
        forgotten: Collection[TopicPartition] = (),
        *,
        acknowledges: bool = False,
    ) -> ShareSession:
        """The share session for a request; the first thing to ask for, as the session's counter moves with it whatever
        the answer (except a session error, which is what this raises as Refused).

        `epoch` 0 makes a new one and returns what the member held; with `epoch` -1 it is the old one, to be ended by
        `close_session` after its acknowledgements. `acknowledges`: it is a ShareAcknowledge, which cannot begin one.
        """
        if epoch == INITIAL_EPOCH:
            check_member_name(member_id)
        return self._sessions.request(caller, SessionKey(name, member_id), epoch, added, forgotten, acknowledges)

    async def fetch_session(
        self,
        caller: Caller,
        name: str,
        member_id: str,
        epoch: int,
        added: Collection[TopicPartition],
        forgotten: Collection[TopicPartition],
    ) -> ShareSession:
        """`session` for a ShareFetch, remembered when it returns. A member need not have sent a heartbeat, nor the
        group exist: it is made. Raises Refused."""
        if epoch == INITIAL_EPOCH:
            check_group_name(name)
        session = self.session(caller, name, member_id, epoch, added, forgotten)
        if epoch == INITIAL_EPOCH:
            try:
                await self.ensure(name)
            except LogError as error:
                raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f'cannot be written down: {error}') from error
        if self._remembered.pending:
            with contextlib.suppress(LogError):  # not remembered: after a restart the member begins a new one
                await self._remembered.written()
        return session

    async def close_session(self, session: ShareSession) -> None:
        """The member said goodbye to it: what it holds is returned, not counted as failed. Written when it returns."""
        self._sessions.close(session)
        with contextlib.suppress(LogError):  # its locks run out then
            await self._broker.deliveries.journal.written()
            await self._remembered.written()

    # -- stop and restart ----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The server is about to close the connections: that is no failure of the members (rule 7)."""
        self._presence.stopped = True

    def clock_stepped(self, by: int) -> None:
        """See `Broker.clock_stepped`."""
        self.members.clock_stepped(by)
        self._sessions.clock_stepped(by)

    async def recover(self) -> None:
        """Take up the members and sessions from before a restart, which is no failure of theirs (rule 7)."""
        now = max(self._broker.clock(), self._broker.latest)  # where the clock will go on from
        self.members.recover(now)
        self._sessions.recover(now)
        with contextlib.suppress(LogError):  # only what was out of date was forgotten
            await self._remembered.written()
