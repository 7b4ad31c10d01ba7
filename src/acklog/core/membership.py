"""The members of one share group: who is in, what each subscribes to, what each is assigned (KIP-932).

The group's epoch goes up with every change of members, subscriptions or topics, and each change makes a new assignment
at once. A member learns the new epoch, and its assignment if that has changed, with its next heartbeat; it says with
each heartbeat which epoch it has, so what an answer that got lost had said is said again.

Members are remembered over a restart, epochs and assignments are not: a member that was recovered is adopted at
whatever epoch its first heartbeat has (rule 7 of docs/design.md), and told its assignment.

Time: every heartbeat moves its member's deadline; `expire` removes who is past it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from acklog.core.assignment import NOBODY, Assignment, TopicKey, assign
from acklog.errors import BadHeartbeat, FencedMember, GroupFull, UnknownMember

FindTopic = Callable[[str], tuple[TopicKey, int] | None]

# An assignment takes time with the different subscriptions in a group: with so many names in them below a second.
NAMES_LIMIT = 100_000

JOIN_EPOCH = 0
LEAVE_EPOCH = -1


@dataclass(slots=True, eq=False)
class Member:
    """One member. Its id is its own choice."""

    id: str
    topics: frozenset[str] = frozenset()  # names, existing or not
    rack: str | None = None
    client_id: str = ''
    client_host: str = ''
    epoch: int = 0  # the last one it was told
    previous_epoch: int = 0  # the one before: it may not have got the last answer
    assigned_at: int = 0  # epoch of the group when its assignment changed last
    assignment: Assignment = field(default_factory=dict)
    adoptable: bool = False  # recovered, and not heard of since
    deadline: int = 0  # ms


class Beat(NamedTuple):
    """What a heartbeat is answered with."""

    member: Member
    tell: bool  # the answer carries the assignment
    changed: bool  # something to be remembered over a restart has changed


class Membership:
    """The members of one group. `find`: the topic of a name and how many partitions it has, None if there is none."""

    def __init__(self, find: FindTopic) -> None:
        self.epoch = 0
        self.members: dict[str, Member] = {}
        self._find = find
        self._placement = NOBODY
        self._partitions: dict[TopicKey, int] = {}  # of the subscribed topics, as last looked at

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self.members.values()))

    def beat(
        self,
        now: int,
        member_id: str,
        epoch: int,
        topics: Collection[str] | None,
        *,
        timeout: int,
        limit: int,
        rack: str | None = None,
        client_id: str = '',
        client_host: str = '',
    ) -> Beat:
        """A heartbeat: join with `epoch` 0, go on with the epoch told last. `topics`: None if unchanged; `timeout`: ms
        until the next one must have come; `limit`: how many members there may be.

        Raises UnknownMember, FencedMember, GroupFull, BadHeartbeat; then nothing has changed.
        """
        if epoch < JOIN_EPOCH:
            raise BadHeartbeat(f'member epoch {epoch} is not valid')
        member = self.members.get(member_id)
        if member is None:
            member = self._new(member_id, epoch, topics, limit)
            changed = True
        else:
            self._check(member, epoch, topics)
            changed = False
        known = member.topics if topics is None else frozenset(topics)
        if known != member.topics:
            self._check_room(member, known)
            member.topics = known
            changed = True
        if changed:
            self.members[member_id] = member
            self._reassign()
        if rack is not None:
            member.rack = rack
        member.client_id, member.client_host = client_id, client_host
        member.deadline = now + timeout
        self._advance(member, epoch)
        # An epoch below the one of its assignment says that it has not got the answer with it.
        return Beat(member, epoch == JOIN_EPOCH or epoch < member.assigned_at, changed)

    def _new(self, member_id: str, epoch: int, topics: Collection[str] | None, limit: int) -> Member:
        if epoch != JOIN_EPOCH:
            raise UnknownMember(f'{member_id} is not a member of the group')
        if not topics:
            raise BadHeartbeat('the first heartbeat must name the topics subscribed to')
        if len(self.members) >= limit:
            raise GroupFull(f'the group has {limit} members already')
        return Member(member_id)

    def _check(self, member: Member, epoch: int, topics: Collection[str] | None) -> None:
        if epoch == JOIN_EPOCH:
            if not topics:
                raise BadHeartbeat('the first heartbeat must name the topics subscribed to')
        elif not member.adoptable and epoch not in (member.epoch, member.previous_epoch):
            raise FencedMember(f'member epoch {epoch} came where {member.epoch} was expected; the member must rejoin')

    def _check_room(self, member: Member, topics: frozenset[str]) -> None:
        others = {other.topics for other in self.members.values() if other is not member}
        if sum(map(len, others | {topics})) > NAMES_LIMIT:
            raise GroupFull(
                f'the members subscribe to more than {NAMES_LIMIT} topics, equal subscriptions counted once'
            )

    def _advance(self, member: Member, epoch: int) -> None:
        if member.adoptable:
            member.adoptable = False
            if epoch >= self.epoch:  # from before a restart; epochs never go back
                self.epoch = epoch + 1
            member.previous_epoch = epoch
            member.epoch = member.assigned_at = self.epoch
        elif epoch == JOIN_EPOCH:
            member.previous_epoch = member.epoch = self.epoch
        elif member.epoch != self.epoch:
            member.previous_epoch = epoch
            member.epoch = self.epoch

    def recover(self, now: int, member: Member, timeout: int) -> None:
        """A member from before a restart, adoptable for `timeout` ms."""
        member.adoptable = True
        member.deadline = now + timeout
        self.members[member.id] = member
        self._partitions = {}  # refresh assigns when all are back

    def remove(self, member_id: str) -> Member | None:
        """Take a member out; the others get what it had. Returns it if it was one."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._reassign()
        return member

    def expire(self, now: int) -> list[Member]:
        """Take out the members whose deadline has passed."""
        gone = [member for member in self.members.values() if member.deadline <= now]
        for member in gone:
            del self.members[member.id]
        if gone:
            self._reassign()
        return gone

    def clock_stepped(self, by: int) -> None:
        """The clock was set by so many ms: deadlines move along."""
        for member in self.members.values():
            member.deadline += by

    def next_deadline(self) -> int | None:
        """When `expire` has something next (ms)."""
        return min((member.deadline for member in self.members.values()), default=None)

    def refresh(self) -> None:
        """Look at the topics again: some were created or deleted, or have more partitions."""
        if self._subscribed() != self._partitions:
            self._reassign()

    def _subscribed(self) -> dict[TopicKey, int]:
        names = frozenset[str]().union(*{member.topics for member in self.members.values()})
        return dict(found for found in map(self._find, names) if found is not None)

    def _reassign(self) -> None:
        self.epoch += 1
        self._partitions = self._subscribed()
        by_name = {key.name: key for key in self._partitions}
        keys: dict[frozenset[str], frozenset[TopicKey]] = {}
        for member in self.members.values():
            if member.topics not in keys:
                keys[member.topics] = frozenset(by_name[name] for name in member.topics if name in by_name)
        subscriptions = {member.id: keys[member.topics] for member in self.members.values()}
        self._placement = assign(subscriptions, self._partitions, self._placement)
        assigned = self._placement.by_member()
        for member in self.members.values():
            assignment = assigned.get(member.id, {})
            if assignment != member.assignment:
                member.assignment = assignment
                member.assigned_at = self.epoch
