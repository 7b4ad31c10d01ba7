"""What the catalog knows, and the one function that changes it.

Strategy: the state is the fold of events; live changes and recovery go through the same `fold`, and `events` gives a
list that folds to the same state (the snapshot). No I/O.

An event is a JSON object with a `kind`:

    cluster          id                               the cluster's id, once
    topic            name, id, partitions, configs    a topic exists
    topic-deleted    id
    partitions       id, count                        a topic has so many partitions now
    topic-configs    id, configs                      a topic's own configs, all of them
    group            name, id                         a group exists; its id is never used again
    group-deleted    id
    group-ids        next                             ids below are used up (snapshots only)
    group-configs    name, configs                    a group's own configs, all of them; they outlive the group
    broker-configs   node, configs                    dynamic broker configs of a node, or of all ('')
    producer-ids     next                             ids below may have been given out
    note             of, key, value                   kept for others under (of, key); null forgets it

Topic ids are written as Kafka's tools show them (base64, 22 characters).
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from acklog.broker.configs import GROUP, TOPIC, Configured, Settings, Source
from acklog.errors import Damaged

Event = dict[str, Any]


def id_text(topic_id: uuid.UUID) -> str:
    """A topic id as Kafka's tools show it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')


def id_of(text: str) -> uuid.UUID:
    """The topic id that `id_text` wrote. Raises ValueError."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + '=='))


class Topic(Configured):
    """A topic. Its id is never used again, its name may be."""

    def __init__(
        self, name: str, topic_id: uuid.UUID, partitions: int, configs: Mapping[str, str], settings: Settings
    ) -> None:
        super().__init__(TOPIC, configs, settings, Source.TOPIC)
        self.name, self.id, self.partitions = name, topic_id, partitions
        self.id_bytes = topic_id.bytes
        self.id_text = id_text(topic_id)
        self.opening = asyncio.Lock()  # who opens logs of its partitions holds it

    def log_name(self, index: int) -> str:
        """Name of the log of partition `index`."""
        return f'{self.id_text}-{index}'


class Group(Configured):
    """A share group. `id` is that of this incarnation: a group deleted and made again has another."""

    def __init__(self, name: str, group_id: int, configs: Mapping[str, str], settings: Settings) -> None:
        super().__init__(GROUP, configs, settings, Source.GROUP)
        self.name, self.id = name, group_id


class CatalogState:
    """Everything in the catalog. Read its attributes; change them through `fold` only."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._folds: dict[str, Callable[[Event], None]] = {
            'cluster': self._cluster,
            'topic': self._topic,
            'topic-deleted': self._topic_deleted,
            'partitions': self._partitions,
            'topic-configs': self._topic_configs,
            'group': self._group,
            'group-deleted': self._group_deleted,
            'group-ids': self._group_ids,
            'group-configs': self._group_configs,
            'broker-configs': self._broker_configs,
            'producer-ids': self._producer_ids,
            'note': self._note,
        }
        self.clear()

    def clear(self) -> None:
        """Know nothing, as at the beginning."""
        self.cluster_id = ''
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.groups_by_id: dict[int, Group] = {}
        self.group_configs: dict[str, dict[str, str]] = {}
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.notes: dict[str, dict[str, Any]] = {}
        self.partitions = 0  # of all topics together
        self.next_group_id = 1
        self.next_producer_id = 0
        self.settings.replace_dynamic({})

    def fold(self, event: Event) -> None:
        """Apply one event."""
        fold = self._folds.get(event['kind'])
        if fold is None:
            raise Damaged(f'the catalog holds an event that this version does not know: {event["kind"]!r}')
        fold(event)

    def events(self) -> Iterator[Event]:
        """Events that fold to this state, from an empty one."""
        yield {'kind': 'cluster', 'id': self.cluster_id}
        yield {'kind': 'group-ids', 'next': self.next_group_id}
        yield {'kind': 'producer-ids', 'next': self.next_producer_id}
        for node, configs in self.broker_configs.items():
            yield {'kind': 'broker-configs', 'node': node, 'configs': configs}
        for name, configs in self.group_configs.items():
            yield {'kind': 'group-configs', 'name': name, 'configs': configs}
        for topic in self.topics.values():
            yield topic_event(topic.name, topic.id, topic.partitions, topic.configs)
        for group in self.groups.values():
            yield {'kind': 'group', 'name': group.name, 'id': group.id}
        for of, notes in self.notes.items():
            for key, value in notes.items():
                yield {'kind': 'note', 'of': of, 'key': key, 'value': value}

    def _cluster(self, event: Event) -> None:
        self.cluster_id = event['id']

    def _topic(self, event: Event) -> None:
        replaced = self.topics.get(event['name'])
        if replaced is not None:
            self._drop(replaced)
        topic = Topic(event['name'], id_of(event['id']), event['partitions'], event['configs'], self.settings)
        self.topics[topic.name] = topic
        self.topics_by_id[topic.id_bytes] = topic
        self.partitions += topic.partitions

    def _topic_deleted(self, event: Event) -> None:
        topic = self._by_id(event)
        if topic is not None:
            self._drop(topic)

    def _drop(self, topic: Topic) -> None:
        del self.topics[topic.name]
        del self.topics_by_id[topic.id_bytes]
        self.partitions -= topic.partitions

    def _partitions(self, event: Event) -> None:
        topic = self._by_id(event)
        if topic is not None:
            self.partitions += event['count'] - topic.partitions
            topic.partitions = event['count']

    def _topic_configs(self, event: Event) -> None:
        topic = self._by_id(event)
        if topic is not None:
            topic.replace_configs(event['configs'])

    def _by_id(self, event: Event) -> Topic | None:
        return self.topics_by_id.get(id_of(event['id']).bytes)

    def _group(self, event: Event) -> None:
        replaced = self.groups.pop(event['name'], None)
        if replaced is not None:
            del self.groups_by_id[replaced.id]
        group = Group(event['name'], event['id'], self.group_configs.get(event['name'], {}), self.settings)
        self.groups[group.name] = self.groups_by_id[group.id] = group
        self.next_group_id = max(self.next_group_id, event['id'] + 1)

    def _group_deleted(self, event: Event) -> None:
        group = self.groups_by_id.pop(event['id'], None)
        if group is not None:
            del self.groups[group.name]

    def _group_ids(self, event: Event) -> None:
        self.next_group_id = max(self.next_group_id, event['next'])

    def _group_configs(self, event: Event) -> None:
        name, configs = event['name'], event['configs']
        if configs:
            self.group_configs[name] = dict(configs)
        else:
            self.group_configs.pop(name, None)
        if name in self.groups:
            self.groups[name].replace_configs(configs)

    def _broker_configs(self, event: Event) -> None:
        if event['configs']:
            self.broker_configs[event['node']] = dict(event['configs'])
        else:
            self.broker_configs.pop(event['node'], None)
        self.settings.replace_dynamic(self.broker_configs)

    def _producer_ids(self, event: Event) -> None:
        self.next_producer_id = max(self.next_producer_id, event['next'])

    def _note(self, event: Event) -> None:
        notes = self.notes.setdefault(event['of'], {})
        if event['value'] is None:
            notes.pop(event['key'], None)
        else:
            notes[event['key']] = event['value']


def topic_event(name: str, topic_id: uuid.UUID, partitions: int, configs: Mapping[str, str]) -> Event:
    """The event that makes a topic exist."""
    return {'kind': 'topic', 'name': name, 'id': id_text(topic_id), 'partitions': partitions, 'configs': dict(configs)}
