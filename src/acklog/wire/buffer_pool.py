"""Buffers for large frames, used again.

Strategy: a producer that keeps up sends frames of a megabyte, hundreds in a second. A new buffer for each costs the
zeroing of its bytes and a page fault for every four kilobytes, together as much as all that is done with them. So
buffers of one size are kept, a few of them, and given to the next large frame that fits. A buffer comes back only when
nobody looks at it any more: the interpreter itself refuses to resize a bytearray that has views, and that is asked.
"""

from __future__ import annotations

SIZE = 1084 << 10  # bytes: a request with a batch of a megabyte, the limit of most producers
KEPT = 8  # buffers; what the pool may hold is known, whatever clients do


class BufferPool:
    """Up to `KEPT` buffers of `SIZE` bytes that nobody uses."""

    __slots__ = ('_free',)

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self) -> bytearray | None:
        """A buffer with whatever bytes were in it last; None: there is none."""
        return self._free.pop() if self._free else None

    def give_back(self, frame: memoryview) -> None:
        """The view of a frame that has been worked off; it must not be used any more. Its buffer is kept if it is of
        the right size and has no other view."""
        buffer = frame.obj
        if len(self._free) >= KEPT or type(buffer) is not bytearray or len(buffer) != SIZE:
            return
        try:
            frame.release()
            buffer.append(buffer.pop())  # has room for it, so nothing is moved; raises while there is a view
        except BufferError:
            return
        self._free.append(buffer)
