"""Delays and instants as programs name them, and as they are sent: milliseconds."""

from __future__ import annotations

from datetime import datetime, timedelta

Delay = float | timedelta  # seconds
Instant = datetime | int  # with a time zone, or ms since 1970


def milliseconds(delay: Delay) -> int:
    """A delay in ms. Raises ValueError for less than nothing."""
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if seconds < 0:
        raise ValueError(f'a record cannot be released {-seconds:g} s ago')
    return round(seconds * 1000)


def instant(when: Instant) -> int:
    """An instant in ms since 1970. Raises ValueError for a datetime without a time zone."""
    if isinstance(when, int):
        return when
    if when.tzinfo is None:
        raise ValueError(f'{when} has no time zone, so it is no point in time')
    return int(when.timestamp() * 1000)
