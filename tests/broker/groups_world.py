"""A whole broker in memory, without sockets: requests go through the bytes of the protocol, time stands still until it
is moved, connections are names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from acklog.broker import topics
from acklog.broker.api import Api, Caller
from acklog.broker.apis.share_acknowledge import API as SHARE_ACKNOWLEDGE
from acklog.broker.apis.share_fetch import API as SHARE_FETCH
from acklog.broker.apis.share_group_heartbeat import API as HEARTBEAT
from acklog.broker.broker import Broker
from acklog.broker.catalog import NewTopic
from acklog.broker.configs import Settings
from acklog.errors import Failed
from acklog.log.seam import Appended, Durability, LogConfig, Read
from acklog.wire import cold, share_acknowledge, share_fetch
from acklog.wire.acknowledgements import ACCEPT
from acklog.wire.record_batch import build, place, spans

START = 1_700_000_000_000


class ListLog:
    """A log of batches in a list."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = self.end = self.size = self.epoch = 0
        self.failing = False
        self.listeners: list[Callable[[], None]] = []

    @property
    def visible_end(self) -> int:
        return self.end

    stable_end = visible_end

    async def append(self, data: bytes | bytearray, now: int, durability: Durability) -> Appended:
        if self.failing:
            raise Failed('as told')
        batches, first = bytearray(data), self.end
        for span in spans(batches):
            place(batches, span.position, self.end, 0)
            self.batches.append(bytes(batches[span.position : span.position + span.size]))
            self.end += span.last - span.first + 1
        self.size += len(batches)
        for listener in self.listeners:
            asyncio.get_running_loop().call_soon(listener)
        return Appended(first, self.end - 1, -1)

    async def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> Read:
        data = b''
        for batch in self.batches:
            [span] = spans(batch)
            if span.last >= offset and span.first < (self.end if up_to is None else up_to):
                if data and len(data) + span.size > max_bytes:
                    break
                data += batch
        return Read(data)

    async def offset_at(self, timestamp: int) -> None: ...

    async def truncate_before(self, offset: int) -> int:
        self.batches = [batch for batch in self.batches if spans(batch)[0].last >= offset]
        self.start = offset
        return offset

    async def retain(self, now: int, keep_from: int | None) -> int:
        return self.start

    async def flush(self) -> None: ...

    async def close(self) -> None: ...

    async def delete(self) -> None: ...

    def configure(self, config: LogConfig) -> None: ...

    def listen(self, callback: Callable[[], None]) -> None:
        self.listeners.append(callback)


class World:
    """`beat`, `take`, `call` send requests; `fate` tells what became of a record."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.now = START
        self.logs: dict[str, ListLog] = {}
        self.callers: dict[str, Caller] = {}
        self.calls: list[Any] = []
        self._settings = settings

    @classmethod
    async def open(cls, settings: Mapping[str, str] | None = None) -> World:
        world = cls(settings or {})
        await world.restart()
        return world

    async def restart(self) -> None:
        """As after kill -9: connections, epochs and timers are gone."""
        self.callers, self.calls = {}, []
        for log in self.logs.values():
            log.listeners.clear()

        async def open(name: str, config: LogConfig, *, internal: bool = False) -> ListLog:
            return self.logs.setdefault(name, ListLog())

        opener = SimpleNamespace(open=open, names=lambda: list(self.logs))
        timer = SimpleNamespace(at=self._at)
        self.broker = await Broker.open(opener, Settings(self._settings), lambda: self.now, timer)  # type: ignore[arg-type]
        self.groups, self.catalog = self.broker.groups, self.broker.catalog

    # -- time ----------------------------------------------------------------------------------------------------------

    def _at(self, when: int, callback: Callable[[], None]) -> Any:
        call = SimpleNamespace(when=when, callback=callback)
        call.cancel = lambda: self.calls.remove(call) if call in self.calls else None
        self.calls.append(call)
        return call

    def pass_time(self, ms: int) -> None:
        until = self.now + ms
        while due := [call for call in self.calls if call.when <= until]:
            call = min(due, key=lambda call: call.when)
            self.calls.remove(call)
            self.now = max(self.now, call.when)
            call.callback()
        self.now = until

    # -- connections ---------------------------------------------------------------------------------------------------

    def caller(self, name: str) -> Caller:
        if name not in self.callers:
            self.callers[name] = Caller('10.0.0.1', client_id=name)
        return self.callers[name]

    def close(self, name: str) -> None:
        caller = self.callers.pop(name)
        caller.closed = True
        for callback in caller.on_close:
            callback()

    # -- requests ------------------------------------------------------------------------------------------------------

    async def call(self, api: Api, fields: Mapping[str, Any], via: str = 'c', version: int | None = None) -> Any:
        version = api.versions[1] if version is None else version
        request = cold.decode_request(api.key, version, cold.encode_request(api.key, version, fields))
        answer = await api.handle(self.broker, self.caller(via), version, request)
        return cold.as_dict(cold.decode_response(api.key, version, cold.encode_response(api.key, version, answer)))

    async def topic(self, name: str, partitions: int = 1) -> bytes:
        [topic] = await topics.create_topics(self.broker, [NewTopic(name, partitions)])
        return topic.id_bytes  # type: ignore[union-attr]

    async def publish(self, topic: bytes, count: int, index: int = 0) -> None:
        partition = self.broker.partition(topic, index)
        assert partition is not None
        for _ in range(count):
            await partition.append(build([(None, b'v', [])], timestamp=self.now), self.now, Durability.WRITTEN)

    async def beat(self, member: str, epoch: int, *names: str, via: str = '', group: str = 'g') -> str:
        """'epoch: assignment', 'epoch' where none is told, or 'error <code>'."""
        fields = {'group_id': group, 'member_id': member, 'member_epoch': epoch}
        fields['subscribed_topic_names'] = names or None
        answer = await self.call(HEARTBEAT, fields, via or f'{member}-beats')
        if answer['error_code']:
            return f'error {answer["error_code"]}'
        if answer['assignment'] is None:
            return str(answer['member_epoch'])
        told = []
        for part in answer['assignment']['topic_partitions']:
            told.append(f'{self.catalog.topics_by_id[part["topic_id"].bytes].name}{list(part["partitions"])}')
        return f'{answer["member_epoch"]}: {" ".join(told)}'

    async def take(
        self, member: str, epoch: int, *partitions: tuple[bytes, int], via: str = '', wait: int = 0, count: int = 1
    ) -> Any:
        """A ShareFetch of up to `count` records: the offsets it got, or 'error <code>'."""
        asked = [share_fetch.Topic(topic, [share_fetch.Partition(index, [])]) for topic, index in partitions]
        request = share_fetch.Request('g', member, epoch, wait, 0, 1 << 20, count, count, 1, False, asked, [])
        answer = await SHARE_FETCH.handle(self.broker, self.caller(via or f'{member}-takes'), 2, request)
        if answer.error_code:
            return f'error {answer.error_code}'
        ranges = [(a[0], a[1]) for t in answer.topics for p in t.partitions for a in p.acquired]
        return [offset for first, last in ranges for offset in range(first, last + 1)]

    async def sign_off(self, member: str, epoch: int, topic: bytes, *offsets: int, via: str = '') -> list[int]:
        """A ShareAcknowledge that accepts: the error codes, that of the whole request first."""
        acks = [(offset, offset, bytes([ACCEPT]), None) for offset in offsets]
        asked = [share_acknowledge.Topic(topic, [share_acknowledge.Partition(0, acks)])] if acks else []
        request = share_acknowledge.Request('g', member, epoch, False, asked)
        answer = await SHARE_ACKNOWLEDGE.handle(self.broker, self.caller(via or f'{member}-takes'), 2, request)
        return [int(answer.error_code), *(int(p.error_code) for t in answer.topics for p in t.partitions)]

    # -- what became of it ---------------------------------------------------------------------------------------------

    def fate(self, topic: bytes, offset: int, index: int = 0, group: str = 'g') -> str:
        """'acquired m', 'available', 'available after 1 failure', 'done', ..."""
        delivery = self.broker.deliveries.find(self.catalog.groups[group], topic, index)
        assert delivery is not None
        record = delivery.state.state_of(offset)
        if record.state == 'acquired':
            return f'acquired {record.member}'
        return record.state + (f' after {record.attempts} failure' if record.attempts else '')

    async def notes(self, of: str) -> list[str]:
        """Who is remembered, when all is written."""
        await self.groups._remembered.written()
        return sorted(json.loads(key)[1] for key in self.catalog.notes(of))
