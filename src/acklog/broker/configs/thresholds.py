"""The share of a group's latest records that may die before it is paused: `acklog.dead.pause.threshold`.

50%/100   half of the last 100 that were settled
"""

from __future__ import annotations

import re
from typing import NamedTuple

from acklog.errors import ConfigError

NAME = 'acklog.dead.pause.threshold'
ALLOWED = "must be empty (never), or a share and a number of records, such as '50%/100': 1% to 100%, 1 to 1000000"
_THRESHOLD = re.compile(r'([0-9]{1,3})\s*%\s*/\s*([0-9]{1,7})')


class Threshold(NamedTuple):
    """So many percent of the last so many records."""

    percent: int
    records: int


def parse(text: str) -> Threshold | None:
    """The threshold that `text` says, None for none. Raises ConfigError."""
    if not text.strip():
        return None
    match = _THRESHOLD.fullmatch(text.strip())
    if match is None or not 1 <= int(match[1]) <= 100 or not 1 <= int(match[2]) <= 1_000_000:
        raise ConfigError(NAME, text, ALLOWED)
    return Threshold(int(match[1]), int(match[2]))
