"""What changes in groups, as it changes: for whoever looks on (`/v1/events`).

Strategy: while somebody listens, one task looks at the groups that are listened to, once a second (less often where
there is very much to look at), and gives every stream what differs from what it was given last. A stream keeps one
event for each thing (the lag of a group on a topic, the members of a group, ...), the newest; so what a slow reader has
not taken is replaced, and never grows. At first a stream gets everything there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from acklog.broker.api import Caller, Refused
from acklog.errors import LogError
from acklog.server.http.problems import Problem
from acklog.server.http.routes.insight import by_topic

if TYPE_CHECKING:
    from acklog.server.http.listener import HttpListener

LOOK_S = 1.0
PART = 20  # looking takes at most one part in so many of the time, however much there is to look at
QUIET_S = 15.0  # after which a comment says that the stream is alive
MOST_STREAMS = 100

Key = tuple[str, str, str]  # event, group, topic or ''


class Stream:
    """One listener. `group`: the only one it wants to hear of, None for all."""

    def __init__(self, group: str | None) -> None:
        self.group = group
        self.changed = asyncio.Event()
        self._given: dict[Key, bytes] = {}
        self._pending: dict[Key, bytes] = {}

    def see(self, state: dict[Key, bytes]) -> None:
        """How things are now."""
        for key, data in state.items():
            if self._given.get(key) != data and self.group in (None, key[1]):
                self._given[key] = self._pending[key] = data
        for key in [key for key in self._given if key not in state]:
            del self._given[key]
            self._pending[key] = _data(group=key[1], **({'topic': key[2]} if key[2] else {}), gone=True)
        if self._pending:
            self.changed.set()

    def take(self) -> bytes:
        """All that is new, as it is sent."""
        pending, self._pending = self._pending, {}
        self.changed.clear()
        return b''.join(b'event: %s\ndata: %s\n\n' % (key[0].encode(), data) for key, data in pending.items())


class Events:
    """All streams of a listener."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._streams: set[Stream] = set()
        self._looking: asyncio.Task[None] | None = None

    def open(self, caller: Caller, group: str | None) -> AsyncGenerator[bytes, None]:
        """A new stream. Raises Refused, Problem."""
        if len(self._streams) >= MOST_STREAMS:
            raise Problem(503, f'There are as many streams of events as there may be, {MOST_STREAMS}.')
        if group is not None:
            self._listener.broker.groups.existing(group)
        return self._run(caller, Stream(group))

    async def _run(self, caller: Caller, stream: Stream) -> AsyncGenerator[bytes, None]:
        self._streams.add(stream)
        caller.on_close[stream.changed.set] = None
        try:
            stream.see(await self._state())
            if self._looking is None:
                self._looking = asyncio.ensure_future(self._look())
            yield b': acklog\n\n'
            while not caller.closed and not self._listener.stopping.is_set():
                try:
                    async with asyncio.timeout(QUIET_S):
                        await stream.changed.wait()
                except TimeoutError:
                    yield b':\n\n'
                else:
                    yield stream.take()
        finally:
            self._streams.discard(stream)

    async def _look(self) -> None:
        """Look until nobody listens any more."""
        stopping, pause = self._listener.stopping, LOOK_S
        try:
            while self._streams and not stopping.is_set():
                try:
                    await asyncio.wait_for(stopping.wait(), pause)
                except TimeoutError:
                    begun = monotonic()
                    state = await self._state()
                    for stream in self._streams:
                        stream.see(state)
                    pause = max(LOOK_S, PART * (monotonic() - begun))
        finally:
            self._looking = None
            for stream in self._streams:
                stream.changed.set()

    async def _state(self) -> dict[Key, bytes]:
        wanted = {stream.group for stream in self._streams}
        state: dict[Key, bytes] = {}
        for name in sorted(self._listener.broker.catalog.groups):
            if None not in wanted and name not in wanted:
                continue
            await asyncio.sleep(0)
            try:
                state.update([(key, data) async for key, data in self._group(name)])
            except (Refused, LogError):
                continue  # deleted meanwhile, or its state is being read anew
        return state

    async def _group(self, name: str) -> AsyncIterator[tuple[Key, bytes]]:
        broker = self._listener.broker
        status = await broker.operations.status(Caller('events'), name)
        members = [member.id for member in broker.groups.members.of(name)]
        yield ('members', name, ''), _data(group=name, members=members)
        yield ('paused', name, ''), _data(group=name, paused=status.paused)
        for topic in by_topic(status.partitions):
            lag = msgspec.structs.asdict(topic)
            dead = lag.pop('dead')
            yield ('lag', name, topic.topic), _data(group=name, **lag)
            yield ('dead', name, topic.topic), _data(group=name, topic=topic.topic, dead=dead)


def _data(**fields: Any) -> bytes:
    return msgspec.json.encode(fields)
