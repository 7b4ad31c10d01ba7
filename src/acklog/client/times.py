"""Delays and instants as programs name them, and as they are sent: milliseconds."""

from __future__ import annotations

from datetime import datetime, timedelta

LATEST = 1 << 60  # ms: nothing is later

Delay = float | timedelta  # seconds
Instant = datetime | int  # with a time zone, or ms since 1970


def milliseconds(delay: Delay) -> int:
    """A delay in ms. Raises ValueError for less than nothing, for what is no number, and past all times;
    TypeError for what is neither a number nor a timedelta."""
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if not isinstance(seconds, int | float):
        raise TypeError(f'{seconds!r} is neither a number of seconds nor a timedelta')
    if seconds < 0:
        raise ValueError(f'a record cannot be released {-seconds:g} s ago')
    if not seconds * 1000 <= LATEST:
        raise ValueError(f'{seconds:g} s is no delay')
    return round(seconds * 1000)


def instant(when: Instant) -> int:
    """An instant in ms since 1970. Raises ValueError for a datetime without a time zone, for instants before 1970 and
    past all times, TypeError for what is neither a datetime nor a whole number."""
    if isinstance(when, int):
        if not 0 <= when <= LATEST:
            raise ValueError(f'{when} ms since 1970 is no instant')
        return when
    if not isinstance(when, datetime):
        raise TypeError(f'{when!r} is neither a datetime nor ms since 1970')
    if when.tzinfo is None:
        raise ValueError(f'{when} has no time zone, so it is no point in time')
    return instant(int(when.timestamp() * 1000))
