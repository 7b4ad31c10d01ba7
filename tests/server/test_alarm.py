"""One call after a time: by the operating system's most exact means, and by asyncio's."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from acklog.server import alarm as alarms
from acklog.server.alarm import Alarm, LoopAlarm, open_alarm

KINDS: list[Any] = [LoopAlarm]
if sys.platform == 'linux':
    KINDS.append(alarms.ExactAlarm)


class Calls:
    """An alarm, and how long after the beginning it has called (s)."""

    def __init__(self, kind: Callable[..., Alarm]) -> None:
        self.begun = time.monotonic()
        self.after: list[float] = []
        self.alarm = kind(asyncio.get_running_loop(), lambda: self.after.append(time.monotonic() - self.begun))


@pytest.fixture(params=KINDS)
async def calls(request: pytest.FixtureRequest) -> AsyncIterator[Calls]:
    calls = Calls(request.param)
    yield calls
    calls.alarm.close()


@pytest.mark.parametrize('seconds', [-1e9, -0.001, 0, 1e-9, 0.0123, 0.04])
async def test_it_calls_once_and_never_early(calls: Calls, seconds: float) -> None:
    calls.alarm.set(seconds)
    await asyncio.sleep(0.1)
    assert [after >= seconds for after in calls.after] == [True]


async def test_what_was_set_last_counts(calls: Calls) -> None:
    calls.alarm.set(0.01)
    calls.alarm.set(60)
    await asyncio.sleep(0.03)
    assert calls.after == []
    calls.alarm.set(1e9)  # 31 years
    calls.alarm.set(0.01)
    await asyncio.sleep(0.1)
    assert len(calls.after) == 1


async def test_what_is_set_anew_when_it_is_due_is_not_called(calls: Calls) -> None:
    calls.alarm.set(0.001)
    asyncio.get_running_loop().call_soon(calls.alarm.set, 0.05)  # before it is seen to be due
    time.sleep(0.01)  # noqa: ASYNC251 - the loop is to see both in one turn
    await asyncio.sleep(0.1)
    assert [after >= 0.05 for after in calls.after] == [True]


@pytest.mark.parametrize('how', ['clear', 'close'])
async def test_no_more_calls(calls: Calls, how: str) -> None:
    calls.alarm.set(0.01)
    getattr(calls.alarm, how)()
    await asyncio.sleep(0.03)
    assert calls.after == []
    calls.alarm.set(0.01)
    await asyncio.sleep(0.05)
    assert len(calls.after) == (1 if how == 'clear' else 0)


async def test_closing_leaves_no_descriptor_open() -> None:
    before = os.listdir('/dev/fd')
    for kind in KINDS:
        calls = Calls(kind)
        calls.alarm.close()
        calls.alarm.close()
    assert os.listdir('/dev/fd') == before


class Library:
    """A C library whose calls give -1."""

    def timerfd_create(self, *_: int) -> int:
        return -1


def no_library(*_: object, **__: object) -> None:
    raise OSError('no library')


@pytest.mark.skipif(sys.platform != 'linux', reason='there is none')
@pytest.mark.parametrize('library', [no_library, lambda *_, **__: Library(), lambda *_, **__: object()])
async def test_without_a_timer_of_the_operating_system(monkeypatch: pytest.MonkeyPatch, library: Any) -> None:
    monkeypatch.setattr(ctypes, 'CDLL', library)
    called = asyncio.Event()
    alarm = open_alarm(asyncio.get_running_loop(), called.set)
    assert isinstance(alarm, LoopAlarm)
    alarm.set(0.001)
    await asyncio.wait_for(called.wait(), 1)


@pytest.mark.skipif(sys.platform != 'linux', reason='there is none')
async def test_where_there_is_one_it_serves() -> None:
    alarm = open_alarm(asyncio.get_running_loop(), lambda: None)
    assert isinstance(alarm, alarms.ExactAlarm)
    alarm.close()


@pytest.mark.skipif(sys.platform != 'linux', reason='there is none')
async def test_a_loop_that_cannot_watch_another_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOSPC, 'no more can be watched')

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, 'add_reader', refuses)
    before = os.listdir('/dev/fd')
    assert isinstance(open_alarm(loop, lambda: None), LoopAlarm)
    assert os.listdir('/dev/fd') == before
