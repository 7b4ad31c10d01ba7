"""What must hold of a group whose records are released until a time, rejected, redriven, and moved by seeks.

Strategy: it reads the diaries of a whole run, in the order of time, when all is over. A record has several lives in a
group: a redrive or a seek begins one in which it is delivered as if it never had been. Each life is one record to
acklog.testing.checker, which judges what it always does (lost, again after accept, damaged, stored twice): only the
last life has to end with an accept. Beyond that:

- *Early*: a confirmed release named a time, and the record was delivered again before that.
- *Again after reject*: a rejected record was delivered again, and nobody had redriven it.
- *Held by two*: it was delivered to another member while one had it, who had said nothing, was alive, had not lost its
  connection to a kill of the server, and cannot have lost its lock yet.
- *Lateness* of deliveries after the instant that a subscriber named, where the server ran at that instant. It has all
  that happens in between in it: nobody asks for records before it has worked on those it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from acklog.testing.checker import EXAMPLES, Checker
from acklog.testing.diary import Entry
from acklog.testing.verdict import Verdict

LIFE = 10**12  # life n of a record is record + n times this, to the checker
ROUNDING_S = 0.001  # times are told in whole milliseconds
UNSEEN_S = 2.0  # for which a delivery may be on its way to who writes it down


class Span(NamedTuple):
    """Of time, in s, monotonic; something happened within, nobody knows when."""

    begun: float
    ended: float


@dataclass(frozen=True, slots=True)
class Events:
    """What was done to a group from outside. `limit`: failed attempts after which a record is dead; `clock_set_s`: by
    how much the wall clock was set, forward or back: so much sooner may an instant come."""

    seeks: Sequence[Span] = ()
    redrives: Sequence[Span] = ()
    downs: Sequence[Span] = ()  # of the server, from its kill until it was ready
    killed: Mapping[str, float] = field(default_factory=dict)  # subscribers
    limit: int = 5
    lock_s: float = 30.0
    clock_set_s: float = 0.0


@dataclass(slots=True)
class Findings:
    """What came out; the names are explained above."""

    verdict: Verdict = field(default_factory=Verdict)
    early: set[int] = field(default_factory=set)
    again_after_reject: set[int] = field(default_factory=set)
    held_by_two: set[int] = field(default_factory=set)
    named_times: int = 0  # confirmed releases until a time
    rejected: int = 0
    lateness: list[float] = field(default_factory=list)  # s

    @property
    def ok(self) -> bool:
        return self.verdict.ok and not (self.early or self.again_after_reject or self.held_by_two)

    def wrong(self) -> dict[str, list[int]]:
        """Some records of each kind of failure."""
        found = {'early': self.early, 'again after reject': self.again_after_reject, 'held by two': self.held_by_two}
        beyond = {kind: sorted(records)[:EXAMPLES] for kind, records in found.items() if records}
        return {**self.verdict.examples, **beyond}


@dataclass(slots=True)
class Ending:
    """How somebody ended a delivery: released until `due` (0: no time named), or rejected (None)."""

    who: str
    at: float
    nth: int
    due: float | None
    exact: bool = False  # the due is an instant, not a delay
    confirmed: bool = False
    before: bool = False  # it was delivered again before it might
    again_at: float = 0.0  # when it was delivered next


@dataclass(slots=True)
class Life:
    """A record from its publication, or from a redrive or seek."""

    number: int = 0
    latest: float = -1.0
    dead_from: float | None = None  # from when on it may have been dead
    holders: dict[str, tuple[float, int]] = field(default_factory=dict)  # since when, delivery count
    endings: list[Ending] = field(default_factory=list)


class Promises:
    """Reads a group's history once; `findings` has what came out."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._checker = Checker()
        self._lives: dict[int, Life] = {}
        self._given: dict[tuple[str, int], int] = {}  # in which life somebody got the record
        self._confirmed: list[tuple[str, Entry]] = []
        self._ended: list[tuple[int, Ending]] = []
        self.findings = Findings()

    def read(self, history: Iterable[tuple[str, Entry]]) -> Findings:
        """All that was written down about the group, publishers included, in any order."""
        for who, entry in sorted(history, key=lambda told: told[1].at):
            if entry.what == 'confirmed':
                self._confirmed.append((who, entry))
            elif entry.what == 'delivered':
                self._on_delivered(who, entry)
            else:
                self._on_settling(who, entry)
                self._pass_on(who, entry)
        for who, entry in self._confirmed:
            ids = [self._id(record, self._life(record).number) for record in entry.records]
            self._checker.feed(who, [entry._replace(records=ids)])
        self._judge()
        return self.findings

    def _judge(self) -> None:
        found = self.findings
        found.verdict = self._checker.verdict()
        confirmed = {record for _, entry in self._confirmed for record in entry.records}
        found.verdict.unconfirmed = len(self._lives.keys() - confirmed)
        found.verdict.examples = {
            kind: [record % LIFE for record in records] for kind, records in found.verdict.examples.items()
        }
        for record, ending in self._ended:
            if not ending.confirmed:
                continue
            if ending.due is None:
                found.rejected += 1
                if ending.before:
                    found.again_after_reject.add(record)
                continue
            found.named_times += ending.due > 0
            if ending.before:
                found.early.add(record)
            elif ending.exact and ending.again_at and not _within(self._events.downs, ending.due, ending.due):
                found.lateness.append(max(0.0, ending.again_at - ending.due))

    # --- lives

    def _life(self, record: int) -> Life:
        return self._lives.setdefault(record, Life())

    def _id(self, record: int, life: int) -> int:
        return record + life * LIFE if record >= 0 else record

    def _begins_anew(self, life: Life, at: float) -> bool:
        if life.latest < 0:
            return False
        if _within(self._events.seeks, life.latest - UNSEEN_S, at):
            return True
        return life.dead_from is not None and _within(self._events.redrives, life.dead_from, at)

    def _on_delivered(self, who: str, entry: Entry) -> None:
        ids = []
        for record, nth in zip(entry.records, entry.deliveries, strict=True):
            life = self._life(record)
            if self._begins_anew(life, entry.at):
                life = self._lives[record] = Life(life.number + 1)
            else:
                self._check_endings(life, entry.at, nth)
                self._check_holders(record, life, who, entry.at, nth)
            life.holders[who] = entry.at, nth
            life.latest = entry.at
            if nth >= self._events.limit and life.dead_from is None:
                life.dead_from = entry.at
            self._given[who, record] = life.number
            ids.append(self._id(record, life.number))
        self._checker.feed(who, [entry._replace(records=ids)])

    def _check_endings(self, life: Life, at: float, nth: int) -> None:
        for ending in life.endings:
            if nth <= ending.nth:
                continue
            sooner = self._events.clock_set_s if ending.exact else 0.0
            if ending.due is None or at < ending.due - sooner - ROUNDING_S:
                ending.before = True
            elif nth == ending.nth + 1 and not ending.again_at:
                ending.again_at = at

    def _check_holders(self, record: int, life: Life, who: str, at: float, nth: int) -> None:
        for holder, (since, count) in list(life.holders.items()):
            if holder == who or count >= nth:
                continue
            del life.holders[holder]
            events = self._events
            surely = at < since + events.lock_s / 2 and events.killed.get(holder, at) >= at
            if surely and not _within(events.downs, since - UNSEEN_S, at):
                self.findings.held_by_two.add(record)

    # --- settling

    def _on_settling(self, who: str, entry: Entry) -> None:
        if entry.what in ('accepting', 'releasing', 'rejecting'):
            for record in entry.records:
                self._life(record).holders.pop(who, None)
        if entry.what in ('releasing', 'rejecting') and entry.deliveries:
            self._note_endings(who, entry)
        elif entry.what in ('released', 'rejected') and entry.deliveries:
            for record, nth in zip(entry.records, entry.deliveries, strict=True):
                for ending in self._life(record).endings:
                    if ending.who == who and ending.nth == nth:
                        ending.confirmed = True

    def _note_endings(self, who: str, entry: Entry) -> None:
        dues: Sequence[float | None] = entry.dues or [0.0] * len(entry.records)
        if entry.what == 'rejecting':
            dues = [None] * len(entry.records)
        for record, nth, due in zip(entry.records, entry.deliveries, dues, strict=True):
            life = self._life(record)
            if self._given.get((who, record)) != life.number:
                continue  # of a life that is over: it will be refused
            if due is None:
                life.dead_from = entry.at if life.dead_from is None else life.dead_from
            ending = Ending(who, entry.at, nth, due, entry.words == 'at')
            life.endings.append(ending)
            self._ended.append((record, ending))

    def _pass_on(self, who: str, entry: Entry) -> None:
        """To the checker, each record in the life that its subscriber knows of."""
        by_life: dict[int, list[int]] = defaultdict(list)
        for index, record in enumerate(entry.records):
            by_life[self._given.get((who, record), 0)].append(index)
        for life, indexes in by_life.items():
            ids = [self._id(entry.records[index], life) for index in indexes]
            counts = [entry.deliveries[index] for index in indexes] if entry.deliveries else ()
            self._checker.feed(who, [entry._replace(records=ids, deliveries=counts)])


def _within(spans: Iterable[Span], begun: float, ended: float) -> bool:
    return any(span.begun <= ended and span.ended >= begun for span in spans)
