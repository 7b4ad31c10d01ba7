"""What commands print: tables for people, JSON for programs, notes on stderr.

A command's result goes to stdout, everything said about it to stderr, so that a pipe carries results only. The field
names of the JSON are listed in docs/command-line.md and stay.
"""

from __future__ import annotations

import contextlib
import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from acklog.errors import AcklogError

if TYPE_CHECKING:
    from uuid import UUID


class NoOutput(AcklogError):
    """There is nothing that could be printed to."""


def check_output() -> None:
    """For commands whose output must not be lost. Raises NoOutput where stdout was closed from the start."""
    if sys.stdout is None:
        raise NoOutput('the output cannot be written: it is closed')


def show_json(value: Any) -> None:
    """One JSON document on one line, so that several make JSON lines."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(', ', ': ')))


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, none: str) -> None:
    """Aligned columns, numbers to the right; `none` is said on stderr when there are no rows."""
    lines = [list(row) for row in rows]
    cells = [[_cell(value) for value in row] for row in lines]
    if not cells:
        note(none)
        return
    right = [all(isinstance(row[i], int | float) or row[i] is None for row in lines) for i in range(len(head))]
    widths = [max(len(head[i]), *(len(row[i]) for row in cells)) for i in range(len(head))]
    for row in [list(head), *cells]:
        padded = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        click.echo('  '.join(padded).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return '-'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return printable(str(value))


def note(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    click.echo(text, err=True)


def printable(text: str) -> str:
    """The text with control characters shown as escapes: records and names must not steer the terminal."""
    if text.isprintable():
        return text
    return ''.join(
        char if char.isprintable() or char == '\t' else char.encode('unicode_escape').decode() for char in text
    )


def as_time(milliseconds: int) -> str:
    """An instant as ISO 8601 in UTC, to the millisecond; '-' where there is none, its number past the year 9999."""
    if milliseconds < 0:
        return '-'
    instant = _utc(milliseconds)
    return str(milliseconds) if instant is None else instant.isoformat(timespec='milliseconds').replace('+00:00', 'Z')


def as_local_time(milliseconds: int | None) -> str | None:
    """An instant as ISO 8601 in this machine's time zone, with its distance from UTC; None where there is none, its
    number past the year 9999."""
    if milliseconds is None or milliseconds < 0:
        return None
    instant = _utc(milliseconds)
    if instant is None:
        return str(milliseconds)
    with contextlib.suppress(OverflowError):  # past the year 9999 there: UTC then
        instant = instant.astimezone()
    return instant.isoformat(timespec='milliseconds')


def _utc(milliseconds: int) -> datetime | None:
    """Exact: a float of seconds is not, in a few thousand years. None past the year 9999."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def topic_id(found: UUID) -> str:
    """As Kafka's tools and HTTP show it."""
    return urlsafe_b64encode(found.bytes).decode().rstrip('=')


def count(number: int, one: str, many: str | None = None) -> str:
    """'1 record', '2 records'."""
    return f'{number:,} {one if number == 1 else many or one + "s"}'
