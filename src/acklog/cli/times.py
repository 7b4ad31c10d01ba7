"""Times as people write them: `earliest`, `latest`, `2h`, `2026-07-01`, `2026-07-01T12:00Z`, ms since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import click

_UNITS = {'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}
_AGO = re.compile(r'([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])')
_MILLISECONDS = re.compile(r'[0-9]{12,18}')


LAST = 253_402_300_799_999  # ms since 1970: the end of the year 9999, up to where the server takes times
METAVAR = 'earliest|latest|TIME'


def beginning(text: str) -> str:
    """Where a group begins, as `share.auto.offset.reset` takes it: 'earliest', 'latest' or 'by_duration:PT...S'. For
    `type=` of click's parameters."""
    text = text.strip()
    if text.lower() in ('earliest', 'latest'):
        return text.lower()
    ago = seconds_ago(text, datetime.now(UTC))
    if ago is None:
        raise click.BadParameter(
            f'{text!r} is not "earliest", "latest", a time ago such as 90s, 15m, 2h, 7d, or a time such as '
            '2026-07-01T12:00'
        )
    if ago < 0:
        raise click.BadParameter(f'{text!r} is in the future')
    if ago > datetime.now(UTC).timestamp():
        raise click.BadParameter(f'{text!r} is before 1970')
    return f'by_duration:PT{ago:.0f}S'


def seconds_ago(text: str, now: datetime) -> float | None:
    """How many seconds before `now` the time is; None if it is no time. Without a time zone: this machine's."""
    ago = _AGO.fullmatch(text)
    if ago:
        return float(ago[1]) * _UNITS[ago[2]]
    if _MILLISECONDS.fullmatch(text):
        return now.timestamp() - int(text) / 1000
    try:
        return now.timestamp() - datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):  # no time, or none in this time zone
        return None


WHEN = 'TIME'


def instant_ago(text: str, besides: str = '') -> int:
    """A time, or how long ago it was (`2h`), in ms since 1970. `besides`: what else may stand there, for the error.
    For `type=` of click's parameters."""
    return _within(text, _instant(text, f'{besides}a time ago such as 90s, 15m, 2h, 7d', 1))


def instant_ahead(text: str) -> int:
    """A time, or how long it is to it (`2h`), in ms since 1970. For `type=` of click's parameters."""
    return _within(text, _ahead(text))


def instants_ahead(text: str) -> Callable[[], int]:
    """As `instant_ahead`, asked again and again: `2h` is counted from each call; and past the year 9999. For `type=` of
    click's parameters."""
    _ahead(text)  # says at once what is wrong with it
    return partial(_ahead, text)


def _ahead(text: str) -> int:
    return _instant(text, 'a time from now such as 90s, 15m, 2h, 7d', -1)


def _within(text: str, instant: int) -> int:
    """The instant, where the server's API takes it."""
    if instant > LAST:
        raise click.BadParameter(f'{text!r} is after the year 9999')
    return instant


def _instant(text: str, relative: str, sign: int) -> int:
    text = text.strip()
    if _MILLISECONDS.fullmatch(text):
        instant = int(text)
    else:
        now = datetime.now(UTC)
        ago = seconds_ago(text, now)
        if ago is None:
            raise click.BadParameter(
                f'{text!r} is not {relative}, or a time such as 2026-07-01T12:00, or ms since 1970'
            )
        instant = round((now.timestamp() - (ago * sign if _AGO.fullmatch(text) else ago)) * 1000)
    if instant < 0:
        raise click.BadParameter(f'{text!r} is before 1970')
    return instant
