"""The whole story, from the first order to the last reminder; `python -m examples.orders` and the tests tell it.

What takes time is asked of a `Pace`, so that a test, whose server has a clock that the test moves, need not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import acklog

from .dead_letters import dead_orders, redrive
from .orders import ORDERS, Order, prepare
from .payments import Payments
from .workers import charging, mailing

GOOD = [Order(number, f'customer-{number % 4}', f'{number}.50') for number in range(1, 13)]
POISON = Order(15, 'customer-3', '15,50')  # not what the payment service calls a number


@dataclass(frozen=True)
class Pace:
    """`backoff`: as acklog.retry.backoff; `reminder`: s from a charge until the reminder; `step`: s until one looks
    again; `now`: ms since 1970 by the server's clock; `passes`: waits for so many seconds of it."""

    backoff: str
    reminder: float
    step: float
    now: Callable[[], int]
    passes: Callable[[float], Awaitable[None]]

    async def until(self, done: Callable[[], bool]) -> None:
        """Let time pass until it is so."""
        while not done():
            await self.passes(self.step)


@contextlib.asynccontextmanager
async def at_work(worker: acklog.Worker, client: acklog.Client) -> AsyncIterator[None]:
    """The worker works meanwhile. In a process of its own it would be `worker.run('localhost:9092')`."""
    task = asyncio.create_task(worker.serve(client))
    try:
        yield
    finally:
        worker.stop()
        await task


async def tell(client: acklog.Client, http: str, pace: Pace, say: Callable[[str], None]) -> Payments:
    """The story. Returns the payment service, which knows what was charged."""
    payments, due, mailed = Payments(), dict[int, int](), dict[int, int]()  # when, by order
    await prepare(client, pace.backoff)
    records = [acklog.NewRecord(key=order.customer.encode(), value=order.written()) for order in [*GOOD, POISON]]
    await client.publish_all(ORDERS, records)
    say(f'{len(records)} orders are there; one has an amount that nobody can read')

    def remind_at(order: Order) -> int:
        due[order.number] = pace.now() + round(pace.reminder * 1000)
        return due[order.number]

    def mail_to(order: Order) -> None:
        mailed[order.number] = pace.now()

    async with at_work(charging(client, payments, remind_at), client), at_work(mailing(mail_to), client):
        await pace.until(lambda: len(payments.charged) == len(GOOD))
        again = sum(payments.asked[number] > 1 for number in payments.charged)
        say(f'{len(payments.charged)} orders are charged, once each; {again} of them came again first')

        await died(http, pace)
        for dead in await asyncio.to_thread(dead_orders, http):
            place = f'{dead["topic"]}/{dead["partition"]}/{dead["offset"]}'
            say(f'{place} is dead after {dead["attempts"]} attempts: {dead["words"]}')

        payments.understands_commas = True  # somebody mends it, and then:
        say(f'redriven: {await asyncio.to_thread(redrive, http)}')
        await pace.until(lambda: POISON.number in payments.charged)
        say(f'charged: {payments.charged[POISON.number]}')

        await pace.until(lambda: len(mailed) == len(records))
        early = sum(mailed[number] < due[number] for number in mailed)
        say(f'{len(mailed)} customers are reminded, {early} of them before their time')
    return payments


async def died(http: str, pace: Pace) -> None:
    """Wait until an order is dead."""
    while not await asyncio.to_thread(dead_orders, http):
        await pace.passes(pace.step)
