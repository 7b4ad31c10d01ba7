"""Lines from standard input for a command that runs in an event loop.

Strategy: a thread of its own reads chunks with `os.read` (no lock of the interpreter's stdin is held, so the process
can end while it waits for a terminal) and hands lists of lines to the loop; it stays at most a few chunks ahead.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable

from acklog.errors import AcklogError

CHUNK = 64 << 10
AHEAD = 4  # chunks
LONGEST = 64 << 20  # bytes of one line


class LineTooLong(AcklogError):
    """A line above `LONGEST` bytes."""


def asks_a_person() -> bool:
    """Whether somebody types what is read from stdin, which may have been closed from the start."""
    return sys.stdin is not None and sys.stdin.isatty()


def _stdin() -> Callable[[], bytes]:
    if sys.stdin is None:
        return lambda: b''
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # not a real file, as in tests
        binary = sys.stdin.buffer
        return lambda: binary.read(CHUNK)
    return lambda: os.read(descriptor, CHUNK)


async def chunks_of_lines(read: Callable[[], bytes] | None = None) -> AsyncIterator[list[bytes]]:
    """Lists of lines without their ends (`\\n` or `\\r\\n`), as they arrive; a last line need not have an end.

    Raises LineTooLong."""
    rest = b''
    async for chunk in _chunks(read or _stdin()):
        *lines, rest = (rest + chunk).split(b'\n')
        if len(rest) > LONGEST:
            raise LineTooLong(f'a line is longer than {LONGEST >> 20} MiB')
        if lines:
            yield [line.removesuffix(b'\r') for line in lines]
    if rest:
        yield [rest.removesuffix(b'\r')]


async def _chunks(read: Callable[[], bytes]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    ahead = threading.Semaphore(AHEAD)

    def reading() -> None:
        chunk = b'.'
        while chunk:
            ahead.acquire()
            try:
                chunk = read()
            except OSError:
                chunk = b''
            try:
                loop.call_soon_threadsafe(queue.put_nowait, chunk)
            except RuntimeError:  # the loop has ended
                return

    threading.Thread(target=reading, daemon=True, name='stdin').start()
    while chunk := await queue.get():
        ahead.release()
        yield chunk
