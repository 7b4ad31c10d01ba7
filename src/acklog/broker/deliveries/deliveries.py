"""All share partitions of this node: made when a group first takes from a partition, recovered from the journal, folded
anew when the journal lost a write, ended with their group or topic."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.broker.deliveries.delivery import ShareDelivery
from acklog.broker.deliveries.excerpts import Excerpts
from acklog.broker.groups.config import offset_reset, pause_threshold, read_committed, share_config
from acklog.broker.groups.poison import Watch
from acklog.broker.journal.format import ShareKey
from acklog.broker.journal.journal import Journal
from acklog.broker.journal.refolds import Refolds
from acklog.broker.journal.replay import Replay
from acklog.core.events import ClockStepped
from acklog.core.share_partition import ShareConfig, SharePartition
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group, Topic
    from acklog.broker.deliveries.waiting import Waiter
    from acklog.broker.partition import Partition
    from acklog.core.events import Event


class Deliveries:
    """The share partitions, by (group incarnation, topic id, partition)."""

    def __init__(self, broker: Broker, journal: Journal) -> None:
        self.journal = journal
        self._broker = broker
        self.excerpts = Excerpts()
        self._refolds = Refolds(broker, journal, self._forget)
        self._all: dict[ShareKey, ShareDelivery] = {}
        self._of_group: dict[int, dict[ShareKey, ShareDelivery]] = {}
        self._highest_lock = 0  # number of a lock of share partitions that have ended
        self._watches: dict[int, Watch] = {}  # by group
        self.waiting: dict[tuple[str, str], set[Waiter]] = {}  # long polls by (group, member)
        journal.on_lost = self._lost
        journal.shortening.snapshot_of = self._snapshot

    # -- finding and making --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._all)

    def find(self, group: Group, topic_id: bytes, index: int) -> ShareDelivery | None:
        return self._all.get(ShareKey(group.id, topic_id, index))

    def of_group(self, group_id: int) -> Iterable[ShareDelivery]:
        return list(self._of_group.get(group_id, {}).values())

    async def get(self, group: Group, topic_id: bytes, index: int, *, start: int | None = None) -> ShareDelivery:
        """The group's share partition; a new one begins at `start`, by default where `share.auto.offset.reset` says.

        Raises Refused when the partition or the group is not here (any more)."""
        key = ShareKey(group.id, topic_id, index)
        if (found := self._all.get(key)) is not None:
            return found
        partition = self._broker.partition(topic_id, index)
        if partition is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'there is no partition {index} of that topic here')
        if start is None:
            start = await self._reset(group, partition)
            if (found := self._all.get(key)) is not None:
                return found
        known = self._broker.group_by_id(group.id)
        if self._broker.partition(topic_id, index) is not partition or known is not group:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 'the topic or the group was deleted meanwhile')
        locks = max(self._broker.clock() * 1000, self._highest_lock)  # no two of them have the same, not of one
        config = share_config(group, self._broker.cut_ms, partition.topic_name)
        state = SharePartition(config, start, locks=locks)  # that ended and began anew either
        self.journal.begin(key, list(state.snapshot()))
        return self._add(key, group, partition, state)

    async def _reset(self, group: Group, partition: Partition) -> int:
        """Where a new group begins (KIP-932, share.auto.offset.reset)."""
        policy = offset_reset(group)
        if policy == 'earliest':
            return partition.log.start
        if policy == 'latest':
            return partition.log.visible_end
        assert isinstance(policy, int)
        found = await partition.log.offset_at(self._broker.clock() - policy)
        return partition.log.visible_end if found is None else found[0]

    def _add(self, key: ShareKey, group: Group, partition: Partition, state: SharePartition) -> ShareDelivery:
        broker = self._broker
        delivery = ShareDelivery(key, partition, state, self.journal, broker.clock, broker.timer, self.excerpts)
        delivery.read_committed = read_committed(group)
        delivery.paused = broker.pauses.of(group) is not None
        delivery.watch = self._watch_of(group)
        delivery.owes = broker.dead_letters.owe
        self._all[key] = delivery
        self._of_group.setdefault(key.group, {})[key] = delivery
        return delivery

    async def topic_has_grown(self, topic: Topic, before: int) -> None:
        """Groups that take from it begin on its new partitions, those from number `before` on, at once and from their
        start: else what is published there before somebody asks would be missed by those that begin at the end. Who
        waits looks at them. Written when it returns, or else they begin when somebody asks."""
        indexes = range(topic.partitions)
        places = [each for index in indexes if (each := self._broker.partition(topic.id_bytes, index)) is not None]
        groups = {group: None for place in places if place.index < before for group in place.deliveries}
        for place in [place for place in places if place.index >= before]:
            for group_id in groups:
                if (group := self._broker.group_by_id(group_id)) is not None:
                    with contextlib.suppress(Refused):  # deleted meanwhile
                        await self.get(group, topic.id_bytes, place.index, start=place.log.start)
        with contextlib.suppress(LogError):  # the topic has grown all the same
            await self.journal.written()
        for waiters in self.waiting.values():
            for waiter in waiters:
                waiter.wake()

    # -- ending --------------------------------------------------------------------------------------------------------

    def _end(self, delivery: ShareDelivery) -> None:
        self._forget(delivery)
        self._highest_lock = max(self._highest_lock, delivery.state.status.lock_number)
        delivery.end()

    def _forget(self, delivery: ShareDelivery) -> None:
        """It is not here any more, if it was."""
        key = delivery.key
        if self._all.get(key) is not delivery:
            return
        del self._all[key]
        of_group = self._of_group[key.group]
        del of_group[key]
        if not of_group:
            del self._of_group[key.group]
        del delivery.partition.deliveries[key.group]
        self._broker.dead_letters.forget(delivery)

    async def delete_group(self, group: Group) -> None:
        """Its share partitions end; written when it returns."""
        for delivery in self.of_group(group.id):
            self._end(delivery)
        self._watches.pop(group.id, None)
        self._broker.scheduled.forget_group(group.id)
        await self.journal.written()

    async def delete_partition(self, group: Group, topic_id: bytes, index: int) -> bool:
        """One share partition ends, written when it returns, also where that failed before; False if there was none."""
        delivery = self.find(group, topic_id, index)
        if delivery is not None:
            self._end(delivery)
        await self.journal.written()
        return delivery is not None

    def partition_deleted(self, partition: Partition) -> None:
        for delivery in list(partition.deliveries.values()):
            self._end(delivery)

    # -- groups and members --------------------------------------------------------------------------------------------

    def reconfigure(self, group: Group) -> None:
        """The group's config has changed: locks given from now on, and failures from now on, follow it."""
        for delivery in self.of_group(group.id):
            config = share_config(group, self._broker.cut_ms, delivery.partition.topic_name)
            delivery.state.reconfigure(config)
            delivery.read_committed = read_committed(group)
            delivery.watch = self._watch_of(group)
            delivery.decided()
        self._broker.dead_letters.try_again()

    def _watch_of(self, group: Group) -> Callable[[Sequence[Event]], None] | None:
        """What pauses the group when too much of it dies."""
        threshold = pause_threshold(group)
        if threshold is None:
            self._watches.pop(group.id, None)
            return None
        watch = self._watches.get(group.id)
        if watch is None or watch.threshold != threshold:
            watch = self._watches[group.id] = Watch(threshold)

        def see(events: Sequence[Event]) -> None:
            reason = watch.see(events)
            if reason is not None and self._broker.pauses.of(group) is None:
                self._broker.pauses.pause_now(group, reason)

        return see

    def wake_member(self, group: str, member: str) -> None:
        """Answer the member's long polls now: it leaves."""
        for waiter in self.waiting.get((group, member), ()):
            waiter.end()

    def end_waits(self) -> None:
        """Answer all long polls now: the node stops."""
        for waiters in self.waiting.values():
            for waiter in waiters:
                waiter.end()

    # -- the journal ---------------------------------------------------------------------------------------------------

    def _snapshot(self, key: ShareKey) -> Iterable[Event] | None:
        delivery = self._all.get(key)
        if delivery is None or delivery.fenced:
            return None
        delivery.decided()  # a call that was refused may have found something due: not in the snapshot and behind it
        return delivery.state.snapshot()

    def _lost(self, keys: Collection[ShareKey]) -> None:
        for key in keys:
            if (delivery := self._all.get(key)) is not None:
                delivery.fenced = True
                delivery.waiters.wake_all()
                self._refolds.add(delivery)

    async def recover(self) -> int:
        """Fold the journal; the newest time in it (ms) comes back. Comes before anything else is done here.

        A share partition whose topic or group is gone has ended; offsets beyond the log's end leave the state (the
        log may have lost more than the journal by a power loss); locks go on for at least the session timeout (rule
        7).
        """
        broker = self._broker
        replay, cut = await Replay(self._empty).run(self.journal.log), False
        self.journal.bases, self.journal.sizes = replay.bases, replay.sizes
        self._highest_lock = replay.highest_lock
        for key, state in replay.states.items():
            group, partition = broker.group_by_id(key.group), broker.partition(key.topic, key.partition)
            if group is None or partition is None:
                self.journal.end(key)
                continue
            delivery = self._add(key, group, partition, state)
            state.config = share_config(group, broker.cut_ms, partition.topic_name)
            if state.end > partition.log.end:
                state.cut(partition.log.end)
                cut = True
            state.log_starts_at(partition.log.start)
            state.restarted(max(broker.clock(), replay.latest), group.integer('share.session.timeout.ms'))
            delivery.decided()  # dead letters that may have been written before are owed: at least once
        await self.journal.written()
        if cut:  # on disk before other records get those offsets, and are
            await self.journal.log.flush()
        return replay.latest

    # -- the clock -----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Do what is due everywhere."""
        for delivery in list(self._all.values()):
            delivery.advance()

    def clock_stepped(self, now: int, by: int) -> None:
        """See `Broker.clock_stepped`."""
        self.journal.clock_stepped(ClockStepped(now, by))
        for delivery in self._all.values():
            delivery.clock_stepped(now, by)
        self._refolds.clock_stepped(by)

    def _empty(self, key: ShareKey) -> SharePartition:
        group = self._broker.group_by_id(key.group)
        return SharePartition(ShareConfig() if group is None else share_config(group, self._broker.cut_ms))
