"""Fetch (1), v4-v18: read batches from given offsets, for consumers that keep their own.

- Waits until `min_bytes` are there, at most `max_wait_ms`; answers at once when a partition has an error.
- At least one batch is returned even if it is larger than the limits (KIP-74).
- Read-committed readers stop at the stable end and are told the aborted transactions.
- Sessions as in KIP-227: see `fetch_session`. Requests of replicas (up to v14) are refused: there are none.
- A client that knows an older leader epoch gets FENCED_LEADER_EPOCH, one that knows a newer one UNKNOWN_LEADER_EPOCH
  (KIP-320); both ask for metadata and go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.deliveries.waiting import Waiter
from acklog.broker.eager import turn
from acklog.broker.fetch_session import FetchSession, Key, outside
from acklog.broker.partition import Partition
from acklog.broker.refusals import check_leader_epoch, no_partition, no_topic, no_topic_id
from acklog.errors import AcklogError, OutOfRange
from acklog.wire import fetch
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

LONGEST_WAIT_MS = 300_000
AT_A_TIME = 100  # partitions that are looked at before others have their turn


async def handle(broker: Broker, caller: Caller, version: int, request: fetch.Request) -> fetch.Response:
    try:
        session = broker.fetch_sessions.begin(request)
    except Refused as refused:
        return fetch.Response((), refused.code)
    wanted = dict(outside(request)) if session is None else dict(session.partitions)
    wait_ms = min(max(request.max_wait_ms, 0), LONGEST_WAIT_MS)
    until = broker.clock() - broker.clock_set_by + wait_ms  # by a clock that nobody sets
    while True:
        reading = _Reading(broker, caller, request)
        for number, (key, partition) in enumerate(wanted.items(), 1):
            await reading.read(key, partition)
            if number % AT_A_TIME == 0:
                await turn()
        if reading.enough or caller.closed or broker.stopping or until + broker.clock_set_by <= broker.clock():
            break
        if not reading.outdated:
            partitions = [partition for partition, _ in reading.partitions]
            await _wait(broker, caller, partitions, until + broker.clock_set_by)
    return _response(session, reading.answers)


async def _wait(broker: Broker, caller: Caller, partitions: Sequence[Partition], until: int) -> None:
    waiter = Waiter()
    for partition in partitions:
        partition.waiters[waiter] = None
    caller.on_close[waiter.end] = None
    try:
        await waiter.wait(broker.timer, until)
    finally:  # also when whoever fetches is cancelled
        for partition in partitions:
            partition.waiters.pop(waiter, None)
        caller.on_close.pop(waiter.end, None)


class _Reading:
    """One round over what a request asks for."""

    def __init__(self, broker: Broker, caller: Caller, request: fetch.Request) -> None:
        self._broker = broker
        self._caller = caller
        self._replica = request.replica_id >= 0
        self._committed = request.isolation_level == fetch.READ_COMMITTED
        self._room = caller.room()
        self._left = min(max(request.max_bytes, 0), broker.fetch_max_bytes, self._room)
        self._min_bytes = min(request.min_bytes, self._left)
        self._bytes = 0
        self._failed = False
        self.answers: dict[Key, fetch.PartitionResponse] = {}
        self.partitions: list[tuple[Partition, int]] = []  # and where they ended when they were read

    @property
    def enough(self) -> bool:
        return self._failed or self._bytes >= self._min_bytes or not self.answers or not self._room

    @property
    def outdated(self) -> bool:
        """Something has come to a partition while others were read."""
        return any(partition.log.visible_end != end for partition, end in self.partitions)

    async def read(self, key: Key, wanted: fetch.Partition) -> None:
        try:
            self.answers[key] = await self._read(key, wanted)
        except AcklogError as error:
            self._failed = True
            code, _ = answer_to(error)
            start = error.start if isinstance(error, OutOfRange) else -1
            self.answers[key] = fetch.PartitionResponse(wanted.index, code, log_start=start)

    async def _read(self, key: Key, wanted: fetch.Partition) -> fetch.PartitionResponse:
        partition = self._partition(key)
        check_leader_epoch(partition, wanted.leader_epoch)
        log = partition.log
        visible_end = log.visible_end
        end = log.stable_end if self._committed else visible_end
        if not log.start <= wanted.offset <= log.visible_end:
            raise OutOfRange(wanted.offset, log.start, log.visible_end)
        data: bytes | memoryview = b''
        aborted: Sequence[tuple[int, int]] = ()
        limit = min(wanted.max_bytes, self._left)
        if wanted.offset < end and self._room and (limit > 0 or self._bytes == 0):
            data, aborted = await log.read(wanted.offset, max(limit, 1), up_to=end)
            if self._bytes and len(data) > self._left:
                data = b''  # one batch more than fits: it comes first another time
        self._bytes += len(data)
        self._left -= len(data)
        self.partitions.append((partition, visible_end))
        return fetch.PartitionResponse(
            wanted.index,
            ErrorCode.NONE,
            log.visible_end,
            log.stable_end,
            log.start,
            list(aborted) if self._committed else None,
            data,
        )

    def _partition(self, key: Key) -> Partition:
        name, topic_id, index = key
        catalog = self._broker.catalog
        if topic_id is not None:
            topic = catalog.topics_by_id.get(topic_id)
            if topic is None:
                raise no_topic_id()
        else:
            topic = catalog.topics.get(name)
            if topic is None:
                raise no_topic(name)
        self._broker.authorize(self._caller, 'READ', 'TOPIC', topic.name)
        partition = self._broker.partition(topic.id_bytes, index)
        if partition is None:
            raise no_partition(topic, index)
        if self._replica:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, 'there are no replicas')
        return partition


def _response(session: FetchSession | None, answers: dict[Key, fetch.PartitionResponse]) -> fetch.Response:
    if session is not None:
        first = session.epoch == 1 and not session.shown  # the answer that opens a session tells everything
        answers = {key: answer for key, answer in answers.items() if session.changed(key, answer) or first}
        session.turn([key for key, answer in answers.items() if answer.records])
    topics: dict[tuple[str, bytes | None], list[fetch.PartitionResponse]] = {}
    for (name, topic_id, _), answer in answers.items():
        topics.setdefault((name, topic_id), []).append(answer)
    return fetch.Response(
        [fetch.TopicResponse(name, topic_id, partitions) for (name, topic_id), partitions in topics.items()],
        session_id=0 if session is None else session.id,
    )


API = Api(1, 'Fetch', (4, 18), handle, fetch.CODEC)
