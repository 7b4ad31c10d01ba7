"""Members of share groups: who is in, who is assigned what, who is gone (KIP-932).

Strategy: `core.Membership` decides; this joins it to configs, clock, timer, catalog and connections. A heartbeat that
changes nothing touches no log and asks for no timer: one call a group is asked for, at the deadline that was the
earliest then, and asks again for what has become the earliest. Topics are looked at again with the next heartbeat
after one of them has changed.

A member that is gone (rule 6: both connections, or its time) is taken out, its locks are lost, its session ends. One
that leaves is taken out, its waiting poll is answered; its session stays, for its last acknowledgements may come
later, over another connection.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.groups.presence import Presence, Use
from acklog.broker.groups.remembered import Remembered
from acklog.broker.groups.share_sessions import Sessions
from acklog.broker.refusals import check_member_name, no_member
from acklog.core.assignment import TopicKey
from acklog.core.membership import JOIN_EPOCH, Beat, Member, Membership
from acklog.core.share_session import SessionKey
from acklog.errors import BadHeartbeat, FencedMember, GroupFull, LogError, MembershipError, UnknownMember
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group

MAX_NAMES = 1_000_000  # topics subscribed to, summed over all members
MOST_OF_CLIENT_ID = 255  # characters that are kept

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


class Members:
    """The members of all share groups of this node."""

    def __init__(self, broker: Broker, presence: Presence, remembered: Remembered, sessions: Sessions) -> None:
        self._broker, self._presence, self._remembered, self._sessions = broker, presence, remembered, sessions
        self._memberships: dict[str, _Membership] = {}
        self._unwritten: set[SessionKey] = set()  # members whose joining the catalog could not write
        self._names = 0
        self._topics_version = 0

    # -- looking -------------------------------------------------------------------------------------------------------

    def of(self, name: str) -> list[Member]:
        """The members of a group by their ids, assigned by the topics as they are now."""
        membership = self._memberships.get(name)
        if membership is None:
            return []
        self._look_at_topics(membership)
        return sorted(membership, key=lambda member: member.id)

    def any(self, name: str) -> bool:
        """The group has members."""
        membership = self._memberships.get(name)
        return membership is not None and len(membership) > 0

    def epoch(self, name: str) -> int:
        """The epoch of a group."""
        membership = self._memberships.get(name)
        return 0 if membership is None else membership.epoch

    def topics_changed(self) -> None:
        """See `Groups.topics_changed`."""
        self._topics_version += 1

    def _look_at_topics(self, membership: _Membership) -> None:
        if membership.looked_at != self._topics_version:
            membership.looked_at = self._topics_version
            membership.refresh()

    def _find_topic(self, name: str) -> tuple[TopicKey, int] | None:
        topic = self._broker.catalog.topics.get(name)
        return None if topic is None else (TopicKey(name, topic.id_bytes), topic.partitions)

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    async def heartbeat(
        self, caller: Caller, name: str, member_id: str, epoch: int, topics: Collection[str] | None, rack: str | None
    ) -> Beat:
        """Join with `epoch` 0 or go on. `topics`: None if unchanged. Answer when it returns. Raises Refused."""
        check_member_name(member_id)
        groups, catalog = self._broker.groups, self._broker.catalog
        try:
            group = await groups.ensure(name) if epoch == JOIN_EPOCH and topics else catalog.groups.get(name)
            if group is None:
                # Not GROUP_ID_NOT_FOUND, which ends clients for good: this one lets them join anew.
                raise no_member(name, member_id)
            beat = self._beat(caller, group, member_id, epoch, topics, rack)
            if beat.changed:
                await self._remembered.written()
        except LogError as error:
            raise _unwritable(error) from error
        return beat

    async def remote(self, caller: Caller, name: str, member_id: str, topics: Collection[str], waits: int) -> None:
        """A member whose connections say nothing of it asks for records, and waits for `waits` ms for some: it joins,
        or is heard of. Raises Refused."""
        check_member_name(member_id)
        try:
            group = await self._broker.groups.ensure(name)
            if self._beat(caller, group, member_id, JOIN_EPOCH, topics, None, waits).changed:
                await self._remembered.written()
        except LogError as error:
            raise _unwritable(error) from error

    def heard(self, name: str, member_id: str) -> None:
        """A member, if it is one, is there."""
        membership, group = self._memberships.get(name), self._broker.catalog.groups.get(name)
        member = None if membership is None else membership.members.get(member_id)
        if member is not None and group is not None:
            timeout = group.integer('share.session.timeout.ms')
            member.deadline = max(member.deadline, self._broker.clock() + timeout)

    def is_remote(self, name: str, member_id: str) -> bool:
        """Its connections say nothing of it."""
        key = SessionKey(name, member_id)
        return not any(self._presence.connected(key, use) for use in Use)

    def _beat(
        self,
        caller: Caller,
        group: Group,
        member_id: str,
        epoch: int,
        topics: Collection[str] | None,
        rack: str | None,
        waits: int | None = None,
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
                broker.clock(),
                member_id,
                epoch,
                topics,
                timeout=group.integer('share.session.timeout.ms') + (waits or 0),
                limit=broker.settings.integer('group.share.max.size'),
                rack=rack,
                client_id=(caller.client_id or '')[:MOST_OF_CLIENT_ID],
                client_host=f'/{caller.address}',
            )
        except MembershipError as error:
            raise Refused(CODES[type(error)], str(error)) from error
        self._memberships[group.name] = membership
        self._names += len(beat.member.topics) - before
        if waits is None:
            self._presence.seen(key, Use.HEARTBEAT, caller)
        if beat.changed or key in self._unwritten:
            self._unwritten.discard(key)
            self._remembered.member(group.name, beat.member, lambda: self._unwritten.add(key))
        self._arm(group.name, membership, beat.member.deadline)
        return beat

    async def leave(self, name: str, member_id: str) -> None:
        """A member leaves; its share session stays until it is closed or its connection is. Raises Refused."""
        check_member_name(member_id)
        membership = self._memberships.get(self._broker.groups.existing(name).name)
        if membership is None or self._remove(name, membership, member_id) is None:
            raise no_member(name, member_id)
        key = SessionKey(name, member_id)
        self._broker.deliveries.wake_member(name, member_id)
        if not self._presence.connected(key, Use.SESSION):  # from before a restart: nobody will close it
            self._sessions.lost(key)
        try:
            await self._remembered.written()
        except LogError as error:
            raise _unwritable(error) from error

    # -- who is out ----------------------------------------------------------------------------------------------------

    def gone(self, key: SessionKey) -> None:
        """A member has lost its last connection."""
        membership = self._memberships.get(key.group)
        if membership is not None:
            self._remove(key.group, membership, key.member)

    def group_deleted(self, name: str) -> None:
        """Who has joined it meanwhile will join the next one of that name."""
        for member in self._memberships.pop(name, ()):
            self._removed(name, member)

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

    def clock_stepped(self, by: int) -> None:
        """See `Broker.clock_stepped`."""
        for membership in self._memberships.values():
            membership.clock_stepped(by)
            if membership.armed is not None:
                membership.armed += by

    # -- restart -------------------------------------------------------------------------------------------------------

    def recover(self, now: int) -> None:
        """Members from before a restart: each has its session timeout to be heard of again (rule 7)."""
        for name, member in list(self._remembered.members()):
            group = self._broker.catalog.groups.get(name)
            if group is None:
                self._remembered.no_member(name, member.id)
                continue
            membership = self._memberships.setdefault(name, _Membership(self._find_topic))
            membership.recover(now, member, group.integer('share.session.timeout.ms'))
            self._names += len(member.topics)
            self._arm(name, membership, member.deadline)


def _unwritable(error: LogError) -> Refused:
    """Not UNKNOWN_SERVER_ERROR, which ends clients for good: this one lets them try again."""
    return Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f'cannot be written down: {error}')
