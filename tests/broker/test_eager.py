"""Coroutines without a task: they run at once, wait where they must, and end with their result or error."""

import asyncio

import pytest

from acklog.broker.eager import AT_A_TIME, Eager, Pace, concurrently


def run(coroutine):
    ended = []
    Eager(coroutine, lambda result, error: ended.append((result, error)))
    return ended


async def test_what_never_waits_has_ended_at_once():
    async def answer():
        return 7

    assert run(answer()) == [(7, None)]


async def test_waits_for_a_future_and_goes_on():
    future = asyncio.get_running_loop().create_future()

    async def answer():
        return await future + 1

    ended = run(answer())
    assert ended == []
    future.set_result(1)
    await asyncio.sleep(0)
    assert ended == [(2, None)]


async def test_an_error_of_the_future_is_raised_in_the_coroutine():
    future = asyncio.get_running_loop().create_future()

    async def answer():
        try:
            await future
        except ValueError:
            return 'caught'

    ended = run(answer())
    future.set_exception(ValueError())
    await asyncio.sleep(0)
    assert ended == [('caught', None)]


async def test_an_error_of_the_coroutine_goes_to_done():
    async def answer():
        raise ValueError('no')

    [(result, error)] = run(answer())
    assert result is None
    assert isinstance(error, ValueError)


async def test_sleep_of_nothing_and_locks_work():
    lock = asyncio.Lock()
    order = []

    async def answer(name):
        async with lock:
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)

    first, second = run(answer('a')), run(answer('b'))
    for _ in range(6):
        await asyncio.sleep(0)
    assert order == ['a', 'a', 'b', 'b']
    assert first == second == [(None, None)]


@pytest.mark.parametrize('order', [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
async def test_concurrently_starts_in_order_and_returns_in_order(order):
    futures = [asyncio.get_running_loop().create_future() for _ in range(3)]
    started = []

    async def wait(index):
        started.append(index)
        return await futures[index]

    task = asyncio.ensure_future(concurrently([wait(index) for index in range(3)]))
    await asyncio.sleep(0)
    assert started == [0, 1, 2]
    for index in order:
        futures[index].set_result(f'r{index}')
        await asyncio.sleep(0)
    assert await task == ['r0', 'r1', 'r2']


async def test_concurrently_returns_errors_in_their_places():
    async def fail():
        raise KeyError('x')

    async def succeed():
        return 1

    first, second = await concurrently([fail(), succeed()])
    assert isinstance(first, KeyError)
    assert second == 1
    assert await concurrently([]) == []


async def test_concurrently_starts_very_many_with_turns_in_between():
    started, turns = [], []

    async def note(index):
        started.append(index)

    def turn():
        turns.append(len(started))
        if len(started) < 10 * AT_A_TIME:
            asyncio.get_running_loop().call_soon(turn)

    begun = []
    turn()
    await concurrently([note(index) for index in range(10 * AT_A_TIME)], lambda: begun.append(len(started)))
    assert turns[:10] == [AT_A_TIME * number for number in range(10)]
    assert started == list(range(10 * AT_A_TIME))
    assert begun == [10 * AT_A_TIME]


async def test_concurrently_that_is_cancelled_starts_no_more():
    started, begun = [], []

    async def note(index):
        started.append(index)

    task = asyncio.ensure_future(
        concurrently([note(index) for index in range(10 * AT_A_TIME)], lambda: begun.append(True))
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(started) == AT_A_TIME
    assert begun == [True]


async def test_a_pace_gives_turns():
    async def work():
        pace = Pace()
        for number in range(10 * AT_A_TIME):
            await pace.keep()
            done.append(number)

    done = []
    ended = run(work())
    turns = 0
    while not ended:
        turns += 1
        await asyncio.sleep(0)
    assert turns == 10
    assert done == list(range(10 * AT_A_TIME))
