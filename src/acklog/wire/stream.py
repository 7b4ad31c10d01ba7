"""Splitting a stream of bytes into frames.

Strategy: made for asyncio's BufferedProtocol, which asks where to put what arrives and then says how much it was. Small
frames are received many at a time into a *chunk*, and are handed out as views into it. A chunk is only ever written
forwards: bytes that were handed out are never written again by the reader, so the views stay valid for as long as
anybody keeps them (they keep the chunk alive; when the last one goes, so does the chunk). When a chunk is full, or a
frame does not fit in the rest of it, the next chunk begins with what has arrived of the unfinished frame.

A frame larger than a chunk gets a buffer of its own, which is its view. That buffer grows fourfold as the bytes arrive,
so a peer that announces much and sends little costs little: what a reader holds is at most four times what was
received, and a chunk. Each byte is copied less than once on average, never quadratically. Where a pool has a buffer
that is large enough, that one is taken at once (see `acklog.wire.buffer_pool`).
"""

from __future__ import annotations

import struct

from acklog.errors import ProtocolError
from acklog.wire.buffer_pool import SIZE as POOLED
from acklog.wire.buffer_pool import BufferPool

SMALLEST_CHUNK = 4 << 10
LARGEST_CHUNK = 64 << 10

_LENGTH = struct.Struct('>i')


class FrameReader:
    """The frames of one connection, on either side of it.

    `max_size`: largest frame that is accepted, in bytes (`socket.request.max.bytes`). `pool`: for large frames; who
    receives one gives it back there.

    Ownership: each frame that `received` returns is a writable view that belongs to its receiver; the reader never
    touches these bytes again, and no two frames overlap. Keeping one keeps up to `LARGEST_CHUNK` bytes alive (or just
    itself, when larger), so who keeps a little of it for long had better copy.
    """

    __slots__ = ('_chunk', '_fill', '_given', '_large', '_needed', '_pool', '_size', '_start', 'max_size')

    def __init__(self, max_size: int, pool: BufferPool | None = None) -> None:
        self.max_size = max_size
        self._pool = pool
        self._chunk: memoryview | None = None
        self._size = SMALLEST_CHUNK  # of the next chunk
        self._start = 0  # where the first frame that is not complete begins
        self._fill = 0  # where the next byte goes; of the large frame while there is one
        self._given = 0  # how much room was offered last
        self._large: memoryview | None = None  # buffer of the large frame that is being received
        self._needed = 0  # its size

    @property
    def pending(self) -> int:
        """Size in bytes of the frame that is being received, its length included, as far as known; 0 between frames."""
        if self._large is not None:
            return self._needed + 4
        arrived = self._fill - self._start
        if self._chunk is None or arrived < 4:
            return arrived
        return int(_LENGTH.unpack_from(self._chunk, self._start)[0]) + 4

    @property
    def held(self) -> int:
        """Bytes that have arrived of a frame larger than a chunk; 0 when there is none."""
        return 0 if self._large is None else self._fill

    def get_buffer(self, hint: int = -1) -> memoryview:
        """Where the next bytes are to be put; never empty. `hint` is ignored, as BufferedProtocol allows."""
        room = self._room() if self._large is None else self._grown()[self._fill : self._needed]
        self._given = len(room)
        return room

    def received(self, count: int) -> list[memoryview]:
        """`count` bytes were put into the last `get_buffer`: the frames that are complete now, without their length.

        Raises ProtocolError when a frame's length is negative or above `max_size`; the stream cannot be read on then.
        """
        self._fill += count
        if self._large is not None:
            return self._large_received()
        if count == self._given:
            self._size = min(self._size * 2, LARGEST_CHUNK)
        elif count < self._size >> 3:
            self._size = max(self._size >> 1, SMALLEST_CHUNK)
        return self._split()

    def _split(self) -> list[memoryview]:
        chunk = self._chunk
        assert chunk is not None
        frames: list[memoryview] = []
        start, fill = self._start, self._fill
        while fill - start >= 4:
            (size,) = _LENGTH.unpack_from(chunk, start)
            if not 0 <= size <= self.max_size:
                raise ProtocolError(f'a frame of {size} bytes; at most {self.max_size} are accepted')
            stop = start + 4 + size
            if stop > fill:
                if size + 4 > LARGEST_CHUNK:
                    self._begin_large(chunk[start + 4 : fill], size)
                    return frames
                break
            frames.append(chunk[start + 4 : stop])
            start = stop
        self._start = start
        if start == fill and (len(chunk) - fill < self._size >> 2 or len(chunk) > self._size):
            self._drop_chunk()  # used up, or larger than what arrives now calls for
        return frames

    def _room(self) -> memoryview:
        """The rest of the chunk; another chunk if that cannot take the unfinished frame."""
        chunk = self._chunk
        arrived = self._fill - self._start
        if not arrived and chunk is not None and self._fill < len(chunk):  # as mostly
            return chunk[self._fill :]
        needed = max(arrived + 1, min(self.pending, LARGEST_CHUNK))
        if chunk is None or self._start + needed > len(chunk):
            fresh = memoryview(bytearray(max(self._size, needed)))
            if chunk is not None:
                fresh[:arrived] = chunk[self._start : self._fill]
            self._chunk = chunk = fresh
            self._start, self._fill = 0, arrived
        return chunk[self._fill :]

    def _drop_chunk(self) -> None:
        self._chunk = None
        self._start = self._fill = 0

    def _begin_large(self, arrived: memoryview, size: int) -> None:
        self._needed = size
        pooled = self._pool.take() if self._pool is not None and LARGEST_CHUNK < size <= POOLED else None
        self._large = self._larger(max(LARGEST_CHUNK, 4 * len(arrived))) if pooled is None else memoryview(pooled)
        self._large[: len(arrived)] = arrived
        self._drop_chunk()
        self._fill = len(arrived)

    def _grown(self) -> memoryview:
        """The large frame's buffer, with room in it."""
        large = self._large
        assert large is not None
        if self._fill == len(large):
            grown = self._larger(4 * len(large))
            grown[: self._fill] = large
            self._large = large = grown
        return large

    def _larger(self, allowed: int) -> memoryview:
        """A new buffer of at most so many bytes. If it can take all of a frame that is not much smaller than those of
        the pool, it is of their size."""
        if self._needed > allowed:
            return memoryview(bytearray(allowed))
        poolable = self._pool is not None and POOLED // 2 < self._needed <= POOLED <= allowed + LARGEST_CHUNK
        return memoryview(bytearray(POOLED if poolable else self._needed))

    def _large_received(self) -> list[memoryview]:
        if self._fill < self._needed:
            return []
        frame = self._large
        assert frame is not None
        self._large = None
        self._fill = self._start = 0
        return [frame[: self._needed]]
