"""One client's connection: bytes in, requests to handlers, answers out in the order of the requests.

Strategy: requests are started as they arrive and may wait side by side (a produce for the disk, a share fetch for
records); an answer that is ready early waits for those before it. What one connection may hold is bounded: requests
under way, their bytes, and the answers that its client does not take. At a bound nothing more is started and the
socket is not read, so a slow client slows only itself; nor does one that sends thousands at once, for after a slice of
time the others have their turn. What all connections hold together is bounded by `Budget` (requests) and `Unsent`
(answers).

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
from acklog.wire.stream import LARGEST_CHUNK, FrameReader

if TYPE_CHECKING:
    from acklog.server.listener import Listener


JOIN_BELOW = 128 * 1024  # pieces of answers smaller than this are sent as one
SLICE_S = 0.005  # time after which one connection's requests leave the loop to others
REQUEST_COST = 2048  # bytes that a request under way takes besides its own
TURN_S = 10.0  # in which a request that goes on above the limit has to be complete
LAST_WORDS_S = 5.0  # in which a client has to take what was answered before its connection is closed
RECEIVE = 256 * 1024  # bytes that are taken from the socket at a time
FLUSH_AT = 256 * 1024  # bytes of answers that are given to the socket before the next request is started
SMALL = 64 * 1024  # bytes that may wait for a client while there is no room for others
SHOWN_ID = 64  # characters of a client id in a log line


class _Request:
    """A request under way: its answer when it is there."""

    __slots__ = ('answer', 'answer_size', 'ready', 'size')

    def __init__(self, size: int) -> None:
        self.size = size  # bytes
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
        self._account = listener.unsent
        self._dispatch = dispatch
        self._frames = FrameReader(listener.limits.request_bytes, listener.buffers)
        self._under_way: deque[_Request] = deque()
        self._backlog: deque[memoryview] = deque()
        self._bytes = 0  # of requests that are received and not worked off, and what they cost besides
        self._held = 0  # bytes that have arrived of a large request
        self._ready = 0  # bytes of answers that wait for those before them
        self._paused_writing = False
        self._paused_reading = False
        self._flushing = False
        self._resuming = False
        self._ending = False
        self._turn: asyncio.TimerHandle | None = None  # to go on above the limit of all requests
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._waiting_since = 0.0  # when its client began not to keep up with the answers
        self._waiting_bytes = 0  # all that has waited for it since then
        self.unsent = 0  # bytes of answers that are ready or in the socket's buffer, as they stand in the account
        self.caller = Caller('', room=self._room)
        self.last_used = self._loop.time()

    # -- the transport's calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
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
        self._drop_backlog()
        self._hold(0)
        self._frames = FrameReader(0)
        self._budget.forget(self._resume)
        self._account.total -= self.unsent
        self.unsent = 0
        self._under_way.clear()
        self.caller.closed = True
        self.caller.room = _no_room  # and no cycle, so all this goes at once
        callbacks, self.caller.on_close = self.caller.on_close, {}
        for callback in callbacks:
            callback()

    def get_buffer(self, sizehint: int) -> memoryview:
        room = self._frames.get_buffer(sizehint)
        return room if len(room) <= RECEIVE else room[:RECEIVE]

    def buffer_updated(self, nbytes: int) -> None:
        self.last_used = self._loop.time()
        try:
            frames = self._frames.received(nbytes)
        except ProtocolError as error:
            self.refuse(error)
            return
        size = 0
        for frame in frames:
            size += len(frame)
        self._bytes += size
        self._budget.take(size)
        if self._held or self._frames.held:
            self._hold(self._frames.held)
        self._backlog.extend(frames)
        if not self._resuming:
            self._resume()

    def eof_received(self) -> bool:
        return False  # close; what is under way finishes and its answers are dropped

    def pause_writing(self) -> None:
        self._paused_writing = True
        self._waiting_since = monotonic()
        self._waiting_bytes = 0
        self._listener.watch(self)

    def resume_writing(self) -> None:
        self._paused_writing = False
        self.last_used = self._loop.time()
        self._listener.slow_readers.discard(self)
        self.settle()
        self._resume_soon()

    # -- requests ------------------------------------------------------------------------------------------------------

    def _may_start(self) -> bool:
        limits = self._listener.limits
        return (
            not self._paused_writing
            and not self._ending
            and self._ready < limits.answer_bytes
            and (
                not self._under_way
                or (
                    len(self._under_way) < limits.requests_under_way
                    and self._bytes <= limits.request_bytes
                    and self._budget.has_room
                )
            )
        )

    def _resume(self) -> None:
        """Start what may be started, for a slice of time."""
        self._resuming = False
        backlog = self._backlog
        if backlog:
            until = monotonic() + SLICE_S
            self._flushing = True  # what is answered at once is sent together, behind the loop
            while backlog and self._may_start():
                self._start(backlog.popleft())
                if self._ready >= FLUSH_AT and self._under_way and self._under_way[0].ready:
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
        request = _Request(len(frame))
        self._under_way.append(request)
        self._bytes += REQUEST_COST
        self._budget.take(REQUEST_COST)

        def done(answer: list[Any] | None, error: BaseException | None) -> None:
            cost = request.size + REQUEST_COST
            self._bytes -= cost
            self._budget.give_back(cost)
            if request.size > LARGEST_CHUNK:
                self._listener.buffers.give_back(frame)
            if error is not None:
                self._failed(error)
                return
            if self._transport is None:
                return
            request.ready = True
            if answer is not None:
                size = 0
                for piece in answer:
                    size += len(piece)
                request.answer, request.answer_size = answer, size
                self._ready += size
                self.unsent += size
                self._account.total += size
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
            self.refuse(error)
        elif isinstance(error, asyncio.CancelledError):  # the loop ends, and with it what this request waited for
            self._end()
        else:
            self._listener.complaints.error(
                'bug', 'a request of %s failed: this is a bug', self.caller.address, exc_info=error
            )
            self._end()

    def refuse(self, error: object) -> None:
        """The peer did what cannot be answered: close, with one line about it."""
        if not self._ending:
            caller, complaints = self.caller, self._listener.complaints
            client_id = None if caller.client_id is None else caller.client_id[:SHOWN_ID]
            complaints.warning('refused', 'closing the connection of %s (%s): %s', caller.address, client_id, error)
        self._end()

    def _end(self) -> None:
        """Close: nothing more is started, what is ready is sent."""
        self._drop_backlog()
        self._flush()
        self.close()

    def _drop_backlog(self) -> None:
        size = sum(map(len, self._backlog))
        self._backlog.clear()
        self._bytes -= size
        self._budget.give_back(size)

    # -- answers -------------------------------------------------------------------------------------------------------

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
            self._ready -= size
            waited = self._paused_writing
            self._send(transport, pieces)
            self.settle()
            self._waiting_bytes += size if waited else self.unsent - self._ready
        if self._backlog:
            self._resume_soon()
        elif self._ending and not under_way:
            self._listener.gone_quiet()

    def _send(self, transport: asyncio.Transport, pieces: list[Any]) -> None:
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

    def settle(self) -> None:
        """Bring its part of the account of unsent answers up to date."""
        unsent = self._ready
        if self._paused_writing and self._transport is not None:
            unsent += self._transport.get_write_buffer_size()
        self._account.total += unsent - self.unsent
        self.unsent = unsent

    def _room(self) -> int:
        """See `Caller.room`."""
        room = self._listener.limits.answer_bytes - self.unsent
        if room > 0 and self._account.too_much:
            return 0 if self.unsent > SMALL else 1
        return max(room, 0)

    def seconds_waiting(self, now: float) -> float:
        """See `unsent.Reader`. `now`: of time.monotonic."""
        return now - self._waiting_since if self._paused_writing else 0.0

    def seconds_left(self, now: float) -> float:
        """See `unsent.Reader`."""
        waits = self.unsent - self._ready
        return waits * self.seconds_waiting(now) / max(self._waiting_bytes - waits, 1)

    # -- bounds --------------------------------------------------------------------------------------------------------

    def _hold(self, size: int) -> None:
        """Account for a large request that is being received; 0: there is none, or it is complete."""
        change, self._held = size - self._held, size
        if change > 0:
            self._budget.take(change)
        elif change:
            self._budget.give_back(-change)
        if not size and self._turn is not None:
            self._turn.cancel()
            self._turn = None
            self._budget.end_turn(self)

    def _mind_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        pause = bool(self._backlog) or self._paused_writing
        if not pause and (self._bytes or self._held) and not self._budget.has_room:
            pause = not self._goes_on_above_the_limit()
        if pause and not self._paused_reading:
            transport.pause_reading()
        elif not pause and self._paused_reading:
            transport.resume_reading()
        self._paused_reading = pause
        if pause and not self._paused_writing and not self._budget.has_room:
            self._budget.wait(self._resume)

    def _goes_on_above_the_limit(self) -> bool:
        if not self._held:
            return False
        had = self._budget.turn is self
        if not self._budget.take_turn(self):
            return False
        if not had:
            self._turn = self._loop.call_later(TURN_S, self._turn_over)
        return True

    def _turn_over(self) -> None:
        if self._budget.has_room:
            self._budget.end_turn(self)
        else:
            self.refuse(
                f'its request did not arrive in {TURN_S:.0f} s while others wait: queued.max.request.bytes reached'
            )

    # -- the end -------------------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Nothing is under way."""
        return not self._under_way

    @property
    def waits_for_room(self) -> bool:
        """It is not its client that does nothing: there is no room for its next request."""
        return self._paused_reading and not self._paused_writing

    def finish(self) -> None:
        """Start nothing more; what is under way is answered."""
        self._ending = True
        self._drop_backlog()
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
        if self._paused_writing:
            self._loop.call_later(LAST_WORDS_S, transport.abort)

    def abort(self) -> None:
        """Close at once."""
        self._ending = True
        if self._transport is not None:
            self._transport.abort()
