"""Gets a producer's records to the server: batches, requests, repeats.

Strategy: a record goes into the outbox of its partition; one task, the pump, sends what is due: a batch is full, its
first record has waited for `linger`, or somebody is in a hurry. All partitions with the same leader go out in one
request. A batch that fails for a passing reason is sent again until `patience` is over. What has to be asked before
something can be sent (where a topic is, a producer id) is asked beside the pump (errands.py).

When a batch that may have been stored is given up, its sequence numbers cannot be used again: its partition goes on
with a new producer id.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from acklog.client.calls import PRODUCE, Hot
from acklog.client.cluster import Cluster
from acklog.client.errands import Errands
from acklog.client.errors import PASSING, RETRIABLE, ClientClosed, error_code, refusal
from acklog.client.outbox import Outbox, Published, Record, Waiting, failed
from acklog.errors import AcklogError
from acklog.wire import produce
from acklog.wire.error_code import ErrorCode

PURPOSE = 'produce'
REQUEST_BYTES = 8 << 20  # of batches in one request, roughly


class Sending(NamedTuple):
    """How to send; see `Producer`. `acks`: as the protocol has it, -1 for all."""

    acks: int
    linger: float
    batch_bytes: int
    compression: str
    patience: float
    idempotent: bool | None


class Sender:
    """Sends the records of one producer.

    `sent(topic, partition)` is called when a batch goes out, `settled(bytes, failure)` when records are done with.
    """

    def __init__(
        self,
        cluster: Cluster,
        how: Sending,
        sent: Callable[[str, int], None],
        settled: Callable[[int, Exception | None], None],
    ) -> None:
        self._cluster, self._how, self._sent, self._settled = cluster, how, sent, settled
        self._batch_bytes = how.batch_bytes
        self._outboxes: dict[tuple[str, int], Outbox] = {}
        self._active: set[Outbox] = set()
        self._wake = asyncio.Event()
        self._hurries = 0
        self._errands = Errands(
            cluster,
            self._active,
            patience=how.patience,
            idempotent=how.idempotent,
            give_up=self._give_up_all,
            back=self._wake.set,
        )
        self._requests: set[asyncio.Task[None]] = set()
        self._pump_task: asyncio.Task[None] | None = None

    def put(self, topic: str, index: int, waiting: Waiting) -> None:
        """More to be sent."""
        outbox = self._outbox(topic, index)
        self._added(outbox, outbox.add(waiting))

    def put_one(self, topic: str, index: int, record: Record, size: int, future: asyncio.Future[Published]) -> None:
        """One more record to be sent."""
        outbox = self._outboxes.get((topic, index)) or self._outbox(topic, index)
        first = outbox.add_one(record, size, future, self._batch_bytes)
        if first or outbox.bytes >= self._batch_bytes:
            self._added(outbox, first)

    def _outbox(self, topic: str, index: int) -> Outbox:
        outbox = self._outboxes.get((topic, index))
        if outbox is None:
            outbox = self._outboxes[topic, index] = Outbox(topic, index)
        return outbox

    def _added(self, outbox: Outbox, first: bool) -> None:
        if first:
            outbox.since = asyncio.get_running_loop().time()
            if outbox.batch is None:
                self._active.add(outbox)
                self._wake.set()
                if self._pump_task is None:
                    self._pump_task = asyncio.create_task(self._pump())
        if outbox.bytes >= self._batch_bytes:
            self._wake.set()

    @contextlib.contextmanager
    def hurry(self) -> Iterator[None]:
        """Meanwhile nothing lingers."""
        self._hurries += 1
        self._wake.set()
        try:
            yield
        finally:
            self._hurries -= 1

    async def end(self) -> None:
        """Stop; what was not settled fails with ClientClosed."""
        tasks = [*self._requests, *self._errands.under_way, *([self._pump_task] if self._pump_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for outbox in self._outboxes.values():
            self._give_up_all(outbox, ClientClosed('the producer was closed before the record was confirmed'))

    # --- the pump

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._wake.clear()
                wait = self._send_due(loop.time())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
        except Exception as bug:  # it must not leave those hanging who wait for their records
            for outbox in self._outboxes.values():
                self._give_up_all(outbox, bug)
            self._active.clear()
            self._pump_task = None  # those who come later get another
            raise

    def _send_due(self, now: float) -> float | None:
        """Send all that is due; returns the seconds until more is, None when nothing waits."""
        next_at = math.inf
        ready: dict[int, list[Outbox]] = defaultdict(list)
        linger = 0.0 if self._hurries else self._how.linger
        for outbox in list(self._active):
            if outbox.on_its_way:
                continue
            if outbox.empty:
                self._active.discard(outbox)
                continue
            at = outbox.due(linger, self._how.batch_bytes)
            if at > now:
                next_at = min(next_at, at)
            elif (node := self._errands.leader(outbox)) is not None and self._errands.identified(outbox):
                ready[node].append(outbox)
        for node, outboxes in ready.items():
            self._send_to(node, outboxes, now)
        return None if next_at is math.inf else next_at - now

    def _send_to(self, node: int, outboxes: Sequence[Outbox], now: float) -> None:
        how = self._how
        timestamp = time.time_ns() // 1_000_000
        together: list[Outbox] = []
        size = 0
        for outbox in outboxes:
            batch = outbox.fill(
                batch_bytes=how.batch_bytes,
                compression=how.compression,
                timestamp=timestamp,
                now=now,
                patience=how.patience,
                unfit=lambda waiting, error: self._settled(failed([waiting], error), error),
            )
            if batch is None:
                self._wake.set()  # more may wait behind them
                continue
            self._sent(outbox.topic, outbox.index)
            outbox.on_its_way = True
            if together and size + len(batch.data) > REQUEST_BYTES:
                self._start(node, together)
                together, size = [], 0
            together.append(outbox)
            size += len(batch.data)
        if together:
            self._start(node, together)

    def _start(self, node: int, outboxes: list[Outbox]) -> None:
        task = asyncio.create_task(self._deliver(node, outboxes))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    # --- one request

    async def _deliver(self, node: int, outboxes: list[Outbox]) -> None:
        try:
            answers = await _produce(self._cluster, self._how.acks, node, outboxes)
        except PASSING as error:
            for outbox in outboxes:
                self._again(outbox, error)
        except AcklogError as error:
            for outbox in outboxes:
                self._give_up(outbox, error)
        else:
            missing = produce.PartitionResponse(-1, ErrorCode.UNKNOWN_SERVER_ERROR, error_message='no answer')
            for outbox in outboxes:
                self._answered(outbox, answers.get((outbox.topic, outbox.index), missing))
        finally:
            for outbox in outboxes:
                outbox.on_its_way = False
            self._wake.set()

    def _answered(self, outbox: Outbox, answer: produce.PartitionResponse) -> None:
        code = error_code(answer.error_code)
        base = answer.base_offset
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:  # stored, and no longer known where
            base = -1
        elif code is not ErrorCode.NONE:
            error = refusal(code, f'{outbox.topic}/{outbox.index}', answer.error_message)
            if code in RETRIABLE:
                self._cluster.forget_topic(outbox.topic)
                self._again(outbox, error)
            else:
                self._give_up(outbox, error)
            return
        self._settled(outbox.confirm(base, answer.append_time), None)

    def _again(self, outbox: Outbox, error: AcklogError) -> None:
        batch = outbox.batch
        assert batch is not None
        batch.retry_at = asyncio.get_running_loop().time() + batch.backoff.next()
        if batch.retry_at > batch.deadline:
            self._give_up(outbox, error)

    def _give_up(self, outbox: Outbox, error: AcklogError) -> None:
        """Its batch, which may have been stored."""
        self._errands.forget_identity(outbox)
        if outbox.batch is not None:
            self._settled(failed(outbox.settle(), error), error)

    def _give_up_all(self, outbox: Outbox, error: Exception) -> None:
        """Its batch, if there is one, and all that waits behind it."""
        self._errands.forget_identity(outbox)
        if not outbox.empty:
            self._settled(failed(outbox.drain(), error), error)


async def _produce(
    cluster: Cluster, acks: int, node: int, outboxes: Sequence[Outbox]
) -> dict[tuple[str, int], produce.PartitionResponse]:
    """Send the batches of these to the node that leads their partitions: its answer to each. Raises AcklogError."""
    by_topic: dict[str, list[produce.Partition]] = defaultdict(list)
    for outbox in outboxes:
        assert outbox.batch is not None
        by_topic[outbox.topic].append(produce.Partition(outbox.index, outbox.batch.data))
    connection = await cluster.connection(node, PURPOSE)
    known = cluster.topics
    ids = {name: known[name].id.bytes for name in by_topic if name in known}
    topics = [produce.Topic(name, ids.get(name), partitions) for name, partitions in by_topic.items()]
    within = cluster.timeout
    request = produce.Request(acks, int(within * 1000), None, topics)
    call = Hot(PRODUCE, produce.encode_request, produce.decode_response, request)
    if acks == 0:
        await connection.tell(call)
        return {(o.topic, o.index): produce.PartitionResponse(o.index, 0) for o in outboxes}
    answer = await connection.call(call, within)
    names = {id_: name for name, id_ in ids.items()}
    return {
        (topic.name or names.get(topic.topic_id or b'', ''), partition.index): partition
        for topic in answer.topics
        for partition in topic.partitions
    }
