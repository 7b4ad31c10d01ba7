"""A broker with groups, without sockets: time stands still until it is moved, deliveries say what they were told."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from acklog.broker.api import Api, Caller
from acklog.broker.catalog import Catalog
from acklog.broker.configs import Settings
from acklog.broker.groups import Groups
from acklog.errors import Failed
from acklog.log.seam import Appended, Durability, Read
from acklog.wire import cold
from acklog.wire.record_batch import place, read_header

START = 1_700_000_000_000


class ListLog:
    """A log of batches in a list."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.start = self.end = self.size = 0
        self.failing = False

    @property
    def visible_end(self) -> int:
        return self.end

    async def append(self, data: bytes | bytearray, now: int, durability: Durability) -> Appended:
        if self.failing:
            raise Failed('as told')
        batch, first = bytearray(data), self.end
        while data:
            header = read_header(data)
            place(data := bytearray(data), 0, self.end, 0)
            length = 12 + header.length
            self.batches.append((self.end, bytes(data[:length])))
            self.end += header.last_offset_delta + 1
            data = data[length:]
        self.size += len(batch)
        return Appended(first, self.end - 1, -1)

    async def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> Read:
        return Read(b''.join(data for first, data in self.batches if first >= offset))

    async def truncate_before(self, offset: int) -> int:
        self.batches = [(first, data) for first, data in self.batches if first >= offset]
        self.start = offset
        return offset

    async def retain(self, now: int, keep_from: int | None) -> int:
        return self.start

    async def close(self) -> None: ...


class Timer:
    def __init__(self, world: World) -> None:
        self.world, self.calls = world, []

    def at(self, when: int, callback: Any) -> Any:
        call = SimpleNamespace(when=when, callback=callback)
        call.cancel = lambda: self.calls.remove(call) if call in self.calls else None
        self.calls.append(call)
        return call


class Told:
    """Deliveries that note what they are told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.journal = SimpleNamespace(written=self.written)

    async def written(self) -> None: ...

    def of_group(self, group_id: int) -> list[Any]:
        def teller(word: str) -> Any:
            return lambda member: self.said.append(f'{word} {member}')

        return [SimpleNamespace(left=teller('left'), lost=teller('lost'))]

    def wake_member(self, group: str, member: str) -> None:
        self.said.append(f'wake {member}')

    async def delete_group(self, group: Any) -> None:
        self.said.append(f'delete {group.name}')


class World:
    """`beat`, `fetch` and so on send requests; `said` gives what deliveries were told since it was last asked."""

    def __init__(self) -> None:
        self.now, self.latest = START, 0
        self.log = ListLog()
        self.callers: dict[str, Caller] = {}

    @classmethod
    async def open(cls, **static: str) -> World:
        world = cls()
        world.static = {name.replace('_', '.'): value for name, value in static.items()}
        await world.restart()
        return world

    async def restart(self) -> None:
        """As after kill -9: connections, epochs and timers are gone."""
        self.callers, self.timer, self.deliveries = {}, Timer(self), Told()
        self.settings = Settings(self.static)

        async def open(name: str, config: Any, *, internal: bool = False) -> ListLog:
            return self.log

        self.catalog = await Catalog.open(SimpleNamespace(open=open), self.clock, self.settings)
        self.groups = Groups(self)  # type: ignore[arg-type]
        await self.groups.recover()

    def clock(self) -> int:
        return self.now

    def authorize(self, caller: Caller, operation: str, kind: str, name: str) -> None: ...

    def pass_time(self, ms: int) -> None:
        until = self.now + ms
        while due := [call for call in self.timer.calls if call.when <= until]:
            call = min(due, key=lambda call: call.when)
            self.timer.calls.remove(call)
            self.now = max(self.now, call.when)
            call.callback()
        self.now = until

    def said(self) -> list[str]:
        said, self.deliveries.said = self.deliveries.said, []
        return said

    async def notes(self, of: str) -> list[str]:
        """Who is remembered, when all is written."""
        await self.groups._remembered.written()
        return [json.loads(key)[1] for key in self.catalog.notes(of)]

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

    async def topic(self, name: str, partitions: int) -> bytes:
        topic = await self.catalog.create_topic(name, partitions)
        self.groups.topics_changed()
        return topic.id_bytes

    async def call(
        self, api: Api, fields: dict[str, Any], caller: str = 'c', version: int | None = None
    ) -> dict[str, Any]:
        """Through the bytes of the protocol and back."""
        version = api.versions[1] if version is None else version
        request = cold.decode_request(api.key, version, cold.encode_request(api.key, version, fields))
        answer = await api.handle(self, self.caller(caller), version, request)  # type: ignore[arg-type]
        return cold.as_dict(cold.decode_response(api.key, version, cold.encode_response(api.key, version, answer)))

    async def beat(self, member: str, epoch: int, *topics: str, via: str = '', group: str = 'g') -> str:
        """'epoch: assignment', 'epoch' where none is told, or 'error <code>'."""
        from acklog.broker.apis.share_group_heartbeat import API

        fields = {
            'group_id': group,
            'member_id': member,
            'member_epoch': epoch,
            'subscribed_topic_names': topics or None,
        }
        answer = await self.call(API, fields, via or f'{member}-beats')
        if answer['error_code']:
            return f'error {answer["error_code"]}'
        assignment = answer['assignment']
        if assignment is None:
            return str(answer['member_epoch'])
        told = []
        for part in assignment['topic_partitions']:
            topic_id = part['topic_id']
            topic = self.catalog.topics_by_id[topic_id.bytes if isinstance(topic_id, UUID) else topic_id]
            told.append(f'{topic.name}{list(part["partitions"])}')
        return f'{answer["member_epoch"]}: {" ".join(told)}'
