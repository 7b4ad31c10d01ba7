"""Where the server's log goes: stderr, one line per event, for people or as JSON.

What peers send may be part of a message: control characters and everything else that a terminal or a reader of lines
could take for more than text are escaped, so that nobody can forge a line. A traceback's lines are indented.

JSON lines have `time` (ISO 8601, UTC), `level`, `logger`, `message`, and `traceback` where there is one.
"""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from datetime import UTC, datetime

LONGEST = 8192  # characters of a message


def one_line(text: str) -> str:
    """`text` without anything that is not printed as itself, and not longer than `LONGEST`."""
    if len(text) > LONGEST:
        text = f'{text[:LONGEST]}... ({len(text) - LONGEST} characters more)'
    if text.isprintable():
        return text
    return ''.join(char if char.isprintable() else char.encode('unicode_escape').decode() for char in text)


class _Text(logging.Formatter):
    """`2026-07-01T12:00:00.123Z INFO acklog.server: message`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f'{_instant(record)} {record.levelname} {record.name}: {one_line(record.getMessage())}'
        if not record.exc_info:
            return line
        trace = '\n'.join(map(one_line, self.formatException(record.exc_info).splitlines()))
        return f'{line}\n{textwrap.indent(trace, "  ")}'


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            'time': _instant(record),
            'level': record.levelname.lower(),
            'logger': record.name,
            'message': one_line(record.getMessage()),
        }
        if record.exc_info:
            fields['traceback'] = self.formatException(record.exc_info)
        return json.dumps(fields)


def _instant(record: logging.LogRecord) -> str:
    instant = datetime.fromtimestamp(record.created, UTC)
    return instant.isoformat(timespec='milliseconds').replace('+00:00', 'Z')


def log_to_stderr(level: str, layout: str) -> None:
    """Write all logs from `level` (debug, info, warning, error) on to stderr; `layout`: text or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if layout == 'json' else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.raiseExceptions = False  # nobody reads stderr any more: no reason to say so there
