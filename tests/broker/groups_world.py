"""A whole broker in memory, without sockets: requests go through the bytes of the protocol, time stands still until it
is moved, connections are names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from acklog.broker.api import Api, Caller
from acklog.broker.apis.share_acknowledge import API as SHARE_ACKNOWLEDGE
from acklog.broker.apis.share_fetch import API as SHARE_FETCH
from acklog.broker.apis.share_group_heartbeat import API as HEARTBEAT
from acklog.broker.broker import Broker
from acklog.broker.catalog import topics
from acklog.broker.catalog.catalog import NewTopic
from acklog.broker.configs import Settings
from acklog.broker.deliveries.delivery import ShareDelivery
from acklog.log.memory import MemoryDirectory, Trouble
from acklog.log.seam import Durability
from acklog.wire import cold, share_acknowledge, share_fetch
from acklog.wire.acknowledgements import ACCEPT
from acklog.wire.record_batch import build

START = 1_700_000_000_000


async def settled() -> None:
    """Let what has begun get as far as it can."""
    for _ in range(50):
        await asyncio.sleep(0)


class World:
    """`beat`, `take`, `call` send requests; `fate` tells what became of a record."""

    delay = 0  # of the logs, in turns of the loop
    opened: ClassVar[list[World]] = []

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.now = START
        self.directory = MemoryDirectory(Trouble(delay=self.delay))
        self.callers: dict[str, Caller] = {}
        self.calls: list[Any] = []
        self._settings = settings

    @classmethod
    async def open(cls, settings: Mapping[str, str] | None = None) -> World:
        world = cls(settings or {})
        await world.restart()
        cls.opened.append(world)
        return world

    @classmethod
    async def close_all(cls) -> None:
        while cls.opened:
            await cls.opened.pop().broker.close()

    async def restart(self) -> None:
        """As after kill -9: connections, epochs and timers are gone."""
        self.callers, self.calls = {}, []
        await settled()
        self.directory = self.directory.restarted()
        timer = SimpleNamespace(at=self._at)
        self.broker = await Broker.open(self.directory, Settings(self._settings), lambda: self.now, timer)
        self.groups, self.catalog = self.broker.groups, self.broker.catalog

    async def stop_and_start(self) -> None:
        """As by SIGTERM: the server closes the connections, then the broker."""
        self.groups.stop()
        for name in list(self.callers):
            self.close(name)
        await self.broker.close()
        await self.restart()

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

    def set_clock(self, by: int, *, again: bool = True) -> None:
        """Somebody sets the wall clock, forward or back; no time passes. Not `again`: it has begun already."""
        if again:
            self.broker.clock_steps()
        before, self.now = self.now, self.now + by
        for call in self.calls:
            call.when += by
        self.broker.clock_stepped(before, by)

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
        self,
        member: str,
        epoch: int,
        *partitions: tuple[bytes, int],
        via: str = '',
        wait: int = 0,
        count: int = 1,
        grace: int | None = None,
    ) -> Any:
        """A ShareFetch of up to `count` records: the offsets it got, or 'error <code>'."""
        asked = [share_fetch.Topic(topic, [share_fetch.Partition(index, [])]) for topic, index in partitions]
        request = share_fetch.Request('g', member, epoch, wait, 0, 1 << 20, count, count, 1, False, asked, [], grace)
        answer = await SHARE_FETCH.handle(self.broker, self.caller(via or f'{member}-takes'), 2, request)
        if answer.error_code:
            return f'error {answer.error_code}'
        ranges = [(a[0], a[1]) for t in answer.topics for p in t.partitions for a in p.acquired]
        return [offset for first, last in ranges for offset in range(first, last + 1)]

    async def sign_off(
        self, member: str, epoch: int, topic: bytes, *offsets: int, via: str = '', index: int = 0
    ) -> list[int]:
        """A ShareAcknowledge that accepts: the error codes, that of the whole request first."""
        acks = [(offset, offset, bytes([ACCEPT]), None) for offset in offsets]
        asked = [share_acknowledge.Topic(topic, [share_acknowledge.Partition(index, acks)])] if acks else []
        request = share_acknowledge.Request('g', member, epoch, False, asked)
        answer = await SHARE_ACKNOWLEDGE.handle(self.broker, self.caller(via or f'{member}-takes'), 2, request)
        return [int(answer.error_code), *(int(p.error_code) for t in answer.topics for p in t.partitions)]

    # -- what became of it ---------------------------------------------------------------------------------------------

    def fate(self, topic: bytes, offset: int, index: int = 0, group: str = 'g') -> str:
        """'acquired m', 'available', 'available after 1 failure', 'done', ..."""
        delivery = self.broker.deliveries.find(self.catalog.groups[group], topic, index)
        assert delivery is not None
        record = delivery.state.status.record(offset)
        if record.state == 'acquired':
            return f'acquired {record.member}'
        return record.state + (f' after {record.attempts} failure' if record.attempts else '')

    async def notes(self, of: str) -> list[str]:
        """Who is remembered, when all is written."""
        await self.groups._remembered.written()
        return sorted(json.loads(key)[1] for key in self.catalog.notes(of))


def delivery_of(world: World, topic: bytes) -> ShareDelivery:
    """Of the group `g` and partition 0."""
    delivery = world.broker.deliveries.find(world.catalog.groups['g'], topic, 0)
    assert delivery is not None
    return delivery
