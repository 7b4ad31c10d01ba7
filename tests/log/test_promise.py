"""Promises: results whose waiters go on at once."""

import asyncio

import pytest

from acklog.broker.eager import Eager
from acklog.log.promise import Promise


def run(coroutine):
    ended = []
    Eager(coroutine, lambda result, error: ended.append((result, error)))
    return ended


async def test_who_waits_goes_on_within_set_result_in_order():
    promise = Promise(asyncio.get_running_loop())
    order = []

    async def wait(name):
        order.append((name, await promise))

    first, second = run(wait('a')), run(wait('b'))
    assert not promise.done()
    promise.set_result(7)
    assert order == [('a', 7), ('b', 7)]
    assert first == second == [(None, None)]
    assert run(wait('late')) == [(None, None)]
    assert order[-1] == ('late', 7)


async def test_tasks_wait_as_well():
    promise = Promise(asyncio.get_running_loop())

    async def wait():
        return await promise

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    promise.set_result('x')
    assert await asyncio.wait_for(waiting, 1) == 'x'
    assert await promise == 'x'


async def test_an_error_comes_in_the_next_turn():
    promise = Promise(asyncio.get_running_loop())

    async def wait():
        with pytest.raises(ValueError, match='no'):
            await promise
        return 'caught'

    ended, task = run(wait()), asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    promise.set_exception(ValueError('no'))
    assert ended == []
    assert await task == 'caught'
    assert ended == [('caught', None)]


async def test_a_waiter_that_fails_does_not_take_the_others_along():
    loop = asyncio.get_running_loop()
    reported = []
    loop.set_exception_handler(lambda _, context: reported.append(context['exception']))
    promise, called = Promise(loop), []

    def fail(_):
        raise KeyError('bug')

    promise.add_done_callback(fail)
    promise.add_done_callback(lambda _: called.append(1))
    promise.set_result(None)
    assert called == [1]
    assert [type(error) for error in reported] == [KeyError]
    loop.set_exception_handler(None)
