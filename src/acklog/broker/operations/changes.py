"""What operations list, choose and change: plain values, used alike by HTTP, command line and console.

Offsets are those of the log; times are milliseconds since 1970; ranges include both ends. Where something is chosen
`None` means all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

# -- lists and choices -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. `next`: what to give as `after` for the part behind it; None: that was the last."""

    items: list[Any]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """It comes at `due_ms`; `attempts` deliveries have failed."""

    topic: str
    partition: int
    offset: int
    due_ms: int
    attempts: int


@dataclass(frozen=True, slots=True)
class ScheduledRecord:
    """It was published for later: from `due_ms` on it may be delivered."""

    topic: str
    partition: int
    offset: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class DeadRecord:
    """Why and when it died, after how many failed deliveries, at which member (None: at none)."""

    topic: str
    partition: int
    offset: int
    reason: str
    words: str | None
    died_ms: int | None
    attempts: int
    member: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Records of a group: of one topic or all, of one partition or all, offsets `first` to `last` or without bound.

    `offsets`: these instead of a range; they need a topic and a partition, and so do bounds."""

    topic: str | None = None
    partition: int | None = None
    first: int | None = None
    last: int | None = None
    offsets: Sequence[int] | None = None


ALL = Selection()


@dataclass(frozen=True, slots=True)
class Changed:
    """How many records were changed, or with `dry_run` would be. `pending`: how many more follow at the rate asked
    for."""

    records: int
    dry_run: bool = False
    pending: int = 0


# -- moving a group ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: `earliest`, `latest`, `offset` or `time` (ms) with a `value`."""

    kind: Literal['earliest', 'latest', 'offset', 'time']
    value: int = 0


@dataclass(frozen=True, slots=True)
class Sought:
    """A partition was, or would be, moved: `start` of the group before and after. `brings`: settled records that come
    again; `drops`: records not settled that do not come."""

    topic: str
    partition: int
    before: int
    after: int
    brings: int
    drops: int
