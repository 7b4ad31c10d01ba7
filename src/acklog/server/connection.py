"""One client's connection: bytes in, requests to handlers, answers out in the order of the requests.

Strategy: requests are started as they arrive and may wait side by side (a produce for the disk, a share fetch for
records); an answer that is ready early waits for those before it. What one connection may hold is bounded: requests
under way, their bytes (`Incoming`), and the answers that its client does not take (`Outgoing`). At a bound nothing more
is started and the socket is not read, so a slow client slows only itself; nor does one that sends thousands at once,
for after a slice of time the others have their turn. What all connections hold together is bounded by `Budget`
(requests) and `Unsent` (answers).

One request of each connection may always run, whatever the others hold: so nothing waits for itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Caller
from acklog.broker.eager import Eager
from acklog.errors import ProtocolError
from acklog.server.addresses import peer_address
from acklog.server.dispatch import Dispatch, Unanswerable
from acklog.server.incoming import Incoming
from acklog.server.outgoing import Outgoing
from acklog.wire.stream import LARGEST_CHUNK

if TYPE_CHECKING:
    from acklog.server.listener import Listener


SLICE_S = 0.005  # time after which one connection's requests leave the loop to others
LAST_WORDS_S = 5.0  # in which a client has to take what was answered before its connection is closed
FLUSH_AT = 256 * 1024  # bytes of answers that are given to the socket before the next request is started
ALONE_S = 30e-6  # after whatever arrived before: about twice what a small request takes


class _Request:
    """A request under way: its answer when it is there."""

    __slots__ = ('answer', 'answer_size', 'ready')

    def __init__(self) -> None:
        self.ready = False
        self.answer: list[Any] | None = None
        self.answer_size = 0


def _no_room() -> int:
    return 0


class Connection(asyncio.BufferedProtocol):
    """One connection of the Kafka listener."""

    def __init__(self, listener: Listener, dispatch: Dispatch) -> None:
        self._listener = listener
        self._budget = listener.budget
        self._dispatch = dispatch
        self._incoming = Incoming(listener)
        self._under_way: deque[_Request] = deque()  # in their order
        self._paused_reading = False
        self._flushing = False
        self._resuming = False
        self._ending = False
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self.outgoing = Outgoing(listener)
        self.caller = Caller('', room=self.outgoing.room)
        self.last_used = self._loop.time()

    # -- the transport's calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = self.outgoing.transport = transport
        self.caller.address, self.ip = peer_address(transport.get_extra_info('peername'))
        transport.set_write_buffer_limits(high=0)  # told of every answer that the socket does not take at once
        reached = self._listener.admit(self)
        if reached is not None:
            self._listener.complaints.warning(
                'connections', 'connection of %s refused: %s reached', self.caller.address, reached
            )
            self._ending = True
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._ending = True
        self._listener.forget(self)
        self._incoming.end()
        self._budget.forget(self._resume)
        self.outgoing.end()
        self._under_way.clear()
        self.caller.closed = True
        self.caller.room = _no_room  # and no cycle, so all this goes at once
        callbacks, self.caller.on_close = self.caller.on_close, {}
        for callback in callbacks:
            callback()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._incoming.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        listener = self._listener
        now, before = self._loop.time(), listener.last_arrival
        self.last_used = listener.last_arrival = now
        try:
            self._incoming.received(nbytes)
        except ProtocolError as error:
            self._refuse(error)
            return
        self.caller.alone = now - before > ALONE_S and len(self._incoming.backlog) == 1
        if not self._resuming:
            self._resume()

    def eof_received(self) -> bool:
        return False  # close; what is under way finishes and its answers are dropped

    def pause_writing(self) -> None:
        self.outgoing.pause()
        self._listener.slow(self)

    def resume_writing(self) -> None:
        self.last_used = self._loop.time()
        self._listener.keeps_up(self)
        self.outgoing.resume()
        self._resume_soon()

    # -- requests ------------------------------------------------------------------------------------------------------

    def _may_start(self) -> bool:
        limits = self._listener.limits
        return (
            not self.outgoing.paused
            and not self._ending
            and self.outgoing.ready < limits.answer_bytes
            and (
                not self._under_way
                or (
                    len(self._under_way) < limits.requests_under_way
                    and self._incoming.bytes <= limits.request_bytes
                    and self._budget.has_room
                )
            )
        )

    def _resume(self) -> None:
        """Start what may be started, for a slice of time."""
        self._resuming = False
        backlog = self._incoming.backlog
        if backlog:
            until = monotonic() + SLICE_S
            self._flushing = True  # what is answered at once is sent together, behind the loop
            while backlog and self._may_start():
                self._start(self._incoming.next())
                if self.outgoing.ready >= FLUSH_AT and self._under_way and self._under_way[0].ready:
                    self._flush()
                    self._flushing = True
                if backlog and monotonic() > until:
                    self._resume_soon()
                    break
            self._flushing = False
            if self._under_way and self._under_way[0].ready:
                self._flush()
        self._mind_reading()

    def _resume_soon(self) -> None:
        if not self._resuming:
            self._resuming = True
            self._loop.call_soon(self._resume)

    def _start(self, frame: memoryview) -> None:
        request = _Request()
        self._under_way.append(request)
        size = len(frame)
        own_buffer = frame if size > LARGEST_CHUNK else None  # else it is a view into what it arrived in

        def done(answer: list[Any] | None, error: BaseException | None) -> None:
            self._incoming.worked_off(size, own_buffer)
            if error is not None:
                self._failed(error)
                return
            if self._transport is None:
                return
            request.ready = True
            if answer is not None:
                answer_size = 0
                for piece in answer:
                    answer_size += len(piece)
                request.answer, request.answer_size = answer, answer_size
                self.outgoing.add(answer_size)
            if self._flushing or self._under_way[0] is not request:
                return
            if len(self._under_way) == 1:
                self._flush()  # there is no other answer that could go with it
            else:
                self._flushing = True
                self._loop.call_soon(self._flush)

        Eager(self._dispatch.answer(self.caller, frame), done)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, ProtocolError | Unanswerable):
            self._refuse(error)
        elif isinstance(error, asyncio.CancelledError):  # the loop ends, and with it what this request waited for
            self._end()
        else:
            self._listener.complaints.error('bug', 'a request of %s failed: this is a bug', self.caller, exc_info=error)
            self._end()

    def _refuse(self, error: object) -> None:
        """The peer did what cannot be answered: close, with one line about it."""
        if not self._ending:
            text = 'closing the connection of %s: %s'
            self._listener.complaints.warning('refused', text, self.caller, error)
        self._end()

    def _end(self) -> None:
        """Close: nothing more is started, what is ready is sent."""
        self._incoming.drop_backlog()
        self._flush()
        self.close()

    def _flush(self) -> None:
        self._flushing = False
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        under_way, pieces, size = self._under_way, [], 0
        while under_way and under_way[0].ready:
            request = under_way.popleft()
            if request.answer is not None:
                pieces += request.answer
                size += request.answer_size
        if pieces:
            self.outgoing.send(transport, pieces, size)
        if self._incoming.backlog:
            self._resume_soon()
        elif self._ending and not under_way:
            self._listener.gone_quiet()

    def _mind_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        paused_writing = self.outgoing.paused
        pause = bool(self._incoming.backlog) or paused_writing
        if not pause and not self._paused_reading and self._budget.has_room:
            return
        if not pause and not self._budget.has_room:
            pause = not self._incoming.may_go_on(self._refuse)
        if pause and not self._paused_reading:
            transport.pause_reading()
        elif not pause and self._paused_reading:
            transport.resume_reading()
        self._paused_reading = pause
        if pause and not paused_writing and not self._budget.has_room:
            self._budget.wait(self._resume)

    # -- the end -------------------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Nothing is under way."""
        return not self._under_way

    @property
    def waits_for_room(self) -> bool:
        """It is not its client that does nothing: there is no room for its next request."""
        return self._paused_reading and not self.outgoing.paused

    def finish(self) -> None:
        """Start nothing more; what is under way is answered."""
        self._ending = True
        self._incoming.drop_backlog()
        if self._transport is not None and not self._transport.is_closing() and not self._paused_reading:
            self._transport.pause_reading()
            self._paused_reading = True

    def close(self) -> None:
        """Close when what has been answered is sent, or when it is not taken for long."""
        self._ending = True
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.close()
        if self.outgoing.paused:
            self._loop.call_later(LAST_WORDS_S, transport.abort)

    def abort(self) -> None:
        """Close at once."""
        self._ending = True
        if self._transport is not None:
            self._transport.abort()
