"""The options of producers and subscriptions, for type checkers, and what they may be; `Producer` and `Subscription`
explain them."""

from __future__ import annotations

from typing import Literal, TypedDict

from acklog.client.arguments import INT32, check_begin, check_seconds, check_whole

Acks = Literal['all', '1', '0']


class ProducerOptions(TypedDict, total=False):
    """See `Producer`."""

    acks: Acks
    linger: float
    batch_bytes: int
    compression: str
    buffer_bytes: int
    patience: float
    idempotent: bool | None
    create_topics: bool


class SubscriptionOptions(TypedDict, total=False):
    """See `Subscription`."""

    max_records: int
    strict: bool
    max_bytes: int
    max_unsettled: int | None
    tell_after: float
    ahead: bool | None
    renew: bool
    grace: float | None
    begin: str | None


def check_producer(linger: float, batch_bytes: int, buffer_bytes: int, patience: float) -> None:
    """Raises TypeError, ValueError."""
    check_seconds('linger', linger)
    check_seconds('patience', patience)
    check_whole('batch_bytes', batch_bytes, 1)
    check_whole('buffer_bytes', buffer_bytes, 1)


def check_subscription(
    max_records: int,
    max_bytes: int,
    max_unsettled: int | None,
    tell_after: float,
    grace: float | None,
    begin: str | None,
) -> None:
    """Raises TypeError, ValueError."""
    check_whole('max_records', max_records, 1)
    check_whole('max_bytes', max_bytes, 1, INT32)
    check_seconds('tell_after', tell_after)
    if max_unsettled is not None:
        check_whole('max_unsettled', max_unsettled, 1)
    if grace is not None:
        check_seconds('grace', grace)
    check_begin(begin)
