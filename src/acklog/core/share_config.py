"""What a share partition is told about how its records are delivered: its group's settings, as core wants them."""

from __future__ import annotations

from dataclasses import dataclass, field

from acklog.core.backoff import Backoff


@dataclass(frozen=True, slots=True)
class ShareConfig:
    """It may be replaced while records are out; what they were told by the former one stays.

    `lock_ms`: how long an acquire holds (`share.record.lock.duration.ms`); `attempts_limit`: failed deliveries after
    which a record goes dead, None: never (`share.delivery.count.limit`); `max_in_flight`: records acquired, pending
    or dying beyond which nothing is acquired (`share.partition.max.record.locks`); `dead_letter_topic`: whether a
    record's dead letter is written before it is dead; `waiting_max_ms`: how long a failed record may wait for its next
    delivery before it dies, None: as long as it is told (`acklog.waiting.max.ms`); `cut_ms`: by how much the instants
    may be too low that calls give as `now`, as of a clock that shows whole ms: delays count from so much later, since
    none may be short.
    """

    lock_ms: int = 30_000
    attempts_limit: int | None = 5
    max_in_flight: int = 100_000
    backoff: Backoff = field(default_factory=Backoff)
    dead_letter_topic: bool = False
    waiting_max_ms: int | None = None
    cut_ms: int = 0
