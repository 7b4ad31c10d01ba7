"""What the checker keeps of a record, and what it says in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Delivery(NamedTuple):
    """A record in the hands of a subscriber, who has not asked to settle it yet."""

    who: str
    at: float
    nth: int  # the server's delivery count


class Accept(NamedTuple):
    """A confirmed accept: when the client reported it, and of which delivery."""

    at: float
    nth: int


@dataclass(slots=True)
class Since:
    """The first and the latest of what happened after a moment; 0 before there is any."""

    moment: float
    first: float = 0.0
    latest: float = 0.0

    def note(self, at: float) -> None:
        if at > self.moment:
            self.first = min(self.first or at, at)
            self.latest = max(self.latest, at)


@dataclass(slots=True)
class Verdict:
    """What the checker found; `examples` holds some numbers of records for each kind of failure."""

    published: int = 0
    unconfirmed: int = 0  # given up by a publisher, or delivered without a confirmation
    accepted: int = 0
    accept_unanswered: int = 0  # the accept was sent, no answer came, and the record did not come again
    deliveries: int = 0
    redelivered: int = 0  # deliveries beyond a record's first
    released: int = 0
    refused: int = 0  # accepts that the server refused, because the record was not that member's any more
    again_after_accept: int = 0
    lost: int = 0
    stored_twice: int = 0
    damaged: int = 0
    missing_in_log: int = 0
    examples: dict[str, list[int]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not (self.again_after_accept or self.lost or self.stored_twice or self.damaged or self.missing_in_log)
