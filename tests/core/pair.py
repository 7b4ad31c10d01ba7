"""The share partition and its reference side by side: every call goes to both, and they must agree on everything.

Strategy: `Pair` has a method for each call. It makes the call on both, compares what comes back, and checks the rules
that can be said about one call; `agree` compares all that can be seen afterwards. Whoever drives it (hypothesis, or
a list of calls in a test) chooses only what is called.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from tests.core import model
from tests.core.model import Batch, State

from acklog.broker.journal import event_codec
from acklog.core import events as ev
from acklog.core import operators, tokens
from acklog.core.share_partition import Ack, LogBatch, Reservation, ShareConfig, SharePartition
from acklog.core.tokens import TokenAck
from acklog.errors import InvalidRecordState

FLIGHT = (State.ACQUIRED, State.PENDING, State.DYING)
Ackn = tuple[int, int, Ack | tuple[Ack, ...], int | None, str | None]


P = ParamSpec('P')
R = TypeVar('R')


def traced(call: Callable[Concatenate[Pair, P], R]) -> Callable[Concatenate[Pair, P], R]:
    """Write down each call, so that a failure can be told."""

    def traced_call(self: Pair, *args: P.args, **kwargs: P.kwargs) -> R:
        self.trace.append(f'{self.now} {call.__name__}{args}')
        return call(self, *args, **kwargs)

    return traced_call


class Pair:
    def __init__(self, config: ShareConfig) -> None:
        self.config = self.first_config = config
        self.trace: list[str] = []
        self.core = SharePartition(config)
        backoff = config.backoff
        self.model = model.SharePartition(
            model.Config(
                config.lock_ms,
                config.attempts_limit,
                config.max_in_flight,
                backoff.delay,
                config.dead_letter_topic,
                config.waiting_max_ms,
            )
        )
        self.now = 1000
        self.log: list[Batch] = []
        self.log_start = 0
        self.log_end = 0
        self.history: list[ev.Event] = []  # all since the beginning
        self.open: list[Reservation] = []
        self.read: dict[Reservation, list[Batch]] = {}  # what is there to be read when it was reserved
        self.locks: dict[int, int] = {}  # number of an acquire here -> in the model
        self.accepted: set[int] = set()  # never to be delivered again, short of replay, seek and cut
        self.not_before: dict[int, int] = {}

    # -- the log -------------------------------------------------------------------------------------------------------

    @traced
    def append(self, size: int, missing: set[int], late: dict[int, int]) -> None:
        first = self.log_end
        offsets = range(first, first + size)
        records = frozenset(o for o in offsets if o - first not in missing)
        deliver_at = {first + i: self.now + ms for i, ms in late.items() if first + i in records}
        self.log.append(Batch(first, first + size - 1, records, deliver_at))
        self.log_end = first + size
        self.not_before.update(deliver_at)

    @traced
    def starts_at(self, offset: int) -> None:
        offset = min(offset, self.log_end)
        self.log = [batch for batch in self.log if batch.last >= offset]
        self.log_start = max(self.log_start, offset)
        self.same(self.core.log_starts_at(offset), self.model.log_starts_at(offset))

    @traced
    def cut(self, offset: int) -> None:
        """The log is opened anew, and shorter: nobody is reading it."""
        for reservation in list(self.open):
            self.cancel(reservation)
        offset = max(offset, self.log_start)
        self.log = [batch for batch in self.log if batch.last < offset]
        self.log_end = self.log[-1].last + 1 if self.log else min(self.log_end, self.log_start)
        self.core.cut(self.log_end)
        self.model.cut(self.log_end)
        self.accepted = {o for o in self.accepted if o < self.log_end}
        self.not_before = {o: due for o, due in self.not_before.items() if o < self.log_end}

    # -- comparing -----------------------------------------------------------------------------------------------------

    def same(self, ours: object, theirs: object) -> None:
        assert ours == theirs, f'core {ours}, model {theirs}'

    def agree(self) -> None:
        core, ref = self.core, self.model
        self.history += core.take_events()
        self.same((core.status.start, core.end, core.status.epoch), (ref.start, ref.end, ref.epoch))
        self.same(core.status.in_flight, ref.in_flight)
        deadline = ref.next_deadline()
        assert deadline is None or core.soonest <= deadline  # else nobody would call in time
        self.same(core.next_deadline(), deadline)
        self.same(core.status.totals(), (ref.lost_by_log, ref.expired))
        self.same(core.why_nothing(self.log_end), ref.why_nothing(self.log_end))
        numbers = {theirs: ours for ours, theirs in self.locks.items()}
        self.same(core.state.owed | core.state.dead, ev.BitMap64(sorted(ref.entries)))  # all others are done
        for offset in [*ref.entries, ref.end]:
            self.same((offset, *core.status.record(offset)), (offset, *self._record(offset, numbers)))
        self.same(
            core.status.counts(),
            tuple(len(ref.offsets(state)) for state in (State.AVAILABLE, State.WAITING, *FLIGHT, State.DEAD)),
        )
        held = {member: ours.held for member, ours in core.status.holders().items()}
        theirs: dict[str | None, int] = {}
        for offset in ref.offsets(State.ACQUIRED):
            member = ref.entries[offset].member
            theirs[member] = theirs.get(member, 0) + 1
        self.same(held, theirs)
        waiting = [entry for offset, entry in sorted(ref.entries.items()) if entry.state is State.WAITING]
        for times, among in (
            (core.state.waiting.named, [entry.named for entry in waiting]),
            (core.state.waiting.limited, [entry.limited for entry in waiting]),
        ):
            self.same([times.due_of(offset) is not None for offset in core.state.waiting.offsets], among)
        self.same(core.status.dues(core.state.waiting.offsets), [entry.due for entry in waiting])
        dead = [(offset, entry) for offset, entry in sorted(ref.entries.items()) if entry.state is State.DEAD]
        self.same(
            core.status.deaths(core.status.dead()),
            [(offset, e.reason, e.words, e.died, e.attempts, e.member or '') for offset, e in dead],
        )
        moving = ref.offsets(State.WAITING, State.DEAD, *FLIGHT)
        self.same(core.status.moving_from, min(moving, default=None))
        self.same(core.status.kept_from, min(ref.entries, default=ref.end))
        self._sound()

    def _record(self, offset: int, numbers: dict[int, int]) -> tuple[object, ...]:
        entry = self.model.entries.get(offset)
        if entry is None:
            return ('not taken' if offset >= self.model.end else 'done', 0, 0, 0, *[None] * 9)
        acquired, pending = entry.state is State.ACQUIRED, entry.state is State.PENDING
        buried = entry.state in (State.DYING, State.DEAD)
        return (
            entry.state.value,
            entry.deliveries,
            entry.attempts,
            entry.leaves,
            entry.member if acquired or pending else entry.member or '' if buried else None,
            numbers[entry.lock] if acquired else None,
            entry.lock_until if acquired else None,
            entry.due if entry.state is State.WAITING else None,
            entry.deferred if acquired or pending else None,
            entry.reason,
            entry.words,
            entry.died,
            entry.since if acquired else None,
        )

    def _sound(self) -> None:
        """What holds after every call."""
        core, limit = self.core, self.config.attempts_limit
        assert core.status.start <= core.end
        assert not self.accepted.intersection(self.model.entries)  # rule 4
        for offset, entry in self.model.entries.items():
            assert entry.attempts <= entry.deliveries
            assert limit is None or entry.attempts < limit or core.status.record(offset).state in ('dead', 'dying')
        deadline = core.next_deadline()
        assert deadline is None or deadline >= core.state.soonest

    # -- time and restarts ---------------------------------------------------------------------------------------------

    @traced
    def time(self, ms: int) -> None:
        self.now += ms
        self.core.advance(self.now)
        self.model.advance(self.now)

    @traced
    def step_clock(self, by: int) -> None:
        """Somebody set the wall clock, forward or back."""
        self.time(0)
        self.history += [*self.core.take_events(), self.core.clock_stepped(self.now, by)]
        for offset in self.model.entries.keys() & self.not_before.keys():
            entry = self.model.entries[offset]
            if entry.state is not State.WAITING:
                self.not_before[offset] = 0  # it has come
            elif not entry.named:
                self.not_before[offset] += by
        self.model.clock_stepped(by)
        self.now += by
        self.time(0)

    @traced
    def restart(self, session_ms: int, whole_history: bool) -> None:
        """Everything that is not in the journal is gone."""
        self.history += self.core.take_events()
        events = self.history if whole_history else list(self.core.snapshot())
        data = [event_codec.encode([event]) for event in events] if whole_history else [event_codec.encode(events)]
        self.core = SharePartition(self.config)
        for part in data:
            for event in event_codec.decode(part):
                self.core.fold(event)
        self.open, self.read = [], {}
        held = self.model.offsets(State.ACQUIRED)
        self.core.restarted(self.now, session_ms)
        self.model.restarted(self.now, session_ms)
        self.time(0)
        self.same([o for o in held if self.core.status.record(o).state == 'acquired'], held)  # rule 7

    # -- acquire -------------------------------------------------------------------------------------------------------

    @traced
    def reserve(self, member: str, count: int, strict: bool) -> Reservation | None:
        self.model.advance(self.now)
        reservation = self.core.reserve(self.now, member, count, strict, self.log_end)
        if reservation is not None:
            assert len(reservation.offsets) <= count
            for other in self.open:
                assert other.offsets.isdisjoint(reservation.offsets)
                assert other.tail is None or reservation.tail is None
            self.open.append(reservation)
            wanted = reservation.wanted
            self.read[reservation] = [
                batch
                for batch in self.log
                if any(batch.first <= last and first <= batch.last for first, last in wanted)
                or (reservation.tail is not None and batch.last >= reservation.tail)
            ]
        return reservation

    @traced
    def cancel(self, reservation: Reservation) -> None:
        self.core.release_reservation(reservation)
        self._closed(reservation)

    def _closed(self, reservation: Reservation) -> None:
        self.open.remove(reservation)
        del self.read[reservation]

    @traced
    def finish(self, reservation: Reservation, batches: int) -> None:
        """Acquire what was read, whatever happened meanwhile: the first so many batches."""
        read, strict = self.read[reservation][:batches], reservation.strict
        self.model.advance(self.now)
        before, end, in_flight = {**self.model.entries}, self.model.end, self.model.in_flight
        available = {o for o, entry in before.items() if entry.state is State.AVAILABLE}
        others = {o for other in self.open if other is not reservation for o in other.offsets}
        got = self.core.acquire(self.now, reservation, [_for_core(batch) for batch in read])
        self._closed(reservation)
        taken = [(o, deliveries) for first, last, deliveries in got.ranges for o in range(first, last + 1)]
        offsets = [o for o, _ in taken]
        there = {o for batch in read for o in batch.records}
        assert offsets == sorted(set(offsets))
        assert set(offsets) <= there
        assert not others.intersection(offsets)
        assert all(o in available for o in offsets if o < end)
        if self.core.end > end:
            assert reservation.tail is not None
            assert self.core.end <= max(batch.last + 1 for batch in read)
        if strict:
            assert len(offsets) <= min(reservation.count, max(0, self.config.max_in_flight - in_flight))
        passed = {o for batch in self.log for o in batch.records if end <= o < self.core.end}
        assert passed <= there  # nothing was jumped over
        self._may_go_out(offsets)
        self.same(taken, self.model.take(self.now, reservation.member, offsets, self.core.end, read))
        assert all(
            self.model.entries[o].state is not State.AVAILABLE
            for o in range(end, self.core.end)
            if o in self.model.entries
        )
        self._locked(got.lock, got.until)

    def _locked(self, lock: int | None, until: int) -> None:
        if lock is not None:
            assert lock not in self.locks
            assert until == self.now + self.config.lock_ms
            self.locks[lock] = self.model.locks

    def _may_go_out(self, offsets: list[int]) -> None:
        limit = self.config.attempts_limit
        attempts = [self.model.entries[o].attempts if o in self.model.entries else 0 for o in offsets]
        assert not any(limit and 0 < n == limit - 1 for n in attempts) or len(offsets) == 1  # rule 13
        assert not self.accepted.intersection(offsets)  # rule 4
        assert all(self.not_before.get(o, 0) <= self.now for o in offsets)  # rule 5

    @traced
    def acquire(self, member: str, count: int, strict: bool, batches: int) -> None:
        """All three steps at once; of what is to be read, so many batches are. Exactly as the reference, if nobody else
        has a reservation."""
        alone = not self.open
        reservation = self.reserve(member, count, strict)
        if reservation is None:
            if alone:
                end = self.model.end
                self.same([], self.model.acquire(self.now, member, count, self.log, strict))
                assert end == self.model.end
            return
        if not alone:
            self.finish(reservation, batches)
            return
        whole, read = batches >= len(self.read[reservation]), self.read[reservation][:batches]
        got = self.core.acquire(self.now, reservation, [_for_core(batch) for batch in read])
        self._closed(reservation)
        taken = [(o, deliveries) for first, last, deliveries in got.ranges for o in range(first, last + 1)]
        self._may_go_out([o for o, _ in taken])
        log = self.log if whole else read  # if nothing was left out, the reference may look at everything
        self.same(taken, self.model.acquire(self.now, member, count, log, strict))
        self._locked(got.lock, got.until)

    # -- acknowledge ---------------------------------------------------------------------------------------------------

    @traced
    def acknowledge(self, member: str, acks: list[Ackn], at: int | None, lock: int | None, transaction: bool) -> None:
        self.model.advance(self.now)
        before = {o: (entry.state, entry.member) for o, entry in self.model.entries.items()}
        full = [(first, last, kinds, at if when is None else when, words) for first, last, kinds, when, words in acks]
        ours = [_ack(*ack) for ack in acks]
        try:
            self.model.acknowledge(
                self.now, member, full, lock=None if lock is None else self.locks[lock], transaction=transaction
            )
        except InvalidRecordState:
            refused = True
        else:
            refused = False
        try:
            self.core.acknowledge(self.now, member, ours, at=at, lock=lock, transaction=transaction)
        except InvalidRecordState:
            assert refused, f'core refused {acks}'
            return  # `agree` sees that nothing has changed (rule 3)
        assert not refused, f'core accepted {acks}'
        for first, last, kinds, when, _ in full:
            for offset in range(first, last + 1):
                if offset in before:
                    assert before[offset] == (State.ACQUIRED, member)
                    kind = kinds[offset - first] if isinstance(kinds, tuple) else kinds
                    self._settled(offset, kind, when, transaction)

    def _settled(self, offset: int, kind: Ack, at: int | None, transaction: bool) -> None:
        if transaction:
            return
        if kind in (Ack.ACCEPT, Ack.GAP):
            self.accepted.add(offset)
        elif kind is Ack.RELEASE and at is not None and self.model.entries[offset].state is State.WAITING:
            self.not_before[offset] = at if at > 0 else self.now - at

    @traced
    def settle(self, acks: list[tuple[int, int, Ack, int | None, str | None]]) -> None:
        """By locks, as the core numbers them."""
        self.model.advance(self.now)
        theirs = [(offset, self.locks[lock], *rest) for offset, lock, *rest in acks]
        said = self.model.settle(self.now, theirs)
        self.same(tokens.settle(self.core, self.now, [TokenAck(*ack) for ack in acks]), said)
        for (offset, _, kind, at, _), outcome in zip(acks, said, strict=True):
            if outcome == 'ok' and offset not in self.model.entries and kind is Ack.ACCEPT:
                self.accepted.add(offset)
            elif outcome == 'ok' and kind is Ack.RELEASE and at is not None:
                entry = self.model.entries.get(offset)
                due = at if at > 0 else self.now - at
                if entry is not None and entry.state is State.WAITING and entry.due == due:
                    self.not_before[offset] = due

    @traced
    def end_transaction(self, member: str, commit: bool) -> None:
        pending = self.model.offsets(State.PENDING)
        self.core.end_transaction(self.now, member, commit)
        self.model.end_transaction(self.now, member, commit)
        if commit:
            self.accepted.update(o for o in pending if o not in self.model.entries)

    @traced
    def defer(self, offset: int, at: int, deliveries: int | None) -> None:
        errors = []
        for partition in (self.core, self.model):
            try:
                partition.defer(self.now, offset, at, deliveries)
                errors.append(False)
            except InvalidRecordState:
                errors.append(True)
        self.same(*errors)

    # -- members and operators -----------------------------------------------------------------------------------------

    @traced
    def gone(self, member: str, clean: bool) -> None:
        for partition in (self.core, self.model):
            (partition.left if clean else partition.lost)(self.now, member)
        assert not self.core.status.held_by(member)

    @traced
    def unsent(self, lock: int, offsets: range) -> None:
        self.same(self.core.unsent(self.now, lock, offsets), self.model.unsent(self.now, self.locks[lock], offsets))

    @traced
    def spare(self, lock: int, offsets: range) -> None:
        self.same(self.core.spare(self.now, lock, offsets), self.model.spare(self.now, self.locks[lock], offsets))

    @traced
    def dead_letters(self, offsets: range) -> None:
        dying = [o for o in self.model.offsets(State.DYING) if o in offsets]
        self.same([o for o in self.core.status.dying() if o in offsets], dying)
        self.core.dead_letters_written(offsets)
        for offset in dying:
            self.model.dead_letter_written(offset)

    @traced
    def redrive(self, offsets: range, every: int | None = None) -> None:
        """At once, or one each so many ms."""
        due = None if every is None else lambda number: self.now + every * (number + 1)
        dues = None if due is None else lambda count: array('q', [due(number) for number in range(count)])
        for number, offset in enumerate(sorted(set(offsets) & set(self.model.offsets(State.DEAD)))):
            self.not_before[offset] = 0 if due is None else due(number)
        self.same(operators.redrive(self.core, offsets, dues), self.model.redrive(offsets, due))

    @traced
    def expire_dead(self, before: int) -> None:
        self.same(operators.expire_dead(self.core, before), self.model.expire_dead(before))

    @traced
    def discard(self, offsets: range) -> None:
        self.same(operators.discard(self.core, offsets), self.model.discard(offsets))

    @traced
    def give_up(self, offsets: range) -> None:
        self.same(operators.give_up(self.core, self.now, iter(offsets)), self.model.give_up(self.now, offsets))

    @traced
    def move(self, offsets: range, due: int) -> None:
        self.model.advance(self.now)
        self.not_before.update(dict.fromkeys(set(offsets) & set(self.model.offsets(State.WAITING)), due))
        self.same(operators.move(self.core, self.now, offsets, due), self.model.move(self.now, offsets, due))

    @traced
    def replay(self, first: int, last: int) -> None:
        first = max(first, self.log_start)
        log = [batch for batch in self.log if batch.first <= last and first <= batch.last]
        before = set(self.model.entries)
        self.same(
            operators.replay(self.core, first, last, [_for_core(b) for b in log]), self.model.replay(first, last, log)
        )
        new = set(self.model.entries) - before
        self.accepted -= new
        for offset in new:
            self.not_before.pop(offset, None)

    @traced
    def seek(self, target: int) -> None:
        target = max(min(target, self.log_end), self.log_start)
        operators.seek(self.core, target)
        self.model.seek(target)
        self.accepted = {o for o in self.accepted if o < target}
        self.not_before = {o: due for batch in self.log for o, due in batch.deliver_at.items()}

    @traced
    def configure(self, lock_ms: int, max_in_flight: int, dead_letter_topic: bool, waiting_max_ms: int | None) -> None:
        """The limits change while records are out."""
        config = self.config = replace(
            self.config,
            lock_ms=lock_ms,
            max_in_flight=max_in_flight,
            dead_letter_topic=dead_letter_topic,
            waiting_max_ms=waiting_max_ms,
        )
        self.core.reconfigure(config)
        ref = self.model.config
        ref.waiting_max_ms = waiting_max_ms
        ref.lock_ms, ref.max_in_flight = config.lock_ms, config.max_in_flight
        ref.dead_letter_topic = config.dead_letter_topic


def _for_core(batch: Batch) -> LogBatch | tuple[int, int, bool]:
    if not batch.records:
        return (batch.first, batch.last, True)
    missing = set(range(batch.first, batch.last + 1)) - batch.records
    if not missing and not batch.deliver_at:
        return (batch.first, batch.last, False)
    gaps = ev.BitMap64(sorted(missing)) if missing else None
    return LogBatch(batch.first, batch.last, False, batch.deliver_at or None, gaps)


def _ack(first: int, last: int, kinds: Ack | tuple[Ack, ...], at: int | None, words: str | None) -> tuple[object, ...]:
    ours = bytes(kinds) if isinstance(kinds, tuple) else kinds
    if words is not None:
        return (first, last, ours, at, words)
    return (first, last, ours) if at is None else (first, last, ours, at)
