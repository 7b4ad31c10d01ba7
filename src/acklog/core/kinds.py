"""The kinds of what happens to records: how one is acknowledged, why a delivery failed, what ends a wait, why one came
back without having failed. The journal and the protocol have their numbers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias


class Ack(IntEnum):
    """How a record is acknowledged; numbers as in Kafka's protocol (KIP-932, RENEW: KIP-1222)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Cause(IntEnum):
    """Why a delivery failed."""

    RELEASED = 0
    EXPIRED = 1  # its lock ran out
    LOST = 2  # its member was lost
    LEFT = 3  # its member left, and had done so as often as allowed


class Until(IntEnum):
    """What ends a wait."""

    DELAY = 0  # an instant computed from a delay
    NAMED = 1  # an instant that somebody named
    LIMIT = 2  # the longest that a record may wait: then it dies


class Return(IntEnum):
    """Why a record came back without having failed."""

    LEFT = 0  # its member left
    ABORTED = 1  # so was the transaction that acknowledged it
    SPARE = 2  # there was no room for it in the answer


# When a record may come again: an instant (ms since 1970) or, with a minus sign, so many ms from now; 0: now.
When: TypeAlias = int
LONGEST = 1 << 62  # ms


def when(at: int | None, after: int | None) -> When | None:
    """An instant or, without one, a delay (ms, both as anybody may say them); None for neither."""
    if at is not None:
        return min(max(at, 0), LONGEST)
    return None if after is None else -min(max(after, 0), LONGEST)
