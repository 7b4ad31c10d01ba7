"""Where the server's log goes: stderr, one line per event, for people or as JSON.

JSON lines have `time` (ISO 8601, UTC), `level`, `logger`, `message`, and `traceback` where there is one.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class _Text(logging.Formatter):
    """`2026-07-01T12:00:00.123Z INFO acklog.server: message`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f'{_instant(record)} {record.levelname} {record.name}: {record.getMessage()}'
        return f'{line}\n{self.formatException(record.exc_info)}' if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            'time': _instant(record),
            'level': record.levelname.lower(),
            'logger': record.name,
            'message': record.getMessage(),
        }
        if record.exc_info:
            fields['traceback'] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def _instant(record: logging.LogRecord) -> str:
    instant = datetime.fromtimestamp(record.created, UTC)
    return instant.isoformat(timespec='milliseconds').replace('+00:00', 'Z')


def log_to_stderr(level: str, layout: str) -> None:
    """Write all logs from `level` (debug, info, warning, error) on to stderr; `layout`: text or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if layout == 'json' else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
