"""Which names a topic may have (Kafka's rules; names of acklog's own logs are refused)."""

from __future__ import annotations

import re

from acklog.broker.api import Refused
from acklog.wire.error_code import ErrorCode

LONGEST = 249
INTERNAL = '__'  # acklog's own logs begin so
_ALLOWED = re.compile(r'[a-zA-Z0-9._-]+')


def check_topic_name(name: str) -> None:
    """Raises Refused (INVALID_TOPIC_EXCEPTION) when no topic can have this name."""
    wrong = _wrong(name)
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f'Topic name is invalid: {wrong}')


def check_new_topic_name(name: str) -> None:
    """Raises Refused (INVALID_TOPIC_EXCEPTION) when no topic of this name can be created."""
    check_topic_name(name)
    if name.startswith(INTERNAL):
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: '{name}' begins with '{INTERNAL}', which is kept for acklog's own logs",
        )


def _wrong(name: str) -> str | None:
    if not name:
        return 'the empty string is not allowed'
    if name in ('.', '..'):
        return f"'{name}' is not allowed"
    if len(name) > LONGEST:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST}"
    if not _ALLOWED.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
