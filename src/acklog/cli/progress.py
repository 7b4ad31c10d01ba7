"""How far a long command has got: one line on the terminal, which goes when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

EVERY_S = 1.0
_BEGINNING_OF_A_CLEAR_LINE = '\r\x1b[K'


@contextlib.asynccontextmanager
async def progress(words: Callable[[], str]) -> AsyncIterator[None]:
    """Say `words()` once a second, from then on when it has taken that long. Nothing is said where stderr is no
    terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    saying = asyncio.ensure_future(_say(words))
    try:
        yield
    finally:
        saying.cancel()
        sys.stderr.write(_BEGINNING_OF_A_CLEAR_LINE)
        sys.stderr.flush()


async def _say(words: Callable[[], str]) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        sys.stderr.write(f'{_BEGINNING_OF_A_CLEAR_LINE}{words()}')
        sys.stderr.flush()
