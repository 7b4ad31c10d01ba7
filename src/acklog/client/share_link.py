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
from acklog.client.connection import ACKLOG_FEATURE, Connection
from acklog.client.errors import PASSING, Unsupported, error_code, refusal
from acklog.client.received import Holder, Received, sort_out
from acklog.client.share_session import OPEN, Key, Limits, ShareSession
from acklog.wire import share_acknowledge, share_fetch
from acklog.wire.acknowledgements import RENEW, Acknowledgement
from acklog.wire.error_code import ErrorCode
from acklog.wire.primitives import Buffer

_RENEW = bytes([RENEW])

T = TypeVar('T')

GRACE_FEATURE = 'acklog.grace'
LONGEST_GRACE = 86_400.0  # seconds; the server takes less

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

    def __init__(
        self,
        cluster: Cluster,
        node: int,
        group: str,
        member: str,
        names: Mapping[uuid.UUID, str],
        holder: Holder,
        grace: float = 0.0,
    ) -> None:
        self.node, self.grace = node, grace
        self.wanted: Collection[Key] = ()  # the partitions of the last fetch
        self.address = ''  # of the server, as far as it was connected to
        self.knows_times = False  # whether it understands what only acklog does: times of release, words
        self.renews = True  # whether it renews locks, as far as it was not found out that it does not
        self.session = ShareSession(group, member, names)
        self.fetching: asyncio.Task[Fetched] | None = None
        self.lock_ms = 0  # how long locks last, as far as the server has said
        self._cluster, self._names = cluster, names
        self._holder = holder
        self._purpose = f'share {member}'
        self._turn = asyncio.Lock()

    async def connection(self) -> Connection:
        """Its connection, opened when there is none."""
        connection = await self._cluster.connection(self.node, self._purpose)
        self.address, self.knows_times = connection.address, ACKLOG_FEATURE in connection.features
        return connection

    def start(self, wanted: Collection[Key], limits: Limits) -> asyncio.Task[Fetched]:
        """The fetch that is on its way, or another one."""
        if self.fetching is None:
            self.wanted = wanted
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
                await self._send_acks(close=True)
            except PASSING:
                self.session.lost(ErrorCode.NETWORK_EXCEPTION)

    async def renew(self, key: Key, offsets: Sequence[int]) -> None:
        """Begin the locks of these records anew. Raises Unsupported, Refused, and the connection's errors."""
        async with self._turn:
            connection = await self.connection()
            if not connection.offers(SHARE_ACKNOWLEDGE, 2):
                raise Unsupported(f'the server at {connection.address} does not renew locks (ShareAcknowledge v2)')
            ranges: list[Acknowledgement] = [(offset, offset, _RENEW, None) for offset in sorted(offsets)]
            answer = await self._ask(connection, _acknowledge(self.session.renew({key: ranges})))
            if not self.session.advanced(answer.error_code, answer.error_message) and self.session.epoch != OPEN:
                answer = await self._ask(connection, _acknowledge(self.session.renew({key: ranges})))
                self.session.advanced(answer.error_code, answer.error_message)
            subject = f'{self._names.get(key[0], key[0])}/{key[1]}'
            _check(answer.error_code, answer.error_message, subject)
            for topic in answer.topics:
                for partition in topic.partitions:
                    _check(partition.error_code, partition.error_message, subject)

    async def renew_open(self) -> None:
        """Begin the locks of all that is open anew, as far as they have not run out; what has is no longer held.

        Nothing happens where the server cannot renew. Raises the connection's errors."""
        async with self._turn:
            connection = await self.connection()
            self.renews = self.renews and connection.offers(SHARE_ACKNOWLEDGE, 2)
            ranges = self.session.open_ranges()
            if not self.renews or not ranges or self.session.epoch == OPEN:
                return
            for key in await self._refused(connection, ranges):
                by_fetch = self.session.of(key).by_fetch()  # each fetch's lock has run out, or not
                for taken, offsets in by_fetch.items():
                    apart = {key: [(offset, offset, _RENEW, None) for offset in offsets]}
                    if len(by_fetch) == 1 or await self._refused(connection, apart):
                        self.session.ran_out(key, taken)

    async def _refused(self, connection: Connection, ranges: Mapping[Key, Sequence[Acknowledgement]]) -> list[Key]:
        """Renew these; the partitions where the server did not."""
        answer = await self._ask(connection, _acknowledge(self.session.renew(ranges)))
        if not self.session.advanced(answer.error_code, answer.error_message):
            return []
        refused = []
        for topic in answer.topics:
            for partition in topic.partitions:
                if error_code(partition.error_code) is ErrorCode.INVALID_RECORD_STATE:
                    if 'not enabled' in (partition.error_message or ''):  # share.renew.acknowledge.enable
                        self.renews = False
                        return []
                    refused.append((uuid.UUID(bytes=topic.topic_id), partition.index))
        return refused

    # --- requests

    async def _fetch(self, wanted: Collection[Key], limits: Limits) -> Fetched:
        async with self._turn:
            connection = await self.connection()
            self.session.grace_ms = (
                round(min(self.grace, LONGEST_GRACE) * 1000) if GRACE_FEATURE in connection.features else None
            )
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
        data: Buffer = partition.records or b''  # type: ignore[assignment]
        found = sort_out(name, key[1], data, partition.acquired, self._holder)
        self.session.taken(key, [r.offset for r in found.records], found.gaps, found.unreadable)
        return found.records

    def _elsewhere(self, key: Key, partition: share_fetch.PartitionResponse) -> bool:
        if not partition.error_code:
            return False
        code = error_code(partition.error_code)
        if code in _MOVED:
            return True
        raise refusal(code, f'{self._names.get(key[0], key[0])}/{key[1]}', partition.error_message)

    async def _tell_all(self) -> None:
        while self.session.has_decisions and self.session.epoch != OPEN:
            await self._send_acks()

    async def _send_acks(self, *, close: bool = False) -> None:
        connection = await self.connection()  # before the decisions are taken: without one they stay to be told
        answer = await self._ask(connection, _acknowledge(self.session.acknowledge(close=close)))
        if not self.session.advanced(answer.error_code, answer.error_message):
            return
        for topic in answer.topics:
            for partition in topic.partitions:
                key = uuid.UUID(bytes=topic.topic_id), partition.index
                self.session.settled(key, partition.error_code, partition.error_message)

    async def _ask(self, connection: Connection, call: Call[T], wait: float = 0.0) -> T:
        try:
            return await connection.call(call, self._cluster.timeout + wait)
        except (*PASSING, asyncio.CancelledError):
            self.session.unanswered()
            raise


def _fetch(request: share_fetch.Request) -> Hot[share_fetch.Request, share_fetch.Response]:
    return Hot(SHARE_FETCH, share_fetch.encode_request, share_fetch.decode_response, request)


def _acknowledge(request: share_acknowledge.Request) -> Hot[share_acknowledge.Request, share_acknowledge.Response]:
    return Hot(SHARE_ACKNOWLEDGE, share_acknowledge.encode_request, share_acknowledge.decode_response, request)


def _check(code: int, message: str | None, subject: str) -> None:
    if code:
        raise refusal(code, subject, message)
