"""One HTTP connection: uvicorn's protocol over h11, with our bounds.

Strategy: uvicorn parses and frames; how long a client may take for each part of a request, how much it may leave in our
buffers and how many there may be is decided here, by looking at all connections once a second (`HttpListener.look`).
"""

from __future__ import annotations

import asyncio
import json
import select
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from acklog.server.addresses import peer_address
from acklog.server.http.app import App
from acklog.server.http.endpoint import CONNECTION
from acklog.server.http.events import Events
from acklog.server.http.listener import HttpLimits, complaints
from acklog.server.http.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from acklog.server.http.listener import HttpListener


HUNG_UP = select.POLLHUP | select.POLLERR | getattr(select, 'POLLRDHUP', 0)  # macOS has no word for half of it


@dataclass(frozen=True, slots=True)
class Wiring:
    """What all connections have in common."""

    config: Config

    def connection(self, listener: HttpListener) -> Connection:
        """A connection that has just come."""
        return Connection(listener, self.config)


def wire(listener: HttpListener) -> Wiring:
    """Build the API."""
    listener.events = Events(listener)
    config = Config(
        App(listener),
        http='h11',
        ws='none',
        loop='none',
        lifespan='off',
        interface='asgi3',
        log_config=None,
        log_level='error',
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=int(listener.limits.idle_s),
    )
    config.load()
    return Wiring(config)


class Connection(H11Protocol):
    """`ip`, `address`: of the client."""

    def __init__(self, listener: HttpListener, config: Config) -> None:
        super().__init__(config, ServerState(), {CONNECTION: self})
        self._listener = listener
        self._account = listener.unsent
        self._begun = monotonic()
        self._head_since: float | None = None  # the first bytes of a head came then
        self._answered = 0.0  # when the last answer was complete
        self._waiting_since = 0.0  # since when it does not keep up with an answer
        self._waiting_bytes = 0  # how much there was to take then
        self._taken_at = 0.0  # when it took the last of it
        self._unless_sent: Callable[[], None] | None = None  # to be called if the answer does not all go out
        self.unsent = 0  # bytes of answers in the socket's buffer, as they stand in the account
        self.address, self.ip = '', ''

    # -- the transport's calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self.transport.set_write_buffer_limits(0)  # so writing is paused while anything of an answer is still here
        self.address, self.ip = peer_address(transport.get_extra_info('peername'))
        reached = self._listener.admit(self)
        if reached is not None:
            complaints.warning('connections', 'HTTP connection of %s refused: %s reached', self.address, reached)
            self._say(Problem(503, f'There are as many connections as {reached} allows.'))
        elif self._listener.stopping.is_set():
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None or self._under_way or self.flow.write_paused:
            self._did_not_send()
        self._listener.forget(self)
        self._account.total -= self.unsent
        self.unsent = 0
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_since is None and not self._under_way:
            self._head_since = monotonic()
        super().data_received(data)
        if self._under_way:
            self._head_since = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._waiting_since = self._taken_at = monotonic()
        self._waiting_bytes = self.transport.get_write_buffer_size()
        self.settle()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.settle()
        if not self._under_way:
            self._unless_sent = None

    def on_response_complete(self) -> None:
        self._answered = monotonic()
        if not self.flow.write_paused and not self.transport.is_closing():  # if it is, a write may have failed
            self._unless_sent = None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self._say(Problem(400, msg))

    def _say(self, problem: Problem) -> None:
        """Answer without a request, and close."""
        body = json.dumps(problem.fields()).encode()
        head = (
            f'HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: {MEDIA_TYPE}\r\n'
            f'content-length: {len(body)}\r\nconnection: close\r\n\r\n'
        )
        self.transport.write(head.encode('ascii') + body)
        self.transport.close()

    # -- answers that somebody has to know of --------------------------------------------------------------------------

    def answers(self, unless_sent: Callable[[], None]) -> bool:
        """An answer is about to be sent, and `unless_sent` is called if the client cannot get all of it: at once, then
        False comes back, or when the connection is lost while a part is still here. What the operating system has
        taken may have arrived: of that nothing is said."""
        self._unless_sent = unless_sent
        gone = self.transport.is_closing() or self._hung_up()
        if gone:
            self._did_not_send()
            if self._cycle is not None:
                self._cycle.disconnected = True  # uvicorn learns of it later, and would answer 500 and log an error
            self.abort()
        return not gone

    def _hung_up(self) -> bool:
        """What the loop has not come to read, or does not read because the client sent the next request already."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info('socket').fileno(), HUNG_UP)
        return bool(poll.poll(0))

    def _did_not_send(self) -> None:
        call, self._unless_sent = self._unless_sent, None
        if call is not None and not self._listener.stopping.is_set():  # what a stopping server gave stays with them
            call()

    # -- bounds --------------------------------------------------------------------------------------------------------

    @property
    def _under_way(self) -> bool:
        cycle = self._cycle
        return cycle is not None and not cycle.response_complete

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        """The request under way, or the one before."""
        return self.cycle

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The request under way."""
        return next(iter(self.tasks), None)

    def settle(self) -> None:
        """Bring its part of the account of unsent answers up to date."""
        unsent = 0 if self.transport.is_closing() else self.transport.get_write_buffer_size()
        if unsent < self.unsent:
            self._taken_at = monotonic()
        self._account.total += unsent - self.unsent
        self.unsent = unsent

    def seconds_waiting(self, now: float) -> float:
        """See `unsent.Reader`. `now`: of time.monotonic."""
        return now - self._waiting_since if self.flow.write_paused else 0.0

    def seconds_left(self, now: float) -> float:
        """See `unsent.Reader`."""
        return self.unsent * self.seconds_waiting(now) / max(self._waiting_bytes - self.unsent, 1)

    def overdue(self, now: float, limits: HttpLimits) -> str | None:
        """Why it has to go, if it has: its client is too slow. `now`: of time.monotonic."""
        if self.flow.write_paused and now - self._taken_at > limits.stuck_s:
            return f'it took nothing of an answer for {limits.stuck_s:.0f} s'
        if self._under_way:
            return None
        if self._head_since is not None and now - self._head_since > limits.head_s:
            return f'the head of its request did not arrive in {limits.head_s:.0f} s'
        if self._cycle is None and now - self._begun > limits.head_s:
            return f'it sent no request for {limits.head_s:.0f} s'
        if self.conn.their_state is h11.SEND_BODY and now - self._answered > limits.rest_s:
            return 'it goes on sending what was refused'
        return None

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Close when what is under way is answered."""
        if not self.transport.is_closing():
            self.shutdown()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()
