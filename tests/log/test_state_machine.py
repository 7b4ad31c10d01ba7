"""The local log driven at random beside a list, with crashes, power losses, full disks and failing syncs in between.

More of it: ACKLOG_LOG_EXAMPLES=2000 python -m pytest tests/log/test_state_machine.py --timeout 0
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.log.worlds import NOW, SYNCED, WRITTEN, LocalWorld, batch, contents

from acklog.errors import Damaged, Failed, Full, LogError, OutOfOrderSequence
from acklog.log.local import LocalLog
from acklog.log.seam import Appended, Durability, LogConfig
from acklog.log.sync import Syncer, Target
from acklog.wire.record_batch import records, spans

T = TypeVar('T')

APPENDS = st.tuples(st.integers(1, 4), st.integers(1, 120), st.sampled_from([WRITTEN, SYNCED]))  # records, bytes, how


class InTheLoop(Syncer):
    """Syncs between two turns of the loop instead of in a thread, so that a run can be repeated exactly."""

    def request(self, target: Target) -> bool:
        if target.sync_queued:
            return False
        target.sync_queued = True
        asyncio.get_running_loop().call_soon(self._do, target)
        return True

    def _do(self, target: Target) -> None:
        target.sync_queued = False
        try:
            covered, failure = target.sync(), None
        except OSError as error:
            covered, failure = -1, error
        asyncio.get_running_loop().call_soon(target.sync_done, covered, failure)


class Machine(RuleBasedStateMachine):
    """`values`: what the log must hold from offset 0 on, those below `start` included; `sure`: so many are on disk."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.values: list[str] = []
        self.start = self.sure = 0
        self.lowest = self.highest = 0  # where the start may be after an unclean end
        self.epoch = 0
        self.time = NOW
        self.count = 0
        self.refused: list[str] = []  # of the last turn that failed; they may be found after an unclean end
        self.produced: list[tuple[list[str], int]] = []  # batches of producer 7, of two records each: values, offset
        self.shaken = False  # a fault is set

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Make the call, and let what it has set off in threads come to its end, so that each run is like the other."""

        async def to_the_end() -> T:
            try:
                return await asyncio.wait_for(call, 10)
            finally:
                await self.forward()

        return self.loop.run_until_complete(to_the_end())

    @initialize(
        segment_bytes=st.sampled_from([200, 600, 5000]),
        interval=st.sampled_from([1, 100, 4096]),
        chance=st.integers(0, 99),
    )
    def begin(self, segment_bytes: int, interval: int, chance: int) -> None:
        self.chance = random.Random(chance)
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval, retention_ms=-1)
        self.run(self._begin())
        self.epoch = self.log.epoch

    async def _begin(self) -> None:
        self.world = LocalWorld()
        await self._open()

    async def _open(self) -> None:
        self.world.directory._shared.syncer = InTheLoop()
        log = await self.world.open(config=self.config)
        assert isinstance(log, LocalLog)
        self.log = log

    def new_values(self, count: int, size: int) -> list[str]:
        self.count += count
        return [f'{self.count - n}.'.ljust(size, 'x') for n in range(count)]

    # --- what callers do

    @rule(sizes=st.lists(APPENDS, min_size=1, max_size=5))
    def append(self, sizes: list[tuple[int, int, Durability]]) -> None:
        self.time += 1000
        turn = [(self.new_values(count, size), durability) for count, size, durability in sizes]

        async def all_at_once() -> list[Appended | BaseException]:
            calls = [self.log.append(batch(*values, at=self.time), self.time, how) for values, how in turn]
            return await asyncio.gather(*calls, return_exceptions=True)

        first = len(self.values)
        results = self.run(all_at_once())
        for result in results:
            assert isinstance(result, Appended) or (self.shaken and isinstance(result, Full | Failed)), result
        if all(isinstance(each, Appended) for each in results):
            for (values, how), result in zip(turn, results, strict=True):
                assert isinstance(result, Appended)
                assert (result.first, result.last) == (first, first + len(values) - 1)
                first = result.last + 1
                self.values += values
                if how is SYNCED:
                    self.sure = len(self.values)
            self.refused = []
        else:
            self.some_of([values for values, _ in turn], results)

    def some_of(self, turn: list[list[str]], results: list[Appended | BaseException]) -> None:
        """A turn that failed in part: what was answered is there, the rest may be, in order."""
        found = self.all_values()
        assert found[: len(self.values)] == self.values
        more = found[len(self.values) :]
        at = len(self.values)
        for values, result in zip(turn, results, strict=True):
            if more[: len(values)] == values:
                if isinstance(result, Appended):
                    assert result.first == at
                more = more[len(values) :]
                at += len(values)
            else:
                assert not isinstance(result, Appended)
        assert not more
        self.refused = [each for values in turn for each in values if each not in found]
        self.values = found

    @rule(size=st.integers(1, 60), how=st.sampled_from([WRITTEN, SYNCED]))
    def produce(self, size: int, how: Durability) -> None:
        """One batch of an idempotent producer, repeated until it is answered as clients do."""
        values = self.new_values(2, size)
        for _ in range(50):
            self.time += 1000
            try:
                data = batch(*values, at=self.time, producer=(7, 0, 2 * len(self.produced)))
                result = self.run(self.log.append(data, self.time, how))
                break
            except (Full, Failed):
                assert self.shaken
                self.heal()
        else:
            raise AssertionError('it does not come back')
        found = self.all_values()
        assert found[: len(self.values)] == self.values
        assert found[result.first :] == values
        self.values = found
        self.produced.append((values, result.first))
        self.refused = []
        if how is SYNCED:
            self.sure = len(self.values)

    @precondition(lambda self: bool(self.produced) and not self.shaken)
    @rule(how=st.sampled_from([WRITTEN, SYNCED]))
    def repeat(self, how: Durability) -> None:
        values, first = self.produced[-1]
        sequence = 2 * len(self.produced)
        data = batch(*values, at=self.time, producer=(7, 0, sequence - 2))
        assert self.run(self.log.append(data, self.time, how)) == Appended(first, first + 1, -1, True)
        if how is SYNCED:
            self.sure = max(self.sure, first + 2)
        try:
            self.run(self.log.append(batch('gap', producer=(7, 0, sequence + 1)), self.time, how))
        except OutOfOrderSequence:
            return
        raise AssertionError('a gap was let through')

    @rule(where=st.floats(0, 1), max_bytes=st.sampled_from([1, 300, 1 << 20]))
    def read(self, where: float, max_bytes: int) -> None:
        offset = self.start + round(where * (len(self.values) - self.start))
        try:
            found = self.run(contents(self.log, offset, max_bytes=max_bytes))
        except Damaged:  # a file could not be opened
            assert self.shaken
        else:
            assert found == self.values[offset:]

    @rule(where=st.floats(0, 1), length=st.integers(1, 80), max_bytes=st.sampled_from([1, 300, 1 << 20]))
    def read_up_to(self, where: float, length: int, max_bytes: int) -> None:
        offset = self.start + round(where * (len(self.values) - self.start))
        stop = min(offset + length, len(self.values))
        try:
            self.run(self._read_up_to(offset, stop, max_bytes))
        except Damaged:
            assert self.shaken

    async def _read_up_to(self, offset: int, stop: int, max_bytes: int) -> None:
        """Every read gives whole batches, from the one that holds the offset on, that begin below where it ends."""
        while offset < stop:
            data = (await self.log.read(offset, max_bytes, up_to=stop)).data
            found = spans(data)
            assert found[0].first <= offset <= found[0].last
            assert found[-1].first < stop
            assert len(found) == 1 or len(data) <= max_bytes
            assert found[-1].position + found[-1].size == len(data)
            values = [(record.value or b'').decode() for record in records(data)]
            assert values == self.values[found[0].first : found[-1].last + 1]
            offset = found[-1].last + 1

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        offset = self.start + round(where * (len(self.values) - self.start))
        try:
            assert self.run(self.log.truncate_before(offset)) == offset
        except (Full, Failed):
            self.half_cut(offset)
        else:
            if offset > self.start:
                self.lowest = self.highest = offset
            self.start = offset
            self.sure = max(self.sure, self.start)

    @rule(kept=st.integers(0, 2000), owed=st.floats(0, 2))
    def retain(self, kept: int, owed: float) -> None:
        keep_from = None if owed > 1 else self.start + round(owed * (len(self.values) - self.start))
        self.log.configure(LogConfig(self.config.segment_bytes, retention_bytes=kept, retention_ms=-1))
        self.time += 1000
        try:
            start = self.run(self.log.retain(self.time, keep_from))
        except (Full, Failed):
            self.half_cut(self.log.start)
        else:
            assert self.start <= start <= len(self.values)
            assert keep_from is None or start <= max(keep_from, self.start)
            self.start = start
            self.lowest = max(self.lowest, self.first_base())
            self.highest = max(self.highest, start)
            self.sure = max(self.sure, self.start)
        self.log.configure(self.config)

    def first_base(self) -> int:
        segments = self.log.store.segments
        return segments[0].base if segments else 0

    def half_cut(self, offset: int) -> None:
        """It failed: the start may have moved, or move at the next opening, if not moved back there."""
        assert self.shaken
        self.start = self.log.start
        self.highest = max(self.highest, offset, self.start)

    @rule()
    def flush(self) -> None:
        try:
            self.run(self.log.flush())
        except (Full, Failed):
            assert self.shaken
        else:
            self.sure = len(self.values)

    # --- what happens to them

    @rule(
        operation=st.sampled_from(['pwritev', 'fdatasync', 'open', 'truncate', 'rename', 'fsync_dir']),
        number=st.sampled_from([errno.EIO, errno.ENOSPC]),
        after=st.integers(0, 3),
    )
    def fault(self, operation: str, number: int, after: int) -> None:
        self.shaken = True
        self.world.files.fail(operation, number, '*/logs/log*', after=after)

    @rule(seed=st.integers(0, 99))
    def short_writes(self, seed: int) -> None:
        self.world.files.short_writes = random.Random(seed)

    @rule()
    def heal(self) -> None:
        self.world.files.heal()
        self.shaken = bool(self.log.store.sync_failed)

    async def forward(self) -> None:
        """Let a rewrite under way come to its end."""
        if hasattr(self, 'log'):
            await self.log._progress.quiet()
            if self.log._rewriting is not None:
                await asyncio.wait([self.log._rewriting])

    @rule()
    def restart(self) -> None:
        self.heal()
        if self.shaken:
            return  # it cannot be closed cleanly
        self.run(self._again(self.world.restart()))
        self.sure = len(self.values)
        assert self.log.epoch == self.epoch
        assert self.lowest <= self.log.start <= self.highest
        self.start = self.log.start
        self.lowest = max(self.lowest, self.first_base())

    @rule()
    def kill(self) -> None:
        lost = self.log.store.sync_failed
        self.run(self._again(self.world.kill()))
        self.epoch += 1
        self.after(must=self.sure if lost else len(self.values))

    @rule(partly=st.booleans())
    def power_loss(self, partly: bool) -> None:
        self.run(self._again(self.world.power_loss(self.chance if partly else None)))
        self.epoch += 1
        self.after(must=self.sure)
        self.lowest = self.highest = self.start

    async def _again(self, end: Coroutine[Any, Any, None]) -> None:
        await end
        await self._open()

    def after(self, must: int) -> None:
        """After an unclean end: at least `must` values are there."""
        assert self.log.epoch == self.epoch
        assert self.lowest <= self.log.start
        if self.log.start > self.highest:  # nothing was on disk but the name of a segment
            assert self.log.start == self.log.end
            assert self.sure <= self.highest
        self.start = self.log.start
        self.highest = max(self.highest, self.start)
        assert self.log.end >= must
        found = self.run(contents(self.log))
        assert found == [*self.values, *self.refused][self.start : self.start + len(found)]
        if len(self.values) < self.start + len(found):
            self.values = [*self.values[: self.start], *found]
        self.refused = []
        assert self.log.end == max(self.start + len(found), self.start)
        self.values = [*self.values[: self.log.end], *[''] * (self.log.end - len(self.values))]
        while self.produced and self.produced[-1][1] + 2 > len(self.values):
            self.produced.pop()
        self.shaken = bool(self.log.store.sync_failed)

    def look_at_start(self) -> None:
        """A start that could not be moved altogether may be found moved when the log is written anew."""
        if self.log.start != self.start:
            assert self.start < self.log.start <= self.highest
            self.start = self.log.start

    def all_values(self) -> list[str]:
        self.look_at_start()
        for _ in range(5):
            try:
                return [*self.values[: self.start], *self.run(contents(self.log))]
            except Damaged:
                assert self.shaken
        raise AssertionError('it cannot be read')

    @invariant()
    def the_same(self) -> None:
        if hasattr(self, 'log'):
            self.look_at_start()
            assert self.log.end == self.log.visible_end == len(self.values)

    def teardown(self) -> None:
        if hasattr(self, 'log'):
            self.world.files.heal()
            try:
                self.run(self.world.close())
            except LogError:
                assert self.shaken
        self.loop.close()


def test_against_a_list() -> None:
    examples = int(os.environ.get('ACKLOG_LOG_EXAMPLES', '60'))
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            report_multiple_bugs=False,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
