"""The catalog: topics, groups, their configs, and small durable facts that others ask it to keep.

Strategy: one change at a time. A change first looks whether it may be (Refused), then its events are written, then
folded into what everybody sees; so nothing is visible that is not as durable as asked, and nothing changes between
looking and folding. A change, once begun, is finished even when its caller is cancelled. Notes that wait for their turn
together go out in one write.

Topics, groups and configs are on disk (synced) when a call returns; notes survive kill -9.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from acklog.broker.api import Refused
from acklog.broker.catalog.log import CONFIG, NAME, CatalogLog
from acklog.broker.catalog.state import CatalogState, Event, Group, Topic, id_text, topic_event
from acklog.broker.catalog.view import CatalogView
from acklog.broker.configs import Settings
from acklog.broker.refusals import not_more_partitions, too_many_partitions, topic_exists
from acklog.errors import Damaged, LogError
from acklog.log.seam import Durability, Opener
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import INTERNAL

__all__ = ['Catalog', 'ConfigChange', 'Group', 'NewTopic', 'Topic']

PRODUCER_IDS = 1000  # taken from the log at a time

T = TypeVar('T')

ConfigChange = Callable[[Mapping[str, str]], dict[str, str]]  # own configs as they are -> as they shall be


class NewTopic(NamedTuple):
    """A topic to be created."""

    name: str
    partitions: int
    configs: Mapping[str, str] = {}


class Catalog(CatalogView):
    """Made by `Catalog.open`."""

    def __init__(self, log: CatalogLog) -> None:
        super().__init__(log.state)
        self._log = log
        self._lock = asyncio.Lock()
        self._notes: list[Event] = []  # waiting to be written together
        self._unwritten: tuple[list[Event], LogError] | None = None  # the latest that could not be, and why
        self._producer_id = self._producer_ids_end = 0  # in hand: from, up to
        self._changes: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, opener: Opener, clock: Callable[[], int], settings: Settings | None = None) -> Catalog:
        """Open the log `__catalog` and fold what it holds. Raises LogError."""
        settings = settings if settings is not None else Settings()
        log = await opener.open(NAME, CONFIG, internal=True)
        catalog = cls(CatalogLog(log, CatalogState(settings), clock))
        await catalog._log.recover()
        with contextlib.suppress(LogError):  # a disk that fails: what is there can be read, changes are refused
            await log.flush()  # the last process may have died before: what is built on it must not outlive it
        catalog._producer_id = catalog._producer_ids_end = catalog._state.next_producer_id
        if not catalog.cluster_id:
            _check_new(opener)
            await catalog._log.write([{'kind': 'cluster', 'id': id_text(new_id())}], Durability.SYNCED)
        return catalog

    @property
    def position(self) -> tuple[int, int]:
        """The leader epoch of its log, and how far that is written."""
        return self._log.position

    async def close(self) -> None:
        """Finish the changes under way, then close the log."""
        if self._changes:
            await asyncio.wait(self._changes)
        await self._log.close()

    # -- topics --------------------------------------------------------------------------------------------------------

    async def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> Topic:
        """A new topic. The name, number and configs must be valid. Raises Refused (TOPIC_ALREADY_EXISTS,
        POLICY_VIOLATION), LogError."""
        [created] = await self.create_topics([NewTopic(name, partitions, configs or {})])
        if isinstance(created, Refused):
            raise created
        return created

    async def create_topics(self, topics: Sequence[NewTopic]) -> list[Topic | Refused]:
        """Several at once, with one write; each is a topic or why it was refused."""

        async def create() -> list[Topic | Refused]:
            refused: dict[int, Refused] = {}
            events: list[Event] = []
            names: set[str] = set()
            room = self.settings.integer('acklog.max.partitions') - self.partitions
            for index, topic in enumerate(topics):
                if topic.name in self.topics or topic.name in names:
                    refused[index] = topic_exists(topic.name)
                elif topic.partitions > room:
                    limit = self.settings.integer('acklog.max.partitions')
                    refused[index] = too_many_partitions(limit - room, topic.partitions, limit)
                else:
                    room -= topic.partitions
                    names.add(topic.name)
                    events.append(topic_event(topic.name, new_id(), topic.partitions, topic.configs))
            if events:
                await self._log.write(events, Durability.SYNCED)
            return [refused.get(index) or self.topics[topic.name] for index, topic in enumerate(topics)]

        return await self._change(create())

    async def delete_topic(self, topic: Topic) -> bool:
        """False if it does not exist any more."""

        async def delete() -> bool:
            if self.topics_by_id.get(topic.id_bytes) is not topic:
                return False
            await self._log.write([{'kind': 'topic-deleted', 'id': topic.id_text}], Durability.SYNCED)
            return True

        return await self._change(delete())

    async def add_partitions(self, topic: Topic, count: int) -> bool:
        """Have `count` partitions, more than before. False if the topic does not exist any more. Raises Refused."""

        async def add() -> bool:
            if self.topics_by_id.get(topic.id_bytes) is not topic:
                return False
            if count <= topic.partitions:
                raise not_more_partitions(topic, count)
            self.check_room(count - topic.partitions)
            event = {'kind': 'partitions', 'id': topic.id_text, 'count': count}
            await self._log.write([event], Durability.SYNCED)
            return True

        return await self._change(add())

    async def alter_topic_configs(self, topic: Topic, change: ConfigChange) -> bool:
        """Change its own configs. False if it does not exist any more. Raises what `change` raises, LogError."""

        async def alter() -> bool:
            if self.topics_by_id.get(topic.id_bytes) is not topic:
                return False
            event = {'kind': 'topic-configs', 'id': topic.id_text, 'configs': change(topic.configs)}
            await self._log.write([event], Durability.SYNCED)
            return True

        return await self._change(alter())

    def check_room(self, more: int) -> None:
        """Raises Refused (POLICY_VIOLATION) where there cannot be so many more partitions."""
        limit = self.settings.integer('acklog.max.partitions')
        if self.partitions + more > limit:
            raise too_many_partitions(self.partitions, more, limit)

    # -- groups --------------------------------------------------------------------------------------------------------

    async def create_group(self, name: str) -> Group:
        """The group of that name, made if it does not exist. Raises Refused (POLICY_VIOLATION), LogError."""

        async def create() -> Group:
            if name not in self.groups:
                self._check_groups(self.groups)
                event = {'kind': 'group', 'name': name, 'id': self._state.next_group_id}
                await self._log.write([event], Durability.SYNCED)
            return self.groups[name]

        found = self.groups.get(name)
        return found if found is not None else await self._change(create())

    async def delete_group(self, group: Group) -> bool:
        """False if it does not exist any more. Its configs stay, as in Kafka."""

        async def delete() -> bool:
            if self.groups.get(group.name) is not group:
                return False
            await self._log.write([{'kind': 'group-deleted', 'id': group.id}], Durability.SYNCED)
            return True

        return await self._change(delete())

    async def alter_group_configs(self, name: str, change: ConfigChange) -> None:
        """Change the configs that a group of that name has of its own, now or when there is one. Raises what `change`
        raises, Refused (POLICY_VIOLATION), LogError."""

        async def alter() -> None:
            configs = change(self.group_configs.get(name, {}))
            if configs and name not in self.group_configs:
                self._check_groups(self.group_configs)
            event = {'kind': 'group-configs', 'name': name, 'configs': configs}
            await self._log.write([event], Durability.SYNCED)

        await self._change(alter())

    def _check_groups(self, taken: Mapping[str, object]) -> None:
        limit = self.settings.integer('acklog.max.groups')
        if len(taken) >= limit:
            raise Refused(ErrorCode.POLICY_VIOLATION, f'There are as many groups as acklog.max.groups allows, {limit}.')

    # -- the rest ------------------------------------------------------------------------------------------------------

    async def alter_broker_configs(self, node: str, change: ConfigChange) -> None:
        """Change the dynamic configs of the node ('' for all). Raises what `change` raises, LogError."""

        async def alter() -> None:
            event = {'kind': 'broker-configs', 'node': node, 'configs': change(self.broker_configs.get(node, {}))}
            await self._log.write([event], Durability.SYNCED)

        await self._change(alter())

    async def allocate_producer_ids(self, count: int = 1) -> int:
        """The first of `count` ids that nobody else has or will get."""

        async def allocate() -> int:
            if self._producer_ids_end - self._producer_id < count:
                self._producer_id = self._state.next_producer_id
                end = self._producer_id + max(PRODUCER_IDS, count)
                await self._log.write([{'kind': 'producer-ids', 'next': end}], Durability.SYNCED)
                self._producer_ids_end = end
            first, self._producer_id = self._producer_id, self._producer_id + count
            return first

        return await self._change(allocate())

    async def record(self, of: str, key: str, value: Any) -> None:
        """Keep a JSON value under (of, key), None to forget it; it survives kill -9 when this returns. Notes are
        written in the order of the calls. Raises LogError."""
        note = {'kind': 'note', 'of': of, 'key': key, 'value': value}
        self._notes.append(note)

        async def write() -> None:
            if any(waiting is note for waiting in self._notes):
                notes, self._notes = self._notes, []
                try:
                    await self._log.write(notes, Durability.WRITTEN)
                except LogError as error:
                    self._unwritten = notes, error  # whose callers have their turn before others write
                    raise
            elif self._unwritten is not None and any(lost is note for lost in self._unwritten[0]):
                raise self._unwritten[1]

        await self._change(write())

    async def _change(self, change: Coroutine[Any, Any, T]) -> T:
        """Run one change in its turn, to its end."""

        async def in_turn() -> T:
            async with self._lock:
                return await change

        task = asyncio.ensure_future(in_turn())
        self._changes.add(task)
        task.add_done_callback(self._changed)
        return await asyncio.shield(task)

    def _changed(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that a caller that is gone leaves no warning


def _check_new(opener: Opener) -> None:
    """An empty catalog is a new one, or one that got lost: then the logs of its topics are still there, and must not be
    taken for those of deleted topics. Raises Damaged."""
    logs = [name for name in opener.names() if not name.startswith(INTERNAL)]
    if logs:
        raise Damaged(f'the catalog ({NAME}) is empty, but there are {len(logs)} logs of topics, such as {logs[0]}')


def new_id() -> uuid.UUID:
    """A random topic id whose text begins with a letter or digit: tools take a leading '-' for an option (as Kafka
    avoids), and names with a leading '_' are the broker's own."""
    while True:
        found = uuid.uuid4()
        if id_text(found)[0] not in '-_':
            return found
