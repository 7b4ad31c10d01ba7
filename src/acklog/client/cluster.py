"""The servers of a cluster: connections by node and purpose, where partitions and groups are, retries.

Strategy: a server answers the requests of one connection in order, so what may wait long (a share consumer's long poll)
has a connection of its own: connections are kept by (node, purpose). They are opened when needed and opened again after
they broke. Metadata is asked for when a topic is used first and again after an error says that it is out of date; only
topics that were asked for are kept, and they are forgotten when the server no longer has them.

A call is repeated when it was answered with "try again" or could not be sent. When the connection breaks while the
answer is awaited, only a call that is harmless to repeat is; else Disconnected goes to the caller.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from acklog.client.arguments import check_text
from acklog.client.calls import FIND_COORDINATOR, METADATA, Call, Cold
from acklog.client.connection import Connection, open_connection
from acklog.client.errors import (
    RETRIABLE,
    ClientClosed,
    Disconnected,
    NotFound,
    Refused,
    Unreachable,
    check,
    error_code,
    refusal,
)
from acklog.client.retry import Backoff
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import new_topic_fault

T = TypeVar('T')

ANY_NODE = -1
CONTROL = 'control'  # the purpose of connections for short calls


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """Where a topic is: its id, and the leader's node id of each partition (-1: none at the moment)."""

    name: str
    id: uuid.UUID
    leaders: Mapping[int, int]
    internal: bool = False


class Cluster:
    """Connections to the servers behind the bootstrap addresses. `timeout`: seconds for a call with its retries."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]], *, client_id: str, timeout: float) -> None:
        self.bootstrap, self.client_id, self.timeout = list(bootstrap), client_id, timeout
        self.cluster_id: str | None = None
        self.nodes: dict[int, tuple[str, int]] = {}
        self.topics: dict[str, TopicPlace] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._opening: dict[tuple[int, str], asyncio.Lock] = {}
        self._coordinators: dict[str, int] = {}
        self._closed = False

    # --- connections

    async def connection(self, node: int, purpose: str = CONTROL) -> Connection:
        """The connection to this node for this purpose, opened when there is none. Raises Unreachable, ClientClosed."""
        self.check_open()
        key = (node, purpose)
        async with self._opening.setdefault(key, asyncio.Lock()):
            current = self._connections.get(key)
            if current is None or current.closed:
                current = await self._open(node)
                self._connections[key] = current
                self.check_open()
            return current

    async def drop_purpose(self, purpose: str) -> None:
        """Close the connections for this purpose, to whichever node."""
        keys = [key for key in self._connections if key[1] == purpose]
        connections = [self._connections.pop(key) for key in keys]
        for key in [key for key in self._opening if key[1] == purpose]:
            del self._opening[key]
        await asyncio.gather(*(connection.close() for connection in connections))

    def check_open(self) -> None:
        """Raises ClientClosed."""
        if self._closed:
            raise ClientClosed('the client was closed')

    async def _open(self, node: int) -> Connection:
        if node != ANY_NODE:
            if node not in self.nodes:
                await self.refresh([])
            address = self.nodes.get(node)
            if address is None:
                raise Unreachable(f'node {node} is not in the cluster at the moment')
            return await self._open_at(address)
        failures = []
        for address in [*self.bootstrap, *(a for a in self.nodes.values() if a not in self.bootstrap)]:
            try:
                return await self._open_at(address)
            except Unreachable as error:
                failures.append(str(error))
        raise Unreachable('; '.join(failures))

    async def _open_at(self, address: tuple[str, int]) -> Connection:
        try:
            return await open_connection(*address, client_id=self.client_id, within=self.timeout)
        except Unreachable as error:
            if address in self.bootstrap:
                raise
            raise Unreachable(f'{error}; this is the address that the server advertises (--advertise)') from None

    async def close(self) -> None:
        """Close all connections; whoever waits on one gets ClientClosed."""
        self._closed = True
        opening = [lock.acquire() for lock in self._opening.values()]
        await asyncio.gather(*opening)  # whoever is opening one is done then, and finds the client closed
        connections, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))
        for lock in self._opening.values():
            lock.release()

    # --- calls

    async def call(self, call: Call[T], *, node: int = ANY_NODE, repeat: bool = True, within: float | None = None) -> T:
        """Call a node (default: any) and return its answer; errors inside the answer are the caller's.

        `repeat`: whether it does no harm when done twice. `within`: seconds, the retries included (default: the
        cluster's). Raises Unreachable, Disconnected, TimedOut, Unsupported.
        """
        deadline = Deadline(self.timeout if within is None else within)
        backoff = Backoff()
        while True:
            try:
                connection = await self.connection(node)
                return await connection.call(call, deadline.left())
            except Unreachable:
                if node == ANY_NODE or deadline.passed:
                    raise
            except Disconnected:
                if not repeat or deadline.passed:
                    raise
            await backoff.wait()

    async def call_coordinator(self, group: str, call: Call[T]) -> T:
        """Call the coordinator of the group; after "not coordinator" and the like, look for it again and repeat.

        The answer has to be looked at by `call.decode`, which raises Refused for its errors."""
        deadline = Deadline(self.timeout)
        backoff = Backoff()
        while True:
            node = await self.coordinator(group)
            try:
                return await self.call(call, node=node, within=deadline.left())
            except (Refused, Unreachable) as error:
                self.forget_coordinator(group)
                retriable = isinstance(error, Unreachable) or (
                    error.code in RETRIABLE and not isinstance(error, NotFound)
                )
                if not retriable or deadline.passed:
                    raise
            await backoff.wait()

    # --- where things are

    async def refresh(self, names: Iterable[str] | None, *, create: bool = False) -> dict[str, TopicPlace]:
        """Ask where these topics are (None: all of them) and remember it. Topics that do not exist are missing in what
        is returned. `create`: let the server create missing ones, where it does that."""
        wanted = None if names is None else [{'name': name, 'topic_id': None} for name in names]
        for topic in wanted or ():
            check_text('the name of a topic', topic['name'])
        return self._learn(await self._ask_metadata(wanted, create), wanted is not None)

    async def refresh_ids(self, ids: Iterable[uuid.UUID]) -> dict[str, TopicPlace]:
        """Like `refresh`, by topic id (KIP-516: from Metadata v12 on)."""
        return self._learn(await self._ask_metadata([{'name': None, 'topic_id': id_} for id_ in ids], False), True)

    async def _ask_metadata(self, topics: Sequence[Mapping[str, object]] | None, create: bool) -> Any:
        fields = {'topics': topics, 'allow_auto_topic_creation': create}
        return await self.call(Cold(METADATA, fields))

    def _learn(self, answer: Any, keep: bool) -> dict[str, TopicPlace]:
        check(getattr(answer, 'error_code', 0), 'cluster metadata')
        self.cluster_id = answer.cluster_id
        self.nodes = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        found = {}
        for topic in answer.topics:
            code = error_code(topic.error_code)
            if code is ErrorCode.NONE:
                leaders = {p.partition_index: p.leader_id for p in topic.partitions}
                found[topic.name] = TopicPlace(topic.name, topic.topic_id, leaders, topic.is_internal)
            elif topic.name is not None:
                self.topics.pop(topic.name, None)
                if code not in RETRIABLE:
                    fault = new_topic_fault(topic.name) if code is ErrorCode.INVALID_TOPIC_EXCEPTION else None
                    raise refusal(code, f'topic {topic.name!r}', fault)
        if keep:
            self.topics.update(found)
        return found

    async def topic(self, name: str, *, create: bool = False) -> TopicPlace:
        """Where a topic is, as far as known, else as asked. Raises NotFound when it does not exist (with `create`: when
        the server does not create it within the timeout)."""
        known = self.topics.get(name)
        if known is not None:
            return known
        deadline, backoff = Deadline(self.timeout), Backoff()
        while True:
            found = await self.refresh([name], create=create)
            if name in found:
                return found[name]
            if not create or deadline.passed:
                raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic {name!r}')
            await backoff.wait()

    def forget_topic(self, name: str) -> None:
        """What is known about the topic is out of date: ask again when it is used next."""
        self.topics.pop(name, None)

    async def coordinator(self, group: str) -> int:
        """The node that coordinates this group."""
        check_text('the name of a group', group)
        known = self._coordinators.get(group)
        if known is not None:
            return known
        deadline, backoff = Deadline(self.timeout), Backoff()
        while True:
            # key_type 0 is "group", share groups included; v4 and later take several keys
            fields = {'key': group, 'key_type': 0, 'coordinator_keys': [group]}
            answer = await self.call(Cold(FIND_COORDINATOR, fields))
            found = answer.coordinators[0] if hasattr(answer, 'coordinators') else answer
            code = error_code(found.error_code)
            if code is ErrorCode.NONE:
                self.nodes[found.node_id] = (found.host, found.port)
                self._coordinators[group] = found.node_id
                return int(found.node_id)
            if code not in RETRIABLE or deadline.passed:
                raise refusal(code, f'the coordinator of group {group!r}', found.error_message)
            await backoff.wait()

    def forget_coordinator(self, group: str) -> None:
        """The group's coordinator is another one now: ask again when it is needed next."""
        self._coordinators.pop(group, None)


class Deadline:
    """An instant after which nothing is tried again."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, at least a little, so that a last attempt has a chance."""
        return max(0.05, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._at
