"""The Log seam: what the broker needs of a log, and nothing more.

Everything durable is a Log: a partition's records, the journal of the share partitions, the catalog. The seam is
asynchronous because a log may be milliseconds away (another machine); the local one answers at once where it can. So
whoever awaits one of these looks again afterwards at what it had looked at before.

Batches are Kafka's record batches v2, stored as the producer sent them: the log sets base offset and leader epoch,
which the CRC does not cover (and, for LogAppendTime, the timestamp and with it the CRC), and unpacks nothing. They have
been checked (`acklog.wire.record_batch.check`) before they come here.

No clock: `now` comes in, in milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol


class Durability(Enum):
    """When an append counts as done."""

    WRITTEN = 'written'  # the operating system has it: survives kill -9
    SYNCED = 'synced'  # on disk: survives power loss


class Overdue(NamedTuple):
    """What is kept only because somebody is owed it: bytes, and since when (ms) the oldest of it is past its time."""

    bytes: int = 0
    ms: int = 0


class Appended(NamedTuple):
    """Where an append went."""

    first: int  # offset of its first record
    last: int  # offset of its last record
    append_time: int  # ms, where the log sets timestamps (LogAppendTime), else -1
    duplicate: bool = False  # an idempotent producer's repeat: these are the offsets of the original


class Read(NamedTuple):
    """Whole batches from a log."""

    data: bytes | memoryview  # one or more whole batches v2, in order; empty at the end
    aborted: Sequence[tuple[int, int]] = ()  # (producer id, first offset) of aborted transactions in it


@dataclass(slots=True)
class LogConfig:
    """What a log is told about itself; may be replaced while it is open."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1  # -1: without limit
    retention_ms: int = 7 * 24 * 3_600_000  # -1: without limit
    owed_retention_bytes: int = -1  # of what is owed, beyond retention; -1: without limit
    owed_retention_ms: int = 7 * 24 * 3_600_000  # -1: without limit
    log_append_time: bool = False
    index_interval_bytes: int = 4096


class Log(Protocol):
    """One log. Offsets are those of records; `end` is the next one to be written."""

    @property
    def start(self) -> int:
        """First offset that can be read."""
        ...

    @property
    def end(self) -> int:
        """Offset that the next record will have, those not yet written to the operating system included."""
        ...

    @property
    def visible_end(self) -> int:
        """Up to here, not including, records may be delivered: the operating system has them."""
        ...

    @property
    def stable_end(self) -> int:
        """Like `visible_end`, short of the first open transaction."""
        ...

    @property
    def epoch(self) -> int:
        """Leader epoch: goes up after each unclean start."""
        ...

    @property
    def size(self) -> int:
        """Bytes stored."""
        ...

    async def append(
        self,
        batches: bytes | bytearray | memoryview,
        now: int,
        durability: Durability,
        placed: Callable[[int], None] | None = None,
        *,
        at_once: bool = False,
    ) -> Appended:
        """Append one or more whole, checked batches; returns when they are as durable as asked.

        Several appends of one turn of the loop go out in one write, or with this one `at_once`, for who has nobody to
        wait for; appends are stored in the order of the calls. The buffer must stay unchanged until the call returns. A
        batch of an idempotent producer that is a repeat is not stored again (`duplicate`), and answered when its
        original is as durable as asked.

        `placed` is called with the offset of the first record as soon as that is known, before anybody can read it; not
        for a repeat. When the call fails after that, `end` tells whether the records are there: they are if they lie
        below it.

        Raises Full, Failed, Fenced, OutcomeUnknown, Closed, OutOfOrderSequence, StaleProducerEpoch.
        """
        ...

    async def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> Read:
        """Whole batches from the one that holds `offset` on, that begin below `up_to` (default and at most
        `visible_end`): as many as fit in `max_bytes`, at least one. Empty when `offset` is at that end. Raises
        OutOfRange, Damaged, Closed."""
        ...

    async def offset_at(self, timestamp: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first batch that may hold a record at or after `timestamp` (ms): the base offset
        of that batch and its max timestamp; the caller looks into the batch if it needs the record. None if there is
        none."""
        ...

    async def truncate_before(self, offset: int) -> int:
        """Make `offset` (at most `end`) the first readable one; durable when it returns. Returns the new start."""
        ...

    async def retain(self, now: int, keep_from: int | None, moving_from: int | None = None) -> int:
        """Drop whole closed segments past retention by time or size, none that holds offsets at or above `keep_from`
        (None: no such bound) unless it is past `owed_retention_bytes` or, holding nothing from `moving_from` on,
        `owed_retention_ms`. Rolls an old active segment. Returns the new start."""
        ...

    def overdue(self, now: int, keep_from: int | None) -> Overdue:
        """What is past retention and kept because of `keep_from`."""
        ...

    async def flush(self) -> None:
        """Return when all that was appended before is on disk. Raises Failed."""
        ...

    async def close(self) -> None:
        """Clean close: all on disk, the next open reads no segment. Waiting appends are finished or raise Closed."""
        ...

    async def delete(self) -> None:
        """Close and remove everything of it."""
        ...

    def configure(self, config: LogConfig) -> None:
        """Use another config from now on."""
        ...

    def listen(self, callback: Callable[[], None]) -> None:
        """`callback` is called in the loop whenever `visible_end` has moved, perhaps in the middle of an `append`: it
        wakes others and does no more."""
        ...


class Opener(Protocol):
    """Gives the broker its logs: built by the server, so the broker knows no concrete one."""

    async def open(self, name: str, config: LogConfig, *, internal: bool = False) -> Log:
        """Open or create the log `name` (`<topic id>-<partition>`, or an internal one's name such as `__catalog`).

        `internal` ones may use the reserve of a full disk."""
        ...

    def names(self) -> Sequence[str]:
        """Names of the logs that exist."""
        ...
