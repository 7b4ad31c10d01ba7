"""What operations are asked and what they answer: plain values, used alike by HTTP, command line and console.

Offsets are those of the log; times are milliseconds since 1970; ranges include both ends. `None` means that there is no
such thing, or where something is chosen, all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Headers = Sequence[tuple[str, bytes | None]]

WhyReason = Literal[
    'something',
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


# -- looking -----------------------------------------------------------------------------------------------------------


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
    """A record as one group has it. `state`: available, waiting, acquired, pending, dying, dead, done, not taken.

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
    """A record in its log, and what it is to each group."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    groups: list[RecordInGroup]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a group, or a member of it, gets nothing from a partition.

    `reason`: something (it would get some now), nothing new, waiting (all wait; the first until `until_ms`), held
    (by `members`), limit (as many in flight as may be), paused, not assigned (to that member), isolation (behind an
    open transaction), unavailable (its state is being read anew). `detail`: a sentence.
    """

    topic: str
    partition: int
    reason: WhyReason
    detail: str
    until_ms: int | None = None
    members: Sequence[str] = ()


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


# -- members that are no Kafka clients ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record handed to a member. `lock`: the token that settles it, until `lock_until_ms`."""

    topic: str
    partition: int
    offset: int
    lock: str
    deliveries: int
    attempts: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    lock_until_ms: int


Action = Literal['accept', 'release', 'reject', 'renew']


@dataclass(frozen=True, slots=True)
class Ack:
    """What became of a record. For release: `after_ms` from now, or `at_ms`, the instant before which it does not come
    again (neither: the group's backoff). `reason`: the subscriber's own words, kept with the record. For renew:
    nothing."""

    lock: str
    action: Action
    after_ms: int | None = None
    at_ms: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class AckResult:
    """Whether an acknowledgement counts. `code`: ok, lost (the lock is not held any more), malformed (no token),
    disabled (renewal is not allowed), unavailable (try again), gone (topic or group). `lock_until_ms`: after a
    renewal."""

    lock: str
    ok: bool
    code: str
    detail: str = ''
    lock_until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be published. `partition` None: by key as Kafka does, without key in turn. `timestamp` None: now.
    `deliver_at`: not before (ms), on topics that have it enabled."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None
    deliver_at: int | None = None
