"""The producer: records in, batches out, each record's offset back.

Strategy: `send` puts a record into the outbox of its partition and gives a future; one task, the pump, sends what is
due: a batch is full, its first record has waited for `linger`, or somebody flushes. All partitions with the same
leader go out in one request. A batch that fails for a passing reason is sent again until `patience` is over.

With acks='all' and a server that gives producer ids the producer is idempotent: a repeated batch is stored once. When a
batch that may have been stored is given up, its partition goes on with a new producer id.

Bounded: `send` waits while `buffer_bytes` of records are held.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType

from acklog.client.calls import INIT_PRODUCER_ID, PRODUCE, Cold, Hot
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.errors import (
    RETRIABLE,
    ClientClosed,
    ClientError,
    Disconnected,
    NotFound,
    TimedOut,
    Unreachable,
    check,
    error_code,
    refusal,
)
from acklog.client.options import Acks
from acklog.client.outbox import RECORD_OVERHEAD, Identity, Outbox, Published, Waiting
from acklog.client.partitioner import Sticky, partition_of
from acklog.client.retry import Backoff
from acklog.errors import AcklogError, ConfigError
from acklog.wire import compression as compressions
from acklog.wire import produce
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import NewRecord

PURPOSE = 'produce'
REQUEST_BYTES = 8 << 20  # of batches in one request, roughly

_ACKS = {'all': -1, '1': 1, '0': 0}
_PASSING = (Disconnected, TimedOut, Unreachable)


class Producer:
    """Publishes records; made by `Client.producer`, closed by `async with` or `close`.

    `acks`: 'all' (answered when on disk), '1' (when the operating system has it) or '0' (not answered); `linger`:
    seconds that a record may wait for others, 0 or more; `batch_bytes`: size at which a batch is sent at once, keep
    it below the server's max.message.bytes; `compression`: 'none', 'gzip', and with the package cramjam 'snappy',
    'lz4', 'zstd'; `buffer_bytes`: what is held at most; `patience`: seconds during which a batch is tried again;
    `idempotent`: None: where acks='all' and the server offers it; True: raise Unsupported where it does not;
    `create_topics`: let the server create topics that do not exist, if it does.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: Acks = 'all',
        linger: float = 0.005,
        batch_bytes: int = 256 << 10,
        compression: str = 'none',
        buffer_bytes: int = 32 << 20,
        patience: float = 120.0,
        idempotent: bool | None = None,
        create_topics: bool = True,
    ) -> None:
        if acks not in _ACKS:
            raise ConfigError('acks', acks, 'all, 1 or 0')
        if compression not in compressions.NAMES:
            raise ConfigError('compression', compression, ', '.join(compressions.NAMES))
        if idempotent and acks != 'all':
            raise ConfigError('acks', acks, 'all, for an idempotent producer')
        self._cluster = cluster
        self._acks, self._linger, self._patience = _ACKS[acks], linger, patience
        self._batch_bytes, self._buffer_bytes = batch_bytes, buffer_bytes
        self._compression, self._create_topics = compression, create_topics
        self._idempotent = idempotent if acks == 'all' else False
        self._fresh: Identity | None = None  # what a partition without identity starts with
        self._outboxes: dict[tuple[str, int], Outbox] = {}
        self._active: set[Outbox] = set()
        self._sticky = Sticky()
        self._held = 0
        self._room = asyncio.Event()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._flushing = 0
        self._failure: AcklogError | None = None
        self._closed = False
        self._errands: dict[str, asyncio.Task[None]] = {}
        self._requests: set[asyncio.Task[None]] = set()
        self._pump_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(flush=kind is None)

    async def publish(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Published:
        """Publish one record and wait until the server has confirmed it. Parameters and errors as `send`."""
        future = await self.send(topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition)
        return await future

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> asyncio.Future[Published]:
        """Take a record to be published and return at once, or when there is room in the buffer.

        `timestamp`: ms since 1970, None for now; `partition`: None for the key's, or any without a key. The future
        gives where the record went, or raises Refused, TimedOut, Disconnected or Unreachable. Records of one
        partition are stored in the order of the calls. Raises NotFound when there is no such topic or partition,
        ClientClosed.
        """
        self._check_open()
        place = self._cluster.topics.get(topic) or await self._cluster.topic(topic, create=self._create_topics)
        index = self._choose(topic, key, partition, place.leaders)
        size = RECORD_OVERHEAD + len(key or b'') + len(value or b'')
        for name, content in headers:
            size += len(name) + len(content or b'') + 10
        while self._held and self._held + size > self._buffer_bytes:
            self._room.clear()
            self._wake.set()
            await self._room.wait()
            self._check_open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Published] = loop.create_future()
        when = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        self._put(topic, index, Waiting(NewRecord(key, value, headers, when), size, future), loop.time())
        return future

    async def flush(self) -> None:
        """Send what waits, and return when all that was sent before is settled. Raises the first failure since the last
        flush; the futures tell which records it was."""
        self._flushing += 1
        self._wake.set()
        try:
            while self._held:
                self._settled.clear()
                await self._settled.wait()
        finally:
            self._flushing -= 1
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def close(self, *, flush: bool = True) -> None:
        """Flush (unless told not to; then what waits fails with ClientClosed) and end. Raises as `flush`."""
        try:
            if flush and not self._closed:
                await self.flush()
        finally:
            self._closed = True
            await self._end()

    # --- taking records

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed('the producer was closed')

    def _choose(self, topic: str, key: bytes | None, partition: int | None, leaders: object) -> int:
        indexes = list(leaders) if isinstance(leaders, dict) else []
        if partition is not None:
            if partition not in indexes:
                raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'{topic}[{partition}]')
            return partition
        if key is not None:
            return partition_of(key, len(indexes))
        return self._sticky.partition(topic, indexes)

    def _put(self, topic: str, index: int, waiting: Waiting, now: float) -> None:
        outbox = self._outboxes.get((topic, index))
        if outbox is None:
            outbox = self._outboxes[topic, index] = Outbox(topic, index)
        wakes = outbox.empty
        outbox.add(waiting, now)
        self._held += waiting.size
        self._active.add(outbox)
        if wakes or outbox.due(self._linger, self._batch_bytes) == 0.0:
            self._wake.set()
        if self._pump_task is None:
            self._pump_task = asyncio.create_task(self._pump())

    # --- the pump

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            wait = self._send_due(loop.time())
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _send_due(self, now: float) -> float | None:
        """Send all that is due; returns the seconds until more is, None when nothing waits."""
        next_at = math.inf
        ready: dict[int, list[Outbox]] = defaultdict(list)
        for outbox in list(self._active):
            if outbox.on_its_way:
                continue
            if outbox.empty:
                self._active.discard(outbox)
                continue
            at = outbox.due(0.0 if self._flushing else self._linger, self._batch_bytes)
            if at > now:
                next_at = min(next_at, at)
            elif (node := self._leader(outbox.topic, outbox.index)) is not None and self._identified(outbox):
                ready[node].append(outbox)
        for node, outboxes in ready.items():
            self._send_to(node, outboxes, now)
        return None if next_at is math.inf else next_at - now

    def _leader(self, topic: str, index: int) -> int | None:
        """The partition's leader; None while it is being looked for."""
        place = self._cluster.topics.get(topic)
        node = -1 if place is None else place.leaders.get(index, -1)
        if node >= 0:
            return node
        self._run_errand(f'where {topic}', self._look_for(topic))
        return None

    def _identified(self, outbox: Outbox) -> bool:
        """Whether the outbox has its identity; else it is being fetched."""
        if self._idempotent is False or outbox.identity is not None:
            return True
        if self._fresh is not None:
            outbox.identity = Identity(self._fresh.producer_id, self._fresh.epoch)
            return True
        self._run_errand('identity', self._fetch_identity())
        return False

    def _send_to(self, node: int, outboxes: Sequence[Outbox], now: float) -> None:
        timestamp = time.time_ns() // 1_000_000
        together: list[Outbox] = []
        size = 0
        for outbox in outboxes:
            batch = outbox.fill(
                batch_bytes=self._batch_bytes,
                compression=self._compression,
                timestamp=timestamp,
                now=now,
                patience=self._patience,
            )
            self._sticky.move(outbox.topic, outbox.index)
            outbox.on_its_way = True
            if together and size + len(batch.data) > REQUEST_BYTES:
                self._start(node, together)
                together, size = [], 0
            together.append(outbox)
            size += len(batch.data)
        self._start(node, together)

    def _start(self, node: int, outboxes: Sequence[Outbox]) -> None:
        task = asyncio.create_task(self._deliver(node, list(outboxes)))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    # --- one request

    async def _deliver(self, node: int, outboxes: list[Outbox]) -> None:
        try:
            response = await self._request(node, outboxes)
        except _PASSING as error:
            for outbox in outboxes:
                self._again(outbox, error)
        except AcklogError as error:
            for outbox in outboxes:
                self._give_up(outbox, error)
        else:
            by_place = {(o.topic, o.index): o for o in outboxes}
            for (topic, index), partition in response.items():
                asked = by_place.pop((topic, index), None)
                if asked is not None:
                    self._answered(asked, partition)
            for outbox in by_place.values():
                self._again(outbox, Disconnected('the server did not answer for this partition'))
        finally:
            for outbox in outboxes:
                outbox.on_its_way = False
            self._wake.set()

    async def _request(self, node: int, outboxes: Sequence[Outbox]) -> dict[tuple[str, int], produce.PartitionResponse]:
        by_topic: dict[str, list[produce.Partition]] = defaultdict(list)
        for outbox in outboxes:
            assert outbox.batch is not None
            by_topic[outbox.topic].append(produce.Partition(outbox.index, outbox.batch.data))
        connection = await self._cluster.connection(node, PURPOSE)
        ids = {name: self._cluster.topics[name].id.bytes for name in by_topic if name in self._cluster.topics}
        topics = [produce.Topic(name, ids.get(name), partitions) for name, partitions in by_topic.items()]
        timeout = int(self._cluster.timeout * 1000)
        call = Hot(
            PRODUCE,
            produce.encode_request,
            produce.decode_response,
            produce.Request(self._acks, timeout, None, topics),
        )
        if self._acks == 0:
            await connection.tell(call)
            return {(o.topic, o.index): produce.PartitionResponse(o.index, 0) for o in outboxes}
        answer = await connection.call(call, self._cluster.timeout)
        names = {id_: name for name, id_ in ids.items()}
        return {
            (topic.name or names.get(topic.topic_id or b'', ''), partition.index): partition
            for topic in answer.topics
            for partition in topic.partitions
        }

    def _answered(self, outbox: Outbox, answer: produce.PartitionResponse) -> None:
        code = error_code(answer.error_code)
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            answer = answer._replace(base_offset=-1)
        elif code in RETRIABLE:
            self._cluster.forget_topic(outbox.topic)
            self._again(outbox, refusal(code, f'{outbox.topic}[{outbox.index}]', answer.error_message))
            return
        elif code is not ErrorCode.NONE:
            self._give_up(outbox, refusal(code, f'{outbox.topic}[{outbox.index}]', answer.error_message))
            return
        for position, waiting in enumerate(outbox.settle()):
            offset = -1 if answer.base_offset < 0 else answer.base_offset + position
            stored = waiting.record.timestamp if answer.append_time < 0 else answer.append_time
            self._release(waiting)
            if not waiting.future.done():
                waiting.future.set_result(Published(outbox.topic, outbox.index, offset, stored or 0))

    def _again(self, outbox: Outbox, error: AcklogError) -> None:
        batch = outbox.batch
        if batch is None:  # given up by close meanwhile
            return
        batch.retry_at = asyncio.get_running_loop().time() + batch.backoff.next()
        if batch.retry_at > batch.deadline or self._closed:
            self._give_up(outbox, error)

    def _give_up(self, outbox: Outbox, error: AcklogError) -> None:
        if outbox.identity is not None:  # it may have been stored: its sequence numbers cannot be used again
            if self._fresh is not None and self._fresh.producer_id == outbox.identity.producer_id:
                self._fresh = None
            outbox.identity = None
        if outbox.batch is not None:
            self._fail(outbox.settle(), error)

    def _fail(self, records: Sequence[Waiting], error: AcklogError) -> None:
        self._failure = self._failure or error
        for waiting in records:
            self._release(waiting)
            if not waiting.future.done():
                waiting.future.set_exception(error)
                waiting.future.exception()  # flush raises it, for those who do not look at each future

    def _release(self, waiting: Waiting) -> None:
        self._held -= waiting.size
        self._room.set()
        if not self._held:
            self._settled.set()

    # --- errands: what has to be asked before something can be sent

    def _run_errand(self, name: str, errand: object) -> None:
        assert asyncio.iscoroutine(errand)
        if name in self._errands:
            errand.close()
            return
        task = asyncio.create_task(errand)
        self._errands[name] = task

        def done(_: object) -> None:
            del self._errands[name]
            self._wake.set()

        task.add_done_callback(done)

    async def _look_for(self, topic: str) -> None:
        backoff = Backoff()
        affected = [outbox for outbox in self._active if outbox.topic == topic]
        while True:
            try:
                place = (await self._cluster.refresh([topic])).get(topic)
                if place is None:
                    raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic {topic!r}')
                if all(place.leaders.get(outbox.index, -1) >= 0 for outbox in affected):
                    return
                error: ClientError = Unreachable(f'topic {topic!r} has a partition without a leader')
            except NotFound as missing:
                self._abandon(affected, missing)
                return
            except ClientError as passing:
                error = passing
            if self._too_late(affected, error):
                return
            await backoff.wait()

    async def _fetch_identity(self) -> None:
        backoff = Backoff()
        while True:
            try:
                connection = await self._cluster.connection(ANY_NODE)
                if not connection.offers(INIT_PRODUCER_ID) and self._idempotent is None:
                    self._idempotent = False
                    return
                fields = {'transactional_id': None, 'transaction_timeout': 60_000}
                answer = await self._cluster.call(Cold(INIT_PRODUCER_ID, fields))
                check(answer.error_code, 'a producer id')
                self._fresh = Identity(answer.producer_id, answer.producer_epoch)
                return
            except ClientError as error:
                if self._too_late(list(self._active), error):
                    return
            await backoff.wait()

    def _too_late(self, outboxes: Sequence[Outbox], error: ClientError) -> bool:
        """Give up what has waited for too long; whether that was all."""
        if not isinstance(error, _PASSING) and getattr(error, 'code', None) not in RETRIABLE:
            self._abandon(outboxes, error)
            return True
        oldest = asyncio.get_running_loop().time() - self._patience
        late = [outbox for outbox in outboxes if not outbox.empty and outbox.since < oldest]
        self._abandon(late, error)
        return all(outbox.empty for outbox in outboxes)

    def _abandon(self, outboxes: Sequence[Outbox], error: ClientError) -> None:
        for outbox in outboxes:
            if not outbox.on_its_way:
                self._give_up(outbox, error)
                self._fail(outbox.drain(), error)

    async def _end(self) -> None:
        tasks = [*self._requests, *self._errands.values(), *([self._pump_task] if self._pump_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for outbox in self._outboxes.values():
            self._fail(outbox.drain(), ClientClosed('the producer was closed before the record was sent'))
        self._room.set()
