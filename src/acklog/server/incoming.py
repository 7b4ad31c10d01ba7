"""What has arrived of one connection's requests and is not worked off yet.

Strategy: its bytes count in the budget of all connections from when they arrive until the request is answered, and each
request under way counts for what it costs besides. Where there is no room left, one connection at a time may go on
receiving the request it has begun (see `Budget`), for so long and no longer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from acklog.wire.stream import FrameReader

if TYPE_CHECKING:
    from acklog.server.listener import Listener

REQUEST_COST = 2048  # bytes that a request under way takes besides its own
RECEIVE = 256 * 1024  # bytes that are taken from the socket at a time
TURN_S = 10.0  # in which a request that goes on above the limit has to be complete


class Incoming:
    """`backlog`: requests that are not started yet; `bytes`: of all that are not worked off, with what they cost."""

    __slots__ = ('_budget', '_buffers', '_frames', '_given', '_held', '_turn', 'backlog', 'bytes')

    def __init__(self, listener: Listener) -> None:
        self.backlog: deque[memoryview] = deque()
        self.bytes = 0
        self._budget = listener.budget
        self._buffers = listener.buffers
        self._frames = FrameReader(listener.limits.request_bytes, listener.buffers)
        self._given = memoryview(b'')  # where the transport puts the next bytes
        self._held = 0  # bytes that have arrived of a large request
        self._turn: asyncio.TimerHandle | None = None  # ends going on above the limit of all requests

    # -- receiving -----------------------------------------------------------------------------------------------------

    def get_buffer(self) -> memoryview:
        """Where the next bytes are to be put."""
        room = self._frames.get_buffer()
        self._given = room if len(room) <= RECEIVE else room[:RECEIVE]
        return self._given

    def received(self, nbytes: int) -> None:
        """So many bytes are there: whole requests are in the backlog now. Raises ProtocolError."""
        self._given.release()  # the transport still has it, and the buffer of a frame with views is not used again
        frames = self._frames.received(nbytes)
        size = 0
        for frame in frames:
            size += len(frame)
        self.bytes += size
        self._budget.take(size)
        if self._held or self._frames.held:
            self._hold(self._frames.held)
        self.backlog.extend(frames)

    def may_go_on(self, refuse: Callable[[str], None]) -> bool:
        """Whether it may receive more though there is no room: it has nothing yet, or goes on with what it has begun.
        `refuse` is called if it is too slow with that."""
        if not self._held:
            return not self.bytes
        had = self._budget.turn is self
        if not self._budget.take_turn(self):
            return False
        if not had:
            self._turn = asyncio.get_running_loop().call_later(TURN_S, self._turn_over, refuse)
        return True

    def _turn_over(self, refuse: Callable[[str], None]) -> None:
        if self._budget.has_room:
            self._budget.end_turn(self)
        else:
            refuse(f'its request did not arrive in {TURN_S:.0f} s while others wait: queued.max.request.bytes reached')

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

    # -- working off ---------------------------------------------------------------------------------------------------

    def next(self) -> memoryview:
        """The request that has waited longest. It is under way from here on, until `worked_off`."""
        self.bytes += REQUEST_COST
        self._budget.take(REQUEST_COST)
        return self.backlog.popleft()

    def worked_off(self, size: int, own_buffer: memoryview | None) -> None:
        """A request of so many bytes is answered. What it had as a buffer of its own may be used again."""
        cost = size + REQUEST_COST
        self.bytes -= cost
        self._budget.give_back(cost)
        if own_buffer is not None:
            self._buffers.give_back(own_buffer)

    def drop_backlog(self) -> None:
        """Nothing more is started."""
        size = sum(map(len, self.backlog))
        self.backlog.clear()
        self.bytes -= size
        self._budget.give_back(size)

    def end(self) -> None:
        """The connection is gone. Requests under way are still worked off."""
        self.drop_backlog()
        self._hold(0)
        self._given.release()
        self._frames = FrameReader(0)
