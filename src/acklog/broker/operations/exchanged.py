"""What members without a Kafka client, and publishers, exchange with the server: records, and what became of them.
Plain values.

Times are milliseconds since 1970. `None` means that there is no such thing, or that the server decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Headers = Sequence[tuple[str, bytes | None]]


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
