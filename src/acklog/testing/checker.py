"""What must hold, whatever was killed: nothing lost, nothing delivered again after it was signed off.

Strategy: it is fed the workers' diaries, in any interleaving of them, and keeps for every record who had it
confirmed, who has it, and whether its accept was confirmed. What counts:

- *Published* is what the server confirmed to a publisher. What it did not confirm may be stored or not.
- *Accepted* is what the client reported as signed off. An accept that was asked for and never answered (the server or
  the subscriber was killed) may have been applied or not: such a record may come again, and it is not lost if it does
  not.
- *Delivered again after accept*: a delivery with a higher count than the one whose accept was confirmed, or the
  same delivery handed out a second time later on. A lower count is no failure: that member had its lock, and lost it,
  before the accept. Nor is a late accept of a member that had lost its lock, if the record had been signed off by then:
  Kafka passes over what is settled already and reports success.
- *Lost*: published, and nobody's accept can have been applied.
- *Stored twice*: one record of an idempotent publisher at two offsets.
"""

from __future__ import annotations

from collections.abc import Iterable

from acklog.testing.diary import Entry
from acklog.testing.verdict import Accept, Delivery, Since, Verdict

Place = tuple[int, int]  # partition, offset
EXAMPLES = 10


class Checker:
    """Feed it diary entries; ask it what is open, and in the end for the verdict."""

    def __init__(self) -> None:
        self._confirmed: dict[int, Place] = {}
        self._failed: set[int] = set()
        self._place: dict[int, Place] = {}  # where a record was seen when it was delivered
        self._accepted: dict[int, Accept] = {}
        self._held: dict[int, Delivery] = {}
        self._asked: dict[int, Delivery] = {}  # the accept was sent and has no answer yet, or never got one
        self._latest: dict[int, Delivery] = {}
        self._later: dict[int, list[Delivery]] = {}  # all deliveries from the second on, and
        self._asked_later: dict[int, list[Delivery]] = {}  # all accepts of these that were asked for
        self._more_accepts: dict[int, list[Accept]] = {}  # where more than one was confirmed
        self._taken_from: dict[int, float] = {}  # records of members that were killed then
        self._counts = Verdict()
        self._bad: dict[str, set[int]] = {'again': set(), 'twice': set(), 'damaged': set(), 'missing': set()}
        self.takeovers: list[float] = []  # s from the kill of a member until another had its record
        self.mark(0.0)
        self._on = {
            'confirmed': self._on_confirmed,
            'failed': self._on_failed,
            'delivered': self._on_delivered,
            'accepting': self._on_accepting,
            'accepted': self._on_accepted,
            'releasing': self._on_releasing,
            'released': self._on_released,
            'rejecting': self._on_releasing,
            'refused': self._on_refused,
            'damaged': self._on_damaged,
        }

    def feed(self, who: str, entries: Iterable[Entry]) -> None:
        """Take over what `who` has written down."""
        for entry in entries:
            handler = self._on.get(entry.what)
            if handler is not None:
                handler(who, entry)

    def mark(self, at: float) -> None:
        """From now on `confirms` and `accepts` tell about what the workers heard after `at`."""
        self.confirms, self.accepts = Since(at), Since(at)

    @property
    def confirmed(self) -> int:
        return len(self._confirmed)

    @property
    def accepted(self) -> int:
        return len(self._accepted)

    @property
    def deliveries(self) -> int:
        return self._counts.deliveries

    def open(self) -> int:
        """How many published records wait for somebody to ask for their accept."""
        settled = len(self._accepted) + len(self._asked)
        if len(self._confirmed) > settled:  # at least the difference, and counting costs
            return len(self._confirmed) - settled
        return sum(1 for record in self._confirmed if record not in self._accepted and record not in self._asked)

    def unanswered(self) -> int:
        """How many accepts were asked for and have no answer."""
        return len(self._asked)

    def held_by(self, who: str) -> list[int]:
        """Records that `who` has, with nothing asked for yet."""
        return [record for record, held in self._held.items() if held.who == who]

    def killed(self, who: str, at: float) -> int:
        """`who` was killed: from now on it is measured when others get what it had. Returns how many that are."""
        held = self.held_by(who)
        self._taken_from.update(dict.fromkeys(held, at))
        return len(held)

    def waiting_for_takeover(self) -> int:
        """Records of killed members that nobody else has got yet."""
        return len(self._taken_from)

    def compare_log(self, stored: set[Place]) -> None:
        """Compare what was confirmed with what a reader of the whole log found."""
        self._bad['missing'].update(record for record, place in self._confirmed.items() if place not in stored)

    def verdict(self) -> Verdict:
        """The state of things; final when everybody has ended and all diaries have been fed."""
        verdict = self._counts
        lost = [record for record in self._confirmed if record not in self._accepted and record not in self._asked]
        verdict.published = len(self._confirmed)
        verdict.unconfirmed = len(self._failed.union(self._place).difference(self._confirmed))
        verdict.accepted = len(self._accepted)
        verdict.accept_unanswered = len(self._asked)
        again = self._again_after_accept()
        verdict.again_after_accept = len(again)
        verdict.lost = len(lost)
        verdict.stored_twice = len(self._bad['twice'])
        verdict.damaged = len(self._bad['damaged'])
        verdict.missing_in_log = len(self._bad['missing'])
        bad = {**self._bad, 'again': again, 'lost': lost}
        verdict.examples = {kind: sorted(records)[:EXAMPLES] for kind, records in bad.items() if records}
        return verdict

    def _on_confirmed(self, who: str, entry: Entry) -> None:
        for record, offset in zip(entry.records, entry.offsets, strict=True):
            place = (entry.partition, offset)
            if self._confirmed.setdefault(record, place) != place or self._place.get(record, place) != place:
                self._bad['twice'].add(record)

        self.confirms.note(entry.at)

    def _on_failed(self, who: str, entry: Entry) -> None:
        self._failed.update(entry.records)

    def _on_delivered(self, who: str, entry: Entry) -> None:
        self._counts.deliveries += len(entry.records)
        for record, offset, nth in zip(entry.records, entry.offsets, entry.deliveries, strict=True):
            delivery = Delivery(who, entry.at, nth)
            self._check_place(record, (entry.partition, offset))
            self._check_same_delivery(record, delivery)
            self._check_takeover(record, delivery)
            if nth > 1:
                self._later.setdefault(record, []).append(delivery)
            if delivery.at >= self._latest.get(record, delivery).at:
                self._latest[record] = self._held[record] = delivery
            asked = self._asked.get(record)
            if asked is not None and asked.nth < nth:
                del self._asked[record]  # it was not applied, or else this is found when its answer is read

    def _check_place(self, record: int, place: Place) -> None:
        if record in self._place:
            self._counts.redelivered += 1
        if self._place.setdefault(record, place) != place or self._confirmed.get(record, place) != place:
            self._bad['twice'].add(record)

    def _check_same_delivery(self, record: int, delivery: Delivery) -> None:
        accept = self._accepted.get(record)
        if accept is not None and delivery.nth == accept.nth and delivery.at > accept.at:
            self._bad['again'].add(record)

    def _again_after_accept(self) -> set[int]:
        again = set(self._bad['again'])
        for record, deliveries in self._later.items():
            if record not in self._accepted:
                continue
            for accept in (self._accepted[record], *self._more_accepts.get(record, ())):
                higher = [delivery for delivery in deliveries if delivery.nth > accept.nth]
                asked = self._asked_later.get(record, ())
                if higher and not any(a.nth > accept.nth and a.at < accept.at for a in asked):
                    again.add(record)
        return again

    def _check_takeover(self, record: int, delivery: Delivery) -> None:
        killed_at = self._taken_from.get(record)
        if killed_at is not None and delivery.at > killed_at:
            self.takeovers.append(delivery.at - killed_at)
            del self._taken_from[record]

    def _on_accepting(self, who: str, entry: Entry) -> None:
        for record, nth in zip(entry.records, entry.deliveries, strict=True):
            self._let_go(who, record)
            asked = Delivery(who, entry.at, nth)
            if nth > 1:
                self._asked_later.setdefault(record, []).append(asked)
            if record not in self._accepted:
                self._asked[record] = asked

    def _on_accepted(self, who: str, entry: Entry) -> None:
        for record, nth in zip(entry.records, entry.deliveries, strict=True):
            accept = Accept(entry.at, nth)
            if self._accepted.setdefault(record, accept) is not accept:
                self._more_accepts.setdefault(record, []).append(accept)
            self._asked.pop(record, None)
            self._let_go(who, record)
            latest = self._latest.get(record)
            if latest is not None:
                self._check_same_delivery(record, latest)
        self.accepts.note(entry.at)

    def _on_releasing(self, who: str, entry: Entry) -> None:
        for record in entry.records:
            self._let_go(who, record)

    def _on_released(self, who: str, entry: Entry) -> None:
        self._counts.released += len(entry.records)

    def _on_refused(self, who: str, entry: Entry) -> None:
        self._counts.refused += len(entry.records)
        for record in entry.records:
            asked = self._asked.get(record)
            if asked is not None and asked.who == who:
                del self._asked[record]

    def _on_damaged(self, who: str, entry: Entry) -> None:
        self._bad['damaged'].update(entry.records)

    def _let_go(self, who: str, record: int) -> None:
        held = self._held.get(record)
        if held is not None and held.who == who:
            del self._held[record]
