"""The producer: records in, each record's offset back.

Strategy: `send` chooses the partition, waits while `buffer_bytes` of records are held, and hands the record to the
sender (sender.py), which makes batches of them and gets them to the server.

With acks='all' and a server that gives producer ids the producer is idempotent: a repeated batch is stored once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from types import TracebackType

from acklog.client.admin import Admin
from acklog.client.arguments import INT64, check_whole
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.connection import ACKLOG_FEATURE
from acklog.client.errors import ClientClosed, Unsupported, refusal
from acklog.client.options import Acks, check_producer
from acklog.client.outbox import RECORD_OVERHEAD, UNFIT, Published, Waiting, misfit
from acklog.client.partitioner import Sticky, partition_of
from acklog.client.pieces import Piece, Pieces, in_order
from acklog.client.sender import Sender, Sending
from acklog.client.times import Instant, instant
from acklog.errors import ConfigError
from acklog.wire import compression as compressions
from acklog.wire import deliver_at as deliver_at_header
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import delivers_at_once, no_partition
from acklog.wire.record_batch import NewRecord

DELIVER_AT = 'acklog.deliver.at.enable'

_ACKS = {'all': -1, '1': 1, '0': 0}


class Producer:
    """Publishes records; made by `Client.producer`, closed by `async with` or `close`.

    `acks`: 'all' (answered when on disk), '1' (when the operating system has it) or '0' (not answered); `linger`:
    seconds that a record may wait for others, 0 or more; `batch_bytes`: size at which a batch is sent at once, keep
    it below the server's max.message.bytes; `compression`: 'none', 'gzip', and with the package cramjam 'snappy',
    'lz4', 'zstd'; `buffer_bytes`: what is held at most; `patience`: seconds during which a batch is tried again;
    `idempotent`: None: where acks='all' and the server offers it; True: raise Unsupported where it does not;
    `create_topics`: let the server create topics that do not exist, if it does. Raises ConfigError,
    ValueError for numbers out of range, and Unsupported for a compression whose package is missing.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: Acks = 'all',
        linger: float = 0.005,
        batch_bytes: int = 512 << 10,
        compression: str = 'none',
        buffer_bytes: int = 32 << 20,
        patience: float = 120.0,
        idempotent: bool | None = None,
        create_topics: bool = True,
    ) -> None:
        if acks not in _ACKS:
            raise ConfigError('acks', acks, 'all, 1 or 0')
        if idempotent and acks != 'all':
            raise ConfigError('acks', acks, 'all, for an idempotent producer')
        _check_compression(compression)
        check_producer(linger, batch_bytes, buffer_bytes, patience)
        self._cluster = cluster
        self._buffer_bytes, self._batch_bytes, self._create_topics = buffer_bytes, batch_bytes, create_topics
        self._sticky = Sticky()
        self._delivers_at: set[str] = set()  # topics where records may carry a time
        self._held = 0
        self._room = asyncio.Event()
        self._settled = asyncio.Event()
        self._failure: Exception | None = None
        self._closed = False
        sending = Sending(
            acks=_ACKS[acks],
            linger=linger,
            batch_bytes=batch_bytes,
            compression=compression,
            patience=patience,
            idempotent=idempotent if acks == 'all' else False,
        )
        self._sender = Sender(cluster, sending, self._sticky.move, self._release)

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
        deliver_at: Instant | None = None,
    ) -> Published:
        """Publish one record and wait until the server has confirmed it. Parameters and errors as `send`."""
        future = await self.send(
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            deliver_at=deliver_at,
        )
        try:
            return await future
        except Exception as error:
            if self._failure is error:  # it is told here: `flush` need not tell it again
                self._failure = None
            raise

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        partition: int | None = None,
        deliver_at: Instant | None = None,
    ) -> asyncio.Future[Published]:
        """Take a record to be published and return at once, or when there is room in the buffer.

        `timestamp`: ms since 1970, None for now; `partition`: None for the key's, or any without a key. The future
        gives where the record went, or raises Refused, TimedOut, Disconnected or Unreachable. Records of one
        partition are stored in the order of the calls. Raises NotFound when there is no such topic or partition,
        ClientClosed.

        `deliver_at`: no group gets it before that time (a datetime with a time zone, or ms since 1970). For topics with
        `acklog.deliver.at.enable=true`, on acklog; anywhere else raises Unsupported.
        """
        if self._closed:
            self._check_open()
        if deliver_at is not None:
            due = deliver_at_header.text(instant(deliver_at))
            await self._check_delivers_at(topic)
            headers = [*headers, (deliver_at_header.NAME, due)]
        place = self._cluster.topics.get(topic) or await self._cluster.topic(topic, create=self._create_topics)
        when = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        try:
            size = RECORD_OVERHEAD + _bytes_of(key, value, headers)
        except UNFIT as error:
            raise misfit((key, value, headers, timestamp)) or error from None
        if self._held and self._held + size > self._buffer_bytes:
            await self._wait_for_room(size)
        try:
            index = self._choose(topic, key, partition, place.leaders)
        except UNFIT as error:
            raise misfit((key, value, headers, timestamp)) or error from None
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()
        self._held += size
        self._sender.put_one(topic, index, (key, value, headers, when), size, future)
        return future

    async def publish_all(
        self, topic: str, records: Iterable[bytes | NewRecord], *, partition: int | None = None
    ) -> list[Published]:
        """Publish many records, each a value or a `NewRecord`, and wait until the server has confirmed all of them.

        Much faster than one by one. Those without a key are spread over the partitions in pieces of about a batch;
        those of one partition are stored in their order. Raises as `publish` when one of them failed; others may have
        been stored then. The places come back in the order of the records.
        """
        self._check_open()
        if isinstance(records, str | bytes | bytearray | memoryview):
            raise TypeError(f'many records are wanted, each a value of bytes or a NewRecord, not {records!r:.100}')
        place = self._cluster.topics.get(topic) or await self._cluster.topic(topic, create=self._create_topics)
        only = None if partition is None else self._choose(topic, None, partition, place.leaders)

        def choose(key: bytes) -> int:
            return self._choose(topic, key, None, place.leaders)

        pieces = Pieces(place.leaders, self._batch_bytes, choose, only)
        futures: list[asyncio.Future[Published]] = []
        taken: list[Piece] = []
        for piece in pieces.cut(records):
            if self._held and self._held + piece.size > self._buffer_bytes:
                await self._wait_for_room(piece.size)
            futures.append(self._put(topic, piece))
            taken.append(piece)
        try:
            return in_order(taken, [await future for future in futures])
        except Exception as error:
            if self._failure is error:  # it is told here
                self._failure = None
            raise

    async def _check_delivers_at(self, topic: str) -> None:
        """Looked at once for each topic."""
        if topic in self._delivers_at:
            return
        connection = await self._cluster.connection(ANY_NODE)
        if ACKLOG_FEATURE not in connection.features:
            raise Unsupported(f'the server at {connection.address} is not acklog: it delivers at once')
        await self._cluster.topic(topic, create=self._create_topics)
        configs = {config.name: config.value for config in await Admin(self._cluster).topic_configs(topic)}
        if configs.get(DELIVER_AT) != 'true':
            raise Unsupported(delivers_at_once(topic))
        self._delivers_at.add(topic)

    async def _wait_for_room(self, size: int) -> None:
        while self._held and self._held + size > self._buffer_bytes:
            self._room.clear()
            await self._room.wait()
        self._check_open()

    def _put(self, topic: str, piece: Piece) -> asyncio.Future[Published]:
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()
        self._held += piece.size
        self._sender.put(topic, piece.partition, Waiting(piece.records, piece.size, [future], True))
        return future

    async def flush(self) -> None:
        """Send what waits, and return when all that was sent is settled. Raises the first failure since the last flush;
        the futures tell which records it was."""
        with self._sender.hurry():
            while self._held:
                self._settled.clear()
                await self._settled.wait()
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
            await self._sender.end()
            self._room.set()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed('the producer was closed')

    def _choose(self, topic: str, key: bytes | None, partition: int | None, indexes: Collection[int]) -> int:
        if partition is not None:
            if partition not in indexes:
                check_whole('partition', partition, -INT64)
                words = no_partition(topic, len(indexes), partition)
                raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic {topic!r}', words)
            return partition
        if key is not None:
            return partition_of(key, len(indexes))
        return self._sticky.partition(topic, indexes)

    def _release(self, size: int, failure: Exception | None) -> None:
        """Records of that size are settled: there is room for others."""
        self._failure = self._failure or failure
        self._held -= size
        self._room.set()
        if not self._held:
            self._settled.set()


def _bytes_of(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    size = (0 if key is None else len(key)) + (0 if value is None else len(value))
    for name, content in headers:
        size += len(name) + len(content or b'') + 10
    return size


def _check_compression(name: str) -> None:
    if name not in compressions.NAMES:
        raise ConfigError('compression', name, ', '.join(compressions.NAMES))
    try:
        compressions.compress(name, b'')
    except compressions.CompressionUnavailable as error:
        raise Unsupported(str(error)) from None
