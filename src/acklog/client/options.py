"""The options of producers and subscriptions, for type checkers; `Producer` and `Subscription` explain them."""

from __future__ import annotations

from typing import Literal, TypedDict

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
