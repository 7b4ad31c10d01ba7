"""One call of the event loop after a time, as exact as the operating system has it.

asyncio's own timers are 0.6 ms late on average: epoll_wait(2) counts in whole milliseconds, and these are rounded up. A
file descriptor that becomes readable in time (timerfd_create(2)) is late by as long as waking takes. Python has it from
3.13 on; ctypes has it everywhere on Linux. Where there is none, asyncio's timers serve.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Protocol


class Alarm(Protocol):
    """Makes one call, the one it was made with, over and over."""

    def set(self, seconds: float) -> None:
        """Call after so many seconds, soon if these are none or negative, instead of what was set before."""
        ...

    def clear(self) -> None:
        """Do not call until it is set again."""
        ...

    def close(self) -> None:
        """Never call again."""
        ...


def open_alarm(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> Alarm:
    """The most exact that there is here."""
    if sys.platform == 'linux':
        try:
            return ExactAlarm(loop, call)
        except (ImportError, AttributeError, OSError):  # no ctypes; a C library without it; no descriptor left
            pass
    return LoopAlarm(loop, call)


class LoopAlarm:
    """By asyncio's timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self._call = call
        self._closed = False
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        self.clear()
        if not self._closed:
            self._handle = self._loop.call_later(max(0.0, seconds), self._call)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        self._closed = True
        self.clear()


if sys.platform == 'linux':
    _FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # TFD_NONBLOCK and TFD_CLOEXEC are the same
    _CLOCK_MONOTONIC = 1

    class ExactAlarm:
        """By a timerfd. Raises ImportError, AttributeError or OSError where there is none to be had."""

        def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
            import ctypes

            libc = ctypes.CDLL(None, use_errno=True)
            create, self._settime = libc.timerfd_create, libc.timerfd_settime
            self._fd: int = create(_CLOCK_MONOTONIC, _FLAGS)
            if self._fd < 0:
                raise OSError(ctypes.get_errno(), 'timerfd_create')
            self._loop = loop
            self._call = call
            # struct itimerspec: interval (s, ns), which is none, and the time until the call (s, ns)
            self._spec = (ctypes.c_long * 4)()
            self._reference = ctypes.byref(self._spec)
            try:
                loop.add_reader(self._fd, self._ready)
            except BaseException:
                os.close(self._fd)
                raise

        def set(self, seconds: float) -> None:
            self._set(max(1, int(seconds * 1e9)))

        def clear(self) -> None:
            self._set(0)

        def close(self) -> None:
            if self._fd >= 0:
                self._loop.remove_reader(self._fd)
                os.close(self._fd)
                self._fd = -1

        def _set(self, ns: int) -> None:
            if self._fd < 0:  # closed
                return
            self._spec[2], self._spec[3] = divmod(ns, 1_000_000_000)
            if self._settime(self._fd, 0, self._reference, None) < 0:
                raise OSError(f'timerfd_settime failed for {ns} ns')

        def _ready(self) -> None:
            try:
                os.read(self._fd, 8)
            except BlockingIOError:  # set anew since the loop saw it
                return
            self._call()
