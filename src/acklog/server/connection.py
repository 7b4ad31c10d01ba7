"""One client's connection: bytes in, requests to handlers, answers out in the order of the requests.

Strategy: requests are started as they arrive and may wait side by side (a produce for the disk, a share fetch for
records); an answer that is ready early waits for those before it. What one connection may hold is bounded: requests
under way, their bytes, and the answers that its client does not read. At a bound nothing more is started and the
socket is not read, so a slow client slows only itself. The bytes of all connections together are bounded by `Budget`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Caller
from acklog.broker.eager import Eager
from acklog.errors import ProtocolError
from acklog.server.dispatch import Dispatch, Unanswerable
from acklog.server.rate_limit import RateLimited
from acklog.wire.stream import FrameReader

if TYPE_CHECKING:
    from acklog.server.listener import Listener

logger = logging.getLogger('acklog.connection')
complaints = RateLimited(logger)

WRITE_HIGH = 256 * 1024  # answers that wait for the socket, bytes, before no more requests are started
JOIN_BELOW = 128 * 1024  # pieces of answers smaller than this are sent as one


class _Request:
    """A request under way: its answer when it is there."""

    __slots__ = ('answer', 'ready', 'size')

    def __init__(self, size: int) -> None:
        self.size = size
        self.ready = False
        self.answer: list[Any] | None = None


class Connection(asyncio.BufferedProtocol):
    """One connection of the Kafka listener."""

    def __init__(self, listener: Listener, dispatch: Dispatch) -> None:
        self._listener = listener
        self._dispatch = dispatch
        self._frames = FrameReader(listener.limits.request_bytes)
        self._under_way: deque[_Request] = deque()
        self._bytes = 0  # of requests under way
        self._backlog: deque[memoryview] = deque()
        self._paused_writing = False
        self._paused_reading = False
        self._flushing = False
        self._ending = False
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self.caller = Caller('')
        self.last_used = self._loop.time()

    @property
    def ip(self) -> str:
        """The client's address without its port."""
        return self.caller.address.rpartition(':')[0]

    # -- the transport's calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info('peername')
        self.caller.address = f'{peer[0]}:{peer[1]}' if isinstance(peer, tuple) else str(peer)
        transport.set_write_buffer_limits(high=min(WRITE_HIGH, self._listener.limits.answer_bytes))
        reached = self._listener.admit(self)
        if reached is not None:
            complaints.warning('connections', 'connection of %s refused: %s reached', self.caller.address, reached)
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._backlog.clear()
        self._listener.forget(self)
        self._listener.budget.give_back(self._bytes)
        self._bytes = 0
        self.caller.closed = True
        for callback in self.caller.on_close:
            callback()
        self.caller.on_close.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.last_used = self._loop.time()
        try:
            frames = self._frames.received(nbytes)
        except ProtocolError as error:
            self.refuse(error)
            return
        if self._backlog:
            self._backlog.extend(frames)
            return
        for index, frame in enumerate(frames):
            if not self._may_start():
                self._backlog.extend(frames[index:])
                break
            self._start(frame)
        if self._under_way and self._under_way[0].ready:
            self._flush()
        self._mind_reading()

    def eof_received(self) -> bool:
        return False  # close; what is under way finishes and its answers are dropped

    def pause_writing(self) -> None:
        self._paused_writing = True
        self._mind_reading()

    def resume_writing(self) -> None:
        self._paused_writing = False
        self._resume()

    # -- requests ------------------------------------------------------------------------------------------------------

    def _may_start(self) -> bool:
        limits = self._listener.limits
        return (
            not self._paused_writing
            and not self._ending
            and len(self._under_way) < limits.requests_under_way
            and self._bytes <= limits.request_bytes
            and self._listener.budget.has_room
        )

    def _start(self, frame: memoryview) -> None:
        request = _Request(len(frame))
        self._under_way.append(request)
        self._bytes += request.size
        self._listener.budget.take(request.size)

        def done(answer: list[Any] | None, error: BaseException | None) -> None:
            if error is not None:
                self._failed(error)
                return
            request.ready, request.answer = True, answer
            if self._under_way and self._under_way[0] is request and not self._flushing:
                self._flushing = True
                self._loop.call_soon(self._flush)

        Eager(self._dispatch.answer(self.caller, frame), done)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, ProtocolError | Unanswerable):
            self.refuse(error)
        else:
            logger.error('a request of %s failed: this is a bug', self.caller.address, exc_info=error)
            self._abort()

    def refuse(self, error: BaseException) -> None:
        """The peer did what cannot be answered: close, with one line about it."""
        caller = self.caller
        complaints.warning('refused', 'closing the connection of %s (%s): %s', caller.address, caller.client_id, error)
        self._abort()

    def _abort(self) -> None:
        self._ending = True
        self._backlog.clear()
        if self._transport is not None:
            self._transport.close()

    # -- answers -------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flushing = False
        under_way, pieces, freed = self._under_way, [], 0
        while under_way and under_way[0].ready:
            request = under_way.popleft()
            freed += request.size
            if request.answer is not None:
                pieces += request.answer
        if self._transport is None:
            return
        self._bytes -= freed
        self._listener.budget.give_back(freed)
        if pieces:
            self._send(pieces)
        if self._backlog:
            self._resume()

    def _send(self, pieces: list[Any]) -> None:
        transport = self._transport
        assert transport is not None
        small: list[Any] = []
        for piece in pieces:
            if len(piece) < JOIN_BELOW:
                small.append(piece)
                continue
            if small:
                transport.write(b''.join(small))
                small = []
            transport.write(piece)
        if small:
            transport.write(b''.join(small))

    # -- bounds --------------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        while self._backlog and self._may_start():
            self._start(self._backlog.popleft())
        if self._under_way and self._under_way[0].ready and not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)
        self._mind_reading()

    def _mind_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        pause = bool(self._backlog) or self._paused_writing
        if pause and not self._paused_reading:
            self._transport.pause_reading()
        elif not pause and self._paused_reading:
            self._transport.resume_reading()
        self._paused_reading = pause
        if self._backlog and not self._listener.budget.has_room:
            self._listener.budget.wait(self._resume)

    # -- the end -------------------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return not self._under_way

    def close(self) -> None:
        """Close when what has been answered is sent."""
        self._ending = True
        if self._transport is not None:
            self._transport.close()
