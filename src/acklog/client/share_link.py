"""One share session with its connection: fetches, acknowledges and renews, one request at a time.

A fetch runs as a task of its own, since it may wait long and there may be several nodes; it is never cancelled while
the subscription lives, because what it brings is held by this member from then on.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from acklog.client.calls import SHARE_ACKNOWLEDGE, SHARE_FETCH, Call, Hot
from acklog.client.cluster import Cluster
from acklog.client.connection import Connection
from acklog.client.errors import Disconnected, TimedOut, Unreachable, Unsupported, error_code, refusal
from acklog.client.received import Received, sort_out
from acklog.client.share_session import OPEN, Key, Limits, ShareSession
from acklog.wire import share_acknowledge, share_fetch
from acklog.wire.acknowledgements import RENEW
from acklog.wire.error_code import ErrorCode

PASSING = (Disconnected, TimedOut, Unreachable)

T = TypeVar('T')

ACKLOG_FEATURE = 'acklog.release.at'  # a server that has it in its ApiVersions answer understands times of release

_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class Fetched(NamedTuple):
    """What a fetch brought. `moved`: some partitions are elsewhere, or were for a moment."""

    records: list[Received]
    moved: bool


class ShareLink:
    """The share session of a member with one node."""

    def __init__(self, cluster: Cluster, node: int, group: str, member: str, names: Mapping[uuid.UUID, str]) -> None:
        self.node = node
        self.session = ShareSession(group, member, names)
        self.fetching: asyncio.Task[Fetched] | None = None
        self.lock_ms = 0  # how long locks last, as far as the server has said
        self._cluster, self._names = cluster, names
        self._purpose = f'share {member}'
        self._turn = asyncio.Lock()

    async def connection(self) -> Connection:
        """Its connection, opened when there is none."""
        return await self._cluster.connection(self.node, self._purpose)

    def start(self, wanted: Collection[Key], limits: Limits) -> asyncio.Task[Fetched]:
        """The fetch that is on its way, or another one."""
        if self.fetching is None:
            self.fetching = asyncio.create_task(self._fetch(wanted, limits))
        return self.fetching

    async def acknowledge(self) -> None:
        """Tell the server all that was decided. Raises the connection's errors; then it is told again next time."""
        async with self._turn:
            await self._tell_all()

    async def close(self) -> None:
        """Tell what was decided and end the session: the server takes back at once what is still held."""
        async with self._turn:
            if self.session.epoch == OPEN:
                return
            try:
                await self._tell_all()
                await self._send_acks(self.session.acknowledge(close=True))
            except PASSING:
                self.session.lost(ErrorCode.NETWORK_EXCEPTION)

    async def renew(self, key: Key, offsets: Sequence[int]) -> None:
        """Begin the locks of these records anew. Raises Unsupported, Refused, and the connection's errors."""
        async with self._turn:
            connection = await self.connection()
            if not connection.offers(SHARE_ACKNOWLEDGE, 2):
                raise Unsupported(f'the server at {connection.address} does not renew locks (ShareAcknowledge v2)')
            ranges = [(offset, offset, bytes([RENEW]), None) for offset in sorted(offsets)]
            call = _acknowledge(self.session.renew({key: ranges}))
            answer = await self._ask(connection, call)
            self.session.advanced(answer.error_code, answer.error_message)
            subject = f'{self._names.get(key[0], key[0])}[{key[1]}]'
            _check(answer.error_code, answer.error_message, subject)
            for topic in answer.topics:
                for partition in topic.partitions:
                    _check(partition.error_code, partition.error_message, subject)

    async def check_release_at(self) -> None:
        """Raises Unsupported where the server does not know of times of release."""
        connection = await self.connection()
        if ACKLOG_FEATURE not in connection.features:
            raise Unsupported(
                f'the server at {connection.address} is not acklog: it cannot release a record until a time named'
            )

    # --- requests

    async def _fetch(self, wanted: Collection[Key], limits: Limits) -> Fetched:
        async with self._turn:
            connection = await self.connection()
            call = _fetch(self.session.fetch(wanted, limits))
            answer = await self._ask(connection, call, limits.max_wait_ms / 1000)
            if not self.session.advanced(answer.error_code, answer.error_message):
                return Fetched([], False)
            if answer.error_code:
                _check(answer.error_code, answer.error_message, f'group {self.session.group!r}')
            self.lock_ms = answer.lock_timeout_ms or self.lock_ms
            records: list[Received] = []
            moved = False
            for topic in answer.topics:
                for partition in topic.partitions:
                    key = uuid.UUID(bytes=topic.topic_id), partition.index
                    self.session.settled(key, partition.ack_error_code, partition.ack_error_message)
                    records += self._taken(key, partition)
                    moved |= self._elsewhere(key, partition)
            return Fetched(records, moved)

    def _taken(self, key: Key, partition: share_fetch.PartitionResponse) -> list[Received]:
        if not partition.acquired:
            return []
        assert not isinstance(partition.records, list | tuple)  # only what is to be encoded comes in pieces
        name = self._names.get(key[0], '')
        found = sort_out(name, key[1], partition.records or b'', partition.acquired)  # type: ignore[arg-type]
        self.session.taken(key, [r.offset for r in found.records], found.gaps, found.unreadable)
        return found.records

    def _elsewhere(self, key: Key, partition: share_fetch.PartitionResponse) -> bool:
        if not partition.error_code:
            return False
        code = error_code(partition.error_code)
        if code in _MOVED:
            return True
        raise refusal(code, f'{self._names.get(key[0], key[0])}[{key[1]}]', partition.error_message)

    async def _tell_all(self) -> None:
        while self.session.has_decisions and self.session.epoch != OPEN:
            await self._send_acks(self.session.acknowledge())

    async def _send_acks(self, request: share_acknowledge.Request) -> None:
        connection = await self.connection()
        answer = await self._ask(connection, _acknowledge(request))
        if not self.session.advanced(answer.error_code, answer.error_message):
            return
        for topic in answer.topics:
            for partition in topic.partitions:
                key = uuid.UUID(bytes=topic.topic_id), partition.index
                self.session.settled(key, partition.error_code, partition.error_message)

    async def _ask(self, connection: Connection, call: Call[T], wait: float = 0.0) -> T:
        try:
            return await connection.call(call, self._cluster.timeout + wait)
        except PASSING:
            self.session.unanswered()
            raise


def _fetch(request: share_fetch.Request) -> Hot[share_fetch.Request, share_fetch.Response]:
    return Hot(SHARE_FETCH, share_fetch.encode_request, share_fetch.decode_response, request)


def _acknowledge(request: share_acknowledge.Request) -> Hot[share_acknowledge.Request, share_acknowledge.Response]:
    return Hot(SHARE_ACKNOWLEDGE, share_acknowledge.encode_request, share_acknowledge.decode_response, request)


def _check(code: int, message: str | None, subject: str) -> None:
    if code:
        raise refusal(code, subject, message)
