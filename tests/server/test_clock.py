"""The one clock and the one timer."""

import asyncio
import time

from acklog.server.clock import Clock, LoopTimer


def test_shows_wall_time_in_milliseconds():
    assert abs(Clock()() - time.time() * 1000) < 50


def test_does_not_follow_a_stepped_wall_clock(monkeypatch):
    clock = Clock()
    before = clock()
    monkeypatch.setattr(time, 'time_ns', lambda: 0)
    assert 0 <= clock() - before < 1000


def test_is_never_below_what_was_journalled():
    clock = Clock()
    later = clock() + 3_600_000
    clock.not_below(later)
    assert later <= clock() < later + 1000
    clock.not_below(later - 1_000_000)
    assert later <= clock()


async def test_calls_in_the_order_of_times_never_early():
    clock = Clock()
    timer = LoopTimer(clock, asyncio.get_running_loop())
    calls, begin = [], clock()
    for ms in (30, 10, 20, 0, -5):
        timer.at(begin + ms, lambda ms=ms: calls.append((ms, clock() - begin)))
    await asyncio.sleep(0.06)
    assert [ms for ms, _ in calls] == [-5, 0, 10, 20, 30]
    assert all(came >= ms for ms, came in calls)


async def test_a_cancelled_call_does_not_come():
    clock = Clock()
    timer = LoopTimer(clock, asyncio.get_running_loop())
    calls = []
    first = timer.at(clock() + 5, lambda: calls.append('first'))
    timer.at(clock() + 10, lambda: calls.append('second'))
    first.cancel()
    await asyncio.sleep(0.03)
    assert calls == ['second']


async def test_a_call_may_ask_for_another():
    clock = Clock()
    timer = LoopTimer(clock, asyncio.get_running_loop())
    calls = []

    def again():
        calls.append(clock())
        if len(calls) < 3:
            timer.at(clock() + 2, again)

    timer.at(clock(), again)
    await asyncio.sleep(0.05)
    assert len(calls) == 3
    assert calls[2] - calls[0] >= 4


async def test_stop_forgets_all_calls():
    clock = Clock()
    timer = LoopTimer(clock, asyncio.get_running_loop())
    calls = []
    timer.at(clock() + 5, lambda: calls.append(1))
    timer.stop()
    await asyncio.sleep(0.02)
    assert calls == []


async def test_a_call_that_asks_for_a_late_one_does_not_delay_those_between():
    clock = Clock()
    timer = LoopTimer(clock, asyncio.get_running_loop())
    calls, begin = [], clock()
    timer.at(begin + 5, lambda: timer.at(begin + 10_000, lambda: calls.append('late')))
    timer.at(begin + 10, lambda: calls.append('between'))
    await asyncio.sleep(0.04)
    assert calls == ['between']
    timer.stop()
