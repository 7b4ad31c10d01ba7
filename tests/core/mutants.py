"""Faults to seed into the core, and how: the source text of a module is changed as it is imported anew."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import acklog.broker

SOURCES = Path(acklog.__file__).parent
ANEW = ('acklog.core', 'acklog.broker.journal.event_codec', 'tests.core.machine', 'tests.core.pair', 'tests.core.model')


class Mutant(NamedTuple):
    fault: str
    module: str  # below acklog
    old: str  # occurs once
    new: str
    rare: bool = False  # found by a long run only


MUTANTS = [
    Mutant(
        'what waits comes a millisecond late',
        'core/due_times',
        'while recent and recent[0][0] <= now',
        'while recent and recent[0][0] < now',
    ),
    Mutant(
        'a lock runs out a millisecond late',
        'core/timeline',
        'is not None and first <= now:\n            heappop',
        'is not None and first < now:\n            heappop',
    ),
    Mutant(
        'a lock that ran out is no failure',
        'core/history',
        '        self.attempts.add(offsets)\n        self._untell(offsets)',
        '        if cause is not Cause.EXPIRED:\n            self.attempts.add(offsets)\n        self._untell(offsets)',
    ),
    Mutant(
        'one attempt too many',
        'core/failing',
        'attempts + 1 >= config.attempts_limit',
        'attempts >= config.attempts_limit',
    ),
    Mutant(
        'the backoff of one attempt less',
        'core/failing',
        'group, attempts + 1, now + ',
        'group, max(attempts, 1), now + ',
    ),
    Mutant(
        'a named time is overlooked when it was deferred',
        'core/failing',
        'if at is None and state.history.deferred',
        'if state.history.deferred',
    ),
    Mutant(
        'a deferral outlives its delivery',
        'core/history',
        '            self.leaves.add(offsets)\n        self._ended(offsets)\n',
        '            self.leaves.add(offsets)\n',
    ),
    Mutant(
        'the last attempt goes out with others',
        'core/acquire',
        'first, barrier = offsets.min(), last.min()',
        'first, barrier = offsets.min(), last.max()',
    ),
    Mutant(
        'the limit in flight is counted before it was used',
        'core/share_partition',
        'room = config.max_in_flight - state.in_flight',
        'room = config.max_in_flight',
    ),
    Mutant(
        'strict takes the batch whole',
        'core/acquire',
        'min(after, first + left) if selection.strict else after',
        'after',
    ),
    Mutant(
        'strict takes a batch of old ones whole',
        'core/acquire',
        'if not selection.strict:',
        'if selection.strict or True:',
    ),
    Mutant(
        'a gap in the log is delivered',
        'core/acquire',
        '    if missing:\n        ready -= missing',
        '    if missing and not selection.strict:\n        ready -= missing',
    ),
    Mutant(
        'two readers have the tail',
        'core/acquire',
        'tail = state.end if all(other.tail is None for other in state.reservations) else None',
        'tail = state.end',
    ),
    Mutant('a reservation survives a seek', 'core/acquire', ' or reservation.generation != state.generation', ''),
    Mutant(
        'a released reservation loses its offsets',
        'core/acquire',
        '        state.free |= reservation.offsets',
        '        state.free |= reservation.offsets if reservation.tail is None else BitMap64()',
    ),
    Mutant(
        'what an operator gave up stays reserved',
        'core/state',
        '            reservation.offsets -= offsets',
        '            pass',
    ),
    Mutant(
        'the tail goes on though the last attempt stopped it',
        'core/acquire',
        'if reservation.tail is not None and not stopped',
        'if reservation.tail is not None',
        rare=True,
    ),
    Mutant(
        'another member may acknowledge',
        'core/acknowledge',
        'held = state.locks.held.get(member)\n',
        'held = state.acquired()\n',
    ),
    Mutant('an older lock may acknowledge', 'core/locks', 'if lock.number == number', 'if lock.number >= number'),
    Mutant(
        'a range with records of others passes',
        'core/acknowledge',
        'here != state.owed.range_cardinality(first, after)',
        'here > state.owed.range_cardinality(first, after)',
    ),
    Mutant(
        'a range with dead ones passes',
        'core/acknowledge',
        'state.dead and state.dead.range_cardinality(first, after)',
        'False',
    ),
    Mutant(
        'a record is acknowledged twice in a request',
        'core/acknowledge',
        'if len(total) != count',
        'if len(total) > count',
    ),
    Mutant(
        'one kind counts for all',
        'core/acknowledge',
        'kinds.translate(_MASKS[kind])',
        'kinds.translate(_MASKS[kinds[0]])',
    ),
    Mutant(
        'a transaction that commits forgets release times',
        'core/settling',
        'if kind is Ack.RELEASE and at is not None',
        'if kind is Ack.REJECT and at is not None',
    ),
    Mutant(
        'leaving is always free',
        'core/share_partition',
        'if limit is not None and leaves >= limit',
        'if limit is not None and leaves > limit',
    ),
    Mutant(
        'renewing gives a new lock',
        'core/locks',
        'self._enter(Lock(lock.number, lock.member',
        'self._enter(Lock(lock.number + 1, lock.member',
    ),
    Mutant(
        'renewing some renews all',
        'core/locks',
        '            if len(part) == len(lock.offsets):\n                self._drop',
        '            if len(part) <= len(lock.offsets):\n                self._drop',
    ),
    Mutant(
        'the carry is lost',
        'core/counters',
        '            carry = rest\n',
        '            carry = rest if len(planes) < 2 else BitMap64()\n',
    ),
    Mutant(
        'redriven ones keep their attempts',
        'core/state',
        '        self.history.forget_death(offsets)\n        self.history.forget(offsets)\n',
        '        self.history.forget_death(offsets)\n',
    ),
    Mutant(
        'what is done keeps its counts',
        'core/apply',
        '    state.from_flight(offsets)\n    state.owed -= offsets\n    state.history.forget(offsets)',
        '    state.from_flight(offsets)\n    state.owed -= offsets',
    ),
    Mutant(
        'dead ones hold up the start',
        'core/state',
        '            self.owed -= offsets\n            self.dead |= offsets',
        '            self.dead |= offsets',
    ),
    Mutant(
        'the log cuts one too many',
        'core/apply',
        'above(state.owed, bound)',
        'above(state.owed, bound + 1)',
    ),
    Mutant(
        'a restart shortens locks',
        'core/locks',
        'instant for instant in self._deadlines.at if instant < until',
        'instant for instant in self._deadlines.at if instant != until',
    ),
    Mutant(
        'the clock moves named instants',
        'core/waiting',
        '        self.delayed.shift(by)',
        '        self.delayed.shift(by)\n        self.named.shift(by)',
    ),
    Mutant(
        'a snapshot forgets what is reserved',
        'core/snapshot',
        'pieces(state.all_free(), PIECE)',
        'pieces(state.free, PIECE)',
    ),
    Mutant(
        'a snapshot forgets leaves',
        'core/snapshot',
        "    yield from _counts('leaves', history.leaves)\n",
        '',
    ),
    Mutant(
        'a snapshot takes named instants for delays',
        'core/snapshot',
        'yield kept.KeptWaiting(piece, due, until)',
        'yield kept.KeptWaiting(piece, due, Until.DELAY)',
        rare=True,
    ),
    Mutant(
        'the journal keeps no deferral of a transaction',
        'broker/journal/event_codec',
        '    26: (ev.Deferred, (OFFSETS, INT, UNTIL)),',
        '    26: (lambda *event: ev.Deferred(ev.BitMap64(), *event[1:]), (OFFSETS, INT, UNTIL)),',
    ),
    Mutant(
        'moving leaves the old time',
        'core/due_times',
        'kept = [pair for pair in self._recent if pair[1] not in offsets]',
        'kept = self._recent',
    ),
    Mutant(
        'a record waits longer than it may',
        'core/failing',
        'elif due > latest:',
        'elif due > latest and until is Until.DELAY:',
    ),
    Mutant(
        'with a time for each, none waits too long',
        'core/failing',
        'if min(due) > now and max(due) <= latest',
        'if min(due) > now',
    ),
    Mutant(
        'what waited too long dies a millisecond late',
        'core/waiting',
        'if first is None or first > now',
        'if first is None or first >= now',
    ),
    Mutant(
        'words outlive their delivery',
        'core/history',
        '        self._untell(offsets)\n        if cause',
        '        if cause',
    ),
    Mutant(
        'a snapshot forgets words',
        'core/snapshot',
        'yield ev.Said(BitMap64(offsets), text)',
        'continue',
    ),
    Mutant(
        'a snapshot forgets who died when',
        'core/snapshot',
        'yield kept.KeptDeaths(offsets, at, member)',
        'pass',
    ),
    Mutant(
        'a dead one goes too soon',
        'core/burials',
        'in self._recent.items() if at < bound',
        'in self._recent.items() if at <= bound',
    ),
    Mutant(
        'redriven at a rate, all come at once',
        'core/apply',
        'state.wait(event.offsets, event.due, Until.DELAY)  # it follows from a rate',
        'state.wait(event.offsets, None, Until.DELAY)',
    ),
    Mutant(
        'the log loses without counting',
        'core/apply',
        'len(owed) + max(0, event.offset - state.end)',
        'len(owed)',
    ),
    Mutant(
        'the clock steps and delays stay',
        'core/waiting',
        '        self.delayed.shift(by)\n',
        '',
    ),
    Mutant(
        'the clock steps and a deferral by a delay stays',
        'core/apply',
        '    state.history.clock_stepped(event.by)\n',
        '',
        rare=True,
    ),
    Mutant(
        'a delay that a subscriber names is an instant',
        'core/failing',
        '(since - when, Until.DELAY)',
        '(since - when, Until.NAMED)',
    ),
    Mutant(
        'a restart takes back what had come when the clock was set back',
        'core/apply',
        '    state.come_due(event.now)  # by the clock as it was; live, all that was due then has been done\n',
        '',
        rare=True,
    ),
]


class _Changed(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, mutant: Mutant) -> None:
        super().__init__(name, str(SOURCES / f'{mutant.module}.py'))
        self.mutant = mutant

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        source = Path(self.path).read_text()
        assert source.count(self.mutant.old) == 1, f'{self.mutant.fault}: the text to change is not there once'
        return compile(source.replace(self.mutant.old, self.mutant.new), self.path, 'exec')


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = 'acklog.' + mutant.module.replace('/', '.')

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Changed(fullname, self.mutant), origin=str(SOURCES))


@contextmanager
def seeded(mutant: Mutant) -> Iterator[type]:
    """The state machine over a core that has that fault."""
    before = _forget()
    finder = _Finder(mutant)
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module('tests.core.machine').Machine
    finally:
        sys.meta_path.remove(finder)
        _forget()
        sys.modules.update(before)
        for name, module in before.items():
            parent, _, child = name.rpartition('.')
            setattr(sys.modules[parent], child, module)


def _forget() -> dict[str, ModuleType]:
    """Take the modules that are to be imported anew out of the way."""
    gone = {name: module for name, module in sys.modules.items() if name.startswith(ANEW)}
    for name in gone:
        del sys.modules[name]
        parent, _, child = name.rpartition('.')
        if parent in sys.modules and hasattr(sys.modules[parent], child):
            delattr(sys.modules[parent], child)
    return gone
