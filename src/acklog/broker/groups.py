"""Share groups: their members, who is assigned what, who is gone (KIP-932). What a group is configured to is the
catalog's, what it has taken and signed off are the deliveries'.

Strategy: `core.Membership` decides; this joins it to configs, clock, timer, catalog and connections. A heartbeat that
changes nothing touches no log and asks for no timer: one call a group is asked for, at the deadline that was the
earliest then, and asks again for what has become the earliest. Topics are looked at again with the next heartbeat
after one of them has changed.

A member that is gone (rule 6: both connections, or its time) is taken out, its locks are lost, its session ends. One
that leaves is taken out, its waiting poll is answered; its session stays, for its last acknowledgements may come
later, over another connection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.presence import Presence, Use
from acklog.broker.remembered import Remembered
from acklog.broker.share_sessions import Sessions
from acklog.core.assignment import TopicKey
from acklog.core.membership import Beat, Member, Membership
from acklog.core.share_session import FINAL_EPOCH, SessionKey, ShareSession, TopicPartition
from acklog.errors import BadHeartbeat, FencedMember, GroupFull, LogError, MembershipError, UnknownMember
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog import Group

MAX_NAMES = 1_000_000  # topics subscribed to, summed over all members
MAX_ID_LENGTH = 255  # characters of the id of a group or of a member

CODES: dict[type[MembershipError], ErrorCode] = {
    UnknownMember: ErrorCode.UNKNOWN_MEMBER_ID,
    FencedMember: ErrorCode.FENCED_MEMBER_EPOCH,
    GroupFull: ErrorCode.GROUP_MAX_SIZE_REACHED,
    BadHeartbeat: ErrorCode.INVALID_REQUEST,
}


class _Membership(Membership):
    """The members of one group, and what is asked of the timer for them."""

    armed: int | None = None
    looked_at: int = -1  # version of the topics


class Groups:
    """All share groups of this node."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._remembered = Remembered(broker.catalog)
        self._presence = Presence(self._gone)
        self._sessions = Sessions(broker, self._presence, self._remembered)
        self._memberships: dict[str, _Membership] = {}
        self._unwritten: set[SessionKey] = set()  # members whose joining the catalog could not write
        self._names = 0
        self._topics_version = 0

    # -- groups --------------------------------------------------------------------------------------------------------

    async def ensure(self, name: str) -> Group:
        """The group of that name, made if there is none. Raises Refused."""
        group = self._broker.catalog.groups.get(name)
        if group is not None:
            return group
        self._check_name(name)
        try:
            return await self._broker.catalog.create_group(name)
        except Refused as refused:  # there are too many; clients of groups do not know the catalog's code for it
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, refused.message) from refused

    def existing(self, name: str) -> Group:
        """The group of that name. Raises Refused(GROUP_ID_NOT_FOUND)."""
        group = self._broker.catalog.groups.get(name)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f'Group {name} not found.')
        return group

    def empty(self, name: str) -> Group:
        """The group of that name, which must have no members. Raises Refused."""
        group = self.existing(name)
        if self.members(name):
            raise Refused(ErrorCode.NON_EMPTY_GROUP, f'Group {name} is not empty.')
        return group

    async def delete(self, name: str) -> None:
        """Delete a group without members. Raises Refused and LogError."""
        group = self.empty(name)
        await self._broker.catalog.delete_group(group)
        membership = self._memberships.pop(name, None)
        for member in membership or ():  # joined meanwhile; they will join the next group of that name
            self._names -= len(member.topics)
            self._remembered.no_member(name, member.id)
            self._presence.forget(SessionKey(name, member.id), Use.HEARTBEAT)
        self._sessions.group_deleted(name)
        await self._broker.deliveries.delete_group(group)

    def state(self, name: str) -> str:
        """'Empty' or 'Stable', as Kafka names them."""
        return 'Stable' if self.members(name) else 'Empty'

    def members(self, name: str) -> list[Member]:
        """The members of a group, assigned by the topics as they are now."""
        membership = self._memberships.get(name)
        if membership is None:
            return []
        self._look_at_topics(membership)
        return sorted(membership, key=lambda member: member.id)

    def epoch(self, name: str) -> int:
        """The epoch of a group."""
        membership = self._memberships.get(name)
        return 0 if membership is None else membership.epoch

    def topics_changed(self) -> None:
        """Topics were created or deleted, or have more partitions: members learn it with their next heartbeat."""
        self._topics_version += 1

    def _find_topic(self, name: str) -> tuple[TopicKey, int] | None:
        topic = self._broker.catalog.topics.get(name)
        return None if topic is None else (TopicKey(name, topic.id_bytes), topic.partitions)

    def _look_at_topics(self, membership: _Membership) -> None:
        if membership.looked_at != self._topics_version:
            membership.looked_at = self._topics_version
            membership.refresh()

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    async def heartbeat(
        self, caller: Caller, name: str, member_id: str, epoch: int, topics: Collection[str] | None, rack: str | None
    ) -> Beat:
        """Join with `epoch` 0 or go on. `topics`: None if unchanged. Answer when it returns. Raises Refused."""
        self._check_id(member_id)
        try:
            group = await self.ensure(name) if epoch == 0 and topics else self._broker.catalog.groups.get(name)
            if group is None:
                # Not GROUP_ID_NOT_FOUND, which ends clients for good: this one lets them join anew.
                raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f'there is no group {name}')
            beat = self._beat(caller, group, member_id, epoch, topics, rack)
            if beat.changed:
                await self._remembered.written()
        except LogError as error:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f'cannot be written down: {error}') from error
        return beat

    def _beat(
        self, caller: Caller, group: Group, member_id: str, epoch: int, topics: Collection[str] | None, rack: str | None
    ) -> Beat:
        broker, key = self._broker, SessionKey(group.name, member_id)
        membership = self._memberships.get(group.name)
        if membership is None:
            membership = _Membership(self._find_topic)
        self._look_at_topics(membership)
        known = membership.members.get(member_id)
        before = 0 if known is None else len(known.topics)
        if topics is not None:
            topics = frozenset(topics)
            if self._names + len(topics) - before > MAX_NAMES:
                raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f'members subscribe to {MAX_NAMES} topics already')
        try:
            beat = membership.beat(
                broker.clock(), member_id, epoch, topics,
                timeout=group.integer('share.session.timeout.ms'),
                limit=broker.catalog.settings.integer('group.share.max.size'), rack=rack,
                client_id=caller.client_id or '', client_host=f'/{caller.address}',
            )  # fmt: skip
        except MembershipError as error:
            raise Refused(CODES[type(error)], str(error)) from error
        self._memberships[group.name] = membership
        self._names += len(beat.member.topics) - before
        self._presence.seen(key, Use.HEARTBEAT, caller)
        if beat.changed or key in self._unwritten:
            self._unwritten.discard(key)
            self._remembered.member(group.name, beat.member, lambda: self._unwritten.add(key))
        self._arm(group.name, membership, beat.member.deadline)
        return beat

    def _check_name(self, name: str) -> None:
        if not 0 < len(name) <= MAX_ID_LENGTH:
            raise Refused(ErrorCode.INVALID_GROUP_ID, f'a group id has 1 to {MAX_ID_LENGTH} characters')

    def _check_id(self, member_id: str) -> None:
        if not 0 < len(member_id) <= MAX_ID_LENGTH:
            raise Refused(ErrorCode.INVALID_REQUEST, f'a member id has 1 to {MAX_ID_LENGTH} characters')

    async def leave(self, name: str, member_id: str) -> None:
        """A member leaves; its share session stays until it is closed or its connection is. Raises Refused."""
        self._check_id(member_id)
        membership = self._memberships.get(self.existing(name).name)
        if membership is None or self._remove(name, membership, member_id) is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f'{member_id} is not a member of the group')
        key = SessionKey(name, member_id)
        self._broker.deliveries.wake_member(name, member_id)
        if not self._presence.connected(key, Use.SESSION):  # from before a restart: nobody will close it
            self._sessions.lost(key)
        try:
            await self._remembered.written()
        except LogError as error:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f'cannot be written down: {error}') from error

    def _remove(self, name: str, membership: _Membership, member_id: str) -> Member | None:
        member = membership.remove(member_id)
        if member is not None:
            self._removed(name, member)
        return member

    def _removed(self, name: str, member: Member) -> None:
        self._names -= len(member.topics)
        key = SessionKey(name, member.id)
        self._unwritten.discard(key)
        self._presence.forget(key, Use.HEARTBEAT)
        self._remembered.no_member(name, member.id)

    # -- who is gone ---------------------------------------------------------------------------------------------------

    def _gone(self, key: SessionKey) -> None:
        """A member has lost its last connection."""
        membership = self._memberships.get(key.group)
        if membership is not None:
            self._remove(key.group, membership, key.member)
        self._sessions.lost(key)

    def _arm(self, name: str, membership: _Membership, deadline: int) -> None:
        """One call a group is asked for; a later deadline waits for it."""
        if membership.armed is None or deadline < membership.armed:
            membership.armed = deadline
            self._broker.timer.at(deadline, lambda: self._due(name, membership))

    def _due(self, name: str, membership: _Membership) -> None:
        if self._memberships.get(name) is not membership:
            return
        now = self._broker.clock()
        if membership.armed is not None and membership.armed <= now:
            membership.armed = None
        for member in membership.expire(now):
            self._removed(name, member)
            self._sessions.timed_out(SessionKey(name, member.id))
        if (deadline := membership.next_deadline()) is not None:
            self._arm(name, membership, deadline)

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
        self._check_id(member_id)
        key = SessionKey(name, member_id)
        return self._sessions.request(caller, key, epoch, added, forgotten, acknowledges=acknowledges)

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
        self._check_name(name)
        session = self.session(caller, name, member_id, epoch, added, forgotten)
        if self._broker.catalog.groups.get(name) is None and epoch != FINAL_EPOCH:
            try:
                await self.ensure(name)
            except LogError as error:
                raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f'cannot be written down: {error}') from error
        with contextlib.suppress(LogError):  # not remembered: after a restart the member begins a new one
            await self._remembered.written()
        return session

    async def close_session(self, session: ShareSession) -> None:
        """The member said goodbye to it: what it holds is returned, not counted as failed. Written when it returns."""
        self._sessions.close(session)
        with contextlib.suppress(LogError):  # its locks run out then
            await self._broker.deliveries.journal.written()
            await self._remembered.written()

    # -- restart -------------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Members and sessions from before a restart: each has its session timeout to be heard of again (rule 7)."""
        now = self._broker.clock()
        for name, member in list(self._remembered.members()):
            group = self._broker.catalog.groups.get(name)
            if group is None:
                self._remembered.no_member(name, member.id)
                continue
            membership = self._memberships.setdefault(name, _Membership(self._find_topic))
            membership.recover(now, member, group.integer('share.session.timeout.ms'))
            self._names += len(member.topics)
            self._arm(name, membership, member.deadline)
        self._sessions.recover()
        with contextlib.suppress(LogError):  # only what was out of date was forgotten
            await self._remembered.written()
