"""A hypothesis state machine over `Pair`: any calls in any order, everything compared after each.

Strategy: a call is ten bytes, read as digits that choose which call it is and what with (`Dice`). That makes a step
far cheaper than a rule with strategies for each argument, so that many more are made; what fails still shrinks to few
calls, and the trace that comes with it is written as calls. Choices lean towards what leads somewhere: records are
held, acknowledgements mostly fit, the log is rarely cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.core.model import State
from tests.core.pair import Ackn, Pair

from acklog.core.backoff import Backoff
from acklog.core.share_partition import Ack, ShareConfig

T = TypeVar('T')

BACKOFFS = [Backoff(), Backoff((10, 100)), Backoff((5, 10, 20, 40)), Backoff((0, 30), 50), Backoff((40,), 100)]
MEMBERS = 'aaabbc'
LONGEST = [None, 60, 20]  # ms that a record may wait
EARLIEST = 1_000  # ms, of the clock
WORDS = [None, 'not now', 'not today']


class Dice:
    """Choices out of bytes; all zeros choose the first of everything."""

    def __init__(self, code: bytes) -> None:
        self.rest = int.from_bytes(code, 'little')

    def below(self, bound: int) -> int:
        self.rest, result = divmod(self.rest, bound)
        return result

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def member(self) -> str:
        return self.pick(MEMBERS)

    def yes(self, of: int = 2) -> bool:
        return self.below(of) == of - 1

    def offsets(self, pair: Pair) -> range:
        """Mostly somewhere in the window."""
        low = pair.model.start if self.yes(4) else max(0, pair.model.end - 40)
        first = low + self.below(pair.model.end - low + 3)
        return range(first, first + 1 + self.below(7))

    def wait(self) -> int | None:
        return None if self.yes() else self.below(160) - 5

    def when(self, pair: Pair) -> int | None:
        """An instant, or a delay."""
        wait = self.wait()
        return None if wait is None else min(-wait, 0) if self.yes(3) else pair.now + wait


# -- the calls ---------------------------------------------------------------------------------------------------------


def append(pair: Pair, dice: Dice) -> None:
    for _ in range(1 + dice.below(3)):
        pair.append(1 + dice.below(5), set(), {})


def append_special(pair: Pair, dice: Dice) -> None:
    """With gaps, and records published for later."""
    size, gaps, late = 1 + dice.below(6), dice.below(64), dice.below(64)
    missing = {i for i in range(size) if gaps >> i & 1} if dice.yes(3) else set()
    pair.append(size, missing, {i: dice.below(50) * 4 for i in range(size) if late >> i & 1} if dice.yes() else {})


def acquire(pair: Pair, dice: Dice) -> None:
    count, strict, batches = 1 + dice.below(12), dice.yes(), dice.pick([1000, 1000, 1000, 1, 2, 3])
    pair.acquire(dice.member(), count, strict, batches)


def reserve(pair: Pair, dice: Dice) -> None:
    pair.reserve(dice.member(), 1 + dice.below(12), dice.yes())


def finish(pair: Pair, dice: Dice) -> None:
    if pair.open:
        pair.finish(dice.pick(pair.open), dice.pick([1000, 1000, 0, 1, 2]))


def cancel(pair: Pair, dice: Dice) -> None:
    if pair.open:
        pair.cancel(dice.pick(pair.open))


def acknowledge_held(pair: Pair, dice: Dice) -> None:
    """What somebody holds, mostly by its holder: mostly granted."""
    held = pair.model.offsets(State.ACQUIRED)
    if not held:
        return acquire(pair, dice)
    first = dice.pick(held)
    entry = pair.model.entries[first]
    assert entry.member is not None
    member = dice.pick([entry.member] * 9 + ['a'])
    mine = [o for o in held if pair.model.entries[o].member == entry.member and first <= o][: 1 + dice.below(10)]
    last, kinds = mine[-1], [dice.pick(list(Ack)) for _ in range(3)]
    forms: list[Callable[[], list[Ackn]]] = [
        lambda: [(first, last, kinds[0], None, None)],
        lambda: [(o, o, kinds[o % 3], None, None) for o in mine],
        lambda: [(first, last, tuple(kinds[o % 3] for o in range(first, last + 1)), None, 'it says')],
        lambda: [(o, o, kinds[0], pair.now + 10 * (o % 4), None) for o in mine],
        lambda: [(o, o, Ack.RELEASE, -o % 5 - 4 if o % 2 else pair.now + 10 * (o % 4), dice.pick(WORDS)) for o in mine],
        lambda: [(first, last, kinds[0], None, dice.pick(WORDS)), (last, last + dice.below(3), kinds[1], None, 'no')],
    ]
    acks = dice.pick([*forms[:1], *forms[:4], *forms])()
    numbers = [number for number, lock in pair.locks.items() if lock == entry.lock]
    lock = numbers[0] if dice.yes(4) else None
    pair.acknowledge(member, acks, dice.when(pair), lock, dice.yes(4))


def acknowledge_anything(pair: Pair, dice: Dice) -> None:
    """Mostly refused."""
    acks: list[Ackn] = []
    for _ in range(1 + dice.below(5)):
        offsets = dice.offsets(pair)
        acks.append((offsets[0] - dice.yes(20), offsets[-1], dice.pick(list(Ack)), None, None))
    pair.acknowledge(dice.member(), acks, dice.when(pair), None, dice.yes())


def settle(pair: Pair, dice: Dice) -> None:
    """By their locks: held ones, and others that were or never were."""
    held = pair.model.offsets(State.ACQUIRED)
    if not held or not pair.locks:
        return acquire(pair, dice)
    ours = {theirs: lock for lock, theirs in pair.locks.items()}
    acks = []
    for _ in range(1 + dice.below(4)):
        offset, kind = dice.pick(held), dice.pick([Ack.ACCEPT, Ack.RELEASE, Ack.REJECT, Ack.RENEW])
        lock = ours[pair.model.entries[offset].lock] if not dice.yes(3) else dice.pick(list(pair.locks))
        acks.append((offset, lock, kind, dice.when(pair) if kind is Ack.RELEASE else None, dice.pick(WORDS)))
    pair.settle(acks)
    if dice.yes(3):
        pair.settle(acks)


def accept_all(pair: Pair, dice: Dice) -> None:
    """Everything a member holds and what is between: refused if that is another's."""
    held = pair.core.status.held_by(member := dice.member())
    if held:
        pair.acknowledge(member, [(held[0][0], held[-1][1], Ack.ACCEPT, None, None)], None, None, False)


def end_transaction(pair: Pair, dice: Dice) -> None:
    pair.end_transaction(dice.member(), dice.yes())


def defer(pair: Pair, dice: Dice) -> None:
    held = pair.model.offsets(State.ACQUIRED)
    offset = dice.pick(held) if held and not dice.yes(5) else dice.offsets(pair)[0]
    when = dice.when(pair)
    pair.defer(offset, pair.now if when is None else when, dice.pick([None, 1, 2]))


def time(pair: Pair, dice: Dice) -> None:
    pair.time(dice.below(60))


def deadline(pair: Pair, dice: Dice) -> None:
    """Exactly when something falls due, or a millisecond off."""
    due = pair.core.next_deadline()
    if due is not None:
        pair.time(max(0, due + dice.pick([0, 0, -1, 1]) - pair.now))


def gone(pair: Pair, dice: Dice) -> None:
    pair.gone(dice.pick([*pair.core.status.holders(), 'a', 'b']), dice.yes())


def unsent(pair: Pair, dice: Dice) -> None:
    """The answer to an acquire, mostly one whose records are still held, gets lost, or has not room for all."""
    if not pair.locks:
        return acquire(pair, dice)
    held = {entry.lock for entry in pair.model.entries.values() if entry.state is State.ACQUIRED}
    numbers = [number for number, theirs in pair.locks.items() if theirs in held]
    lock = dice.pick(numbers if numbers and not dice.yes(4) else list(pair.locks))
    offsets = range(pair.model.end) if dice.yes() else dice.offsets(pair)
    (pair.spare if dice.yes(3) else pair.unsent)(lock, offsets)


def dead_letters(pair: Pair, dice: Dice) -> None:
    pair.dead_letters(range(dice.offsets(pair)[0], pair.model.end))


def redrive(pair: Pair, dice: Dice) -> None:
    pair.redrive(range(dice.offsets(pair)[0], pair.model.end), dice.pick([None, None, 10, 0]))


def expire_dead(pair: Pair, dice: Dice) -> None:
    dead = pair.model.offsets(State.DEAD)
    died = pair.model.entries[dice.pick(dead)].died if dead else None
    pair.expire_dead((pair.now if died is None else died) + dice.below(2))


def discard(pair: Pair, dice: Dice) -> None:
    pair.discard(dice.offsets(pair))


def give_up(pair: Pair, dice: Dice) -> None:
    pair.give_up(dice.offsets(pair))


def move(pair: Pair, dice: Dice) -> None:
    pair.move(dice.offsets(pair), pair.now + dice.below(200) - 5)


def replay(pair: Pair, dice: Dice) -> None:
    offsets = dice.offsets(pair)
    pair.replay(offsets[0], offsets[-1])


def restart(pair: Pair, dice: Dice) -> None:
    pair.restart(dice.pick([45, 0]), dice.yes())


def step_clock(pair: Pair, dice: Dice) -> None:
    pair.step_clock(max(dice.below(500) - 250, EARLIEST - pair.now))


def log_starts(pair: Pair, dice: Dice) -> None:
    pair.starts_at(dice.offsets(pair)[0])


def cut(pair: Pair, dice: Dice) -> None:
    pair.cut(dice.offsets(pair)[0])


def seek(pair: Pair, dice: Dice) -> None:
    pair.seek(dice.offsets(pair)[0])


def configure(pair: Pair, dice: Dice) -> None:
    pair.configure(dice.pick([30, 50, 90]), dice.pick([1000, 10, 3]), dice.yes(), dice.pick(LONGEST))


WEIGHTS = {
    append: 10,
    append_special: 6,
    acquire: 16,
    acknowledge_held: 22,
    acknowledge_anything: 4,
    settle: 6,
    accept_all: 3,
    time: 8,
    deadline: 8,
    reserve: 6,
    finish: 7,
    cancel: 2,
    end_transaction: 4,
    defer: 6,
    gone: 7,
    unsent: 4,
    dead_letters: 3,
    redrive: 3,
    discard: 1,
    expire_dead: 2,
    give_up: 4,
    move: 4,
    replay: 2,
    restart: 5,
    step_clock: 2,
    log_starts: 1,
    cut: 1,
    seek: 2,
    configure: 1,
}
CALLS = [call for call, weight in WEIGHTS.items() for _ in range(weight)]

CODE = st.binary(min_size=10, max_size=10)
LONG = bool(os.environ.get('ACKLOG_LONG'))
SETTINGS = settings(
    max_examples=30_000 if LONG else 500,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Machine(RuleBasedStateMachine):
    """At most 25 steps of up to 8 calls."""

    pair: Pair

    @initialize(code=CODE)
    def begin(self, code: bytes) -> None:
        dice = Dice(code)
        limit, flight = dice.pick([2, 3, None, 5, 1, 2, 1]), dice.pick([1000, 10, 1000, 3])
        self.pair = Pair(ShareConfig(50, limit, flight, dice.pick(BACKOFFS), dice.yes(), dice.pick(LONGEST)))
        append(self.pair, dice)

    @rule(codes=st.lists(CODE, min_size=1, max_size=8))
    def calls(self, codes: list[bytes]) -> None:
        for code in codes:
            dice = Dice(code)
            try:
                dice.pick(CALLS)(self.pair, dice)
                self.pair.agree()
            except Exception:
                note('\n'.join([str(self.pair.first_config), *self.pair.trace]))
                raise
