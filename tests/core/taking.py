"""A share partition in the tests that go by example: made, taken from, looked at."""

from __future__ import annotations

from acklog.core.share_partition import Acquired, LogBatch, ShareConfig, SharePartition

NOW = 1_000
Batches = list[LogBatch | tuple[int, int, bool]]


def partition(config: ShareConfig | None = None, *, start: int = 0) -> SharePartition:
    return SharePartition(config or ShareConfig(), start)


def plain(*bounds: tuple[int, int]) -> Batches:
    return [(first, last, False) for first, last in bounds]


def take(
    state: SharePartition,
    batches: Batches,
    count: int = 500,
    *,
    member: str = 'a',
    now: int = NOW,
    strict: bool = False,
) -> Acquired:
    """All three steps at once; `batches` are all that the log has."""
    reservation = state.reserve(now, member, count, strict, batches[-1][1] + 1)
    if reservation is None:
        return Acquired(None, [], 0)
    return state.acquire(now, reservation, batches)


def states(state: SharePartition, *offsets: int) -> list[str]:
    return [state.status.record(offset).state for offset in offsets]
