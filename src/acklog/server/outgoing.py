"""The answers of one connection that its client has not taken yet.

Strategy: an answer counts from when it is ready, though it may have to wait for those before it, until the socket's
buffer has no more of it. Small pieces are sent as one, large ones as they are. How long a client has not kept up, and
how much it took meanwhile, is what `Unsent` judges it by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acklog.server.listener import Listener

JOIN_BELOW = 128 * 1024  # pieces of answers smaller than this are sent as one
SMALL = 64 * 1024  # bytes that may wait for a client while there is no room for others


class Outgoing:
    """`ready`: bytes of answers that are not given to the socket yet; `unsent`: these and those in its buffer, as they
    stand in the account; `paused`: the client does not keep up. An `unsent.Reader`."""

    __slots__ = ('_account', '_bytes', '_listener', '_since', 'paused', 'ready', 'transport', 'unsent')

    def __init__(self, listener: Listener) -> None:
        self.transport: asyncio.Transport | None = None
        self.ready = 0
        self.unsent = 0
        self.paused = False
        self._listener = listener
        self._account = listener.unsent
        self._since = 0.0  # when its client began not to keep up
        self._bytes = 0  # all that has waited for it since then

    def add(self, size: int) -> None:
        """An answer of so many bytes is ready."""
        self.ready += size
        self.unsent += size
        self._account.total += size

    def send(self, transport: asyncio.Transport, pieces: Sequence[Any], size: int) -> None:
        """Give answers that were ready to the socket."""
        self.ready -= size
        waited = self.paused
        if size < JOIN_BELOW:
            transport.write(b''.join(pieces))
        else:
            _write(transport, pieces)
        if self.paused:
            self.settle()
            self._bytes += size if waited else self.unsent - self.ready
        else:  # the socket took it all
            self.unsent -= size
            self._account.total -= size

    def settle(self) -> None:
        """Bring its part of the account up to date."""
        unsent = self.ready
        if self.paused and self.transport is not None:
            unsent += self.transport.get_write_buffer_size()
        self._account.total += unsent - self.unsent
        self.unsent = unsent

    def pause(self) -> None:
        """The socket did not take all at once."""
        self.paused = True
        self._since = monotonic()
        self._bytes = 0

    def resume(self) -> None:
        """The client has taken all that waited for it."""
        self.paused = False
        self.settle()

    def end(self) -> None:
        """The connection is gone."""
        self.transport = None
        self._account.total -= self.unsent
        self.unsent = 0

    # -- what follows from it ------------------------------------------------------------------------------------------

    def room(self) -> int:
        """See `Caller.room`."""
        room = self._listener.limits.answer_bytes - self.unsent
        if room > 0 and self._account.too_much:
            return 0 if self.unsent > SMALL else 1
        return max(room, 0)

    def seconds_waiting(self, now: float) -> float:
        """See `unsent.Reader`. `now`: of time.monotonic."""
        return now - self._since if self.paused else 0.0

    def seconds_left(self, now: float) -> float:
        """See `unsent.Reader`."""
        waits = self.unsent - self.ready
        return waits * self.seconds_waiting(now) / max(self._bytes - waits, 1)


def _write(transport: asyncio.Transport, pieces: Sequence[Any]) -> None:
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
