"""What operations show of groups and records: plain values, used alike by HTTP, command line and console.

Offsets are those of the log; times are milliseconds since 1970; ranges include both ends. `None` means that there is no
such thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from acklog.broker.operations.exchanged import Headers

WhyReason = Literal[
    'something',
    'no members',
    'nothing new',
    'waiting',
    'held',
    'dying',
    'limit',
    'paused',
    'not assigned',
    'isolation',
    'unavailable',
]


@dataclass(frozen=True, slots=True)
class Holder:
    """A member that holds records of a partition: how many, since when the oldest of its locks, until when the first
    of them."""

    member: str
    records: int
    since_ms: int | None
    lock_until_ms: int


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One group's view of one partition.

    `start`: the lowest offset not settled; `end`: nothing from there on has been taken; `log_end`: where taking stops.
    Then records by state. `settled`: of what the log still holds, done or dead; `lag`: not settled. `lost`: records
    that the log lost before the group had settled them; `expired`: dead ones that were kept as long as configured.
    `dying_reason`: why dead letters of the dying ones cannot be written, where that is so.
    `overdue_bytes` and `overdue_ms`: what the log keeps beyond its retention because somebody is owed it, and for how
    long; `alarm`: that is near or past its limit.
    """

    topic: str
    partition: int
    start: int
    end: int
    log_end: int
    available: int
    acquired: int
    pending: int
    dying: int
    waiting: int
    next_due: int | None
    dead: int
    settled: int
    lag: int
    oldest_unsettled_ms: int | None
    holders: list[Holder]
    log_start: int = 0
    lost: int = 0
    expired: int = 0
    overdue_bytes: int = 0
    overdue_ms: int = 0
    alarm: bool = False
    dying_reason: str | None = None


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A group. `paused`: why, where it is; partitions that it has never taken from are not listed."""

    group: str
    paused: str | None
    partitions: list[PartitionStatus]


@dataclass(frozen=True, slots=True)
class RecordInGroup:
    """A record as one group has it. `state`: available, waiting, acquired, pending, dying, dead, done, not taken,
    cancelled (published for later, and cancelled before its time for this group or for all).

    `attempts`: deliveries that failed, `deliveries`: all. `reason`: why it died, or why its last delivery failed;
    `words`: its subscriber's own. `deferred_ms`: when it comes again if this delivery fails.
    """

    group: str
    state: str
    attempts: int = 0
    deliveries: int = 0
    member: str | None = None
    lock_until_ms: int | None = None
    due_ms: int | None = None
    reason: str | None = None
    words: str | None = None
    died_ms: int | None = None
    deferred_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record in its log, and what it is to each group. `due_ms`: when it comes, if it was published for later and its
    time has not come; `cancelled`: no group gets it any more; both as they are for all groups."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    groups: list[RecordInGroup]
    due_ms: int | None
    cancelled: bool


@dataclass(frozen=True, slots=True)
class Why:
    """Why a group, or a member of it, gets nothing from a partition.

    `reason`: something (it would get some now), no members (but there is something), nothing new, waiting (all wait,
    the first until `until_ms`), held (by `members`), limit (as many in flight as may be), paused, not assigned (to that
    member), isolation (behind an open transaction), unavailable (its state is being read anew). `detail`: a sentence.
    """

    topic: str
    partition: int
    reason: WhyReason
    detail: str
    until_ms: int | None = None
    members: Sequence[str] = ()
