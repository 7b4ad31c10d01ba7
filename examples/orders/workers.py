"""The two subscribers: one charges orders, one mails reminders. Each is a function that is called for a record."""

from __future__ import annotations

from collections.abc import Callable

import acklog

from .orders import CHARGING, MAILING, ORDERS, REMINDERS, Order
from .payments import Payments


def charging(client: acklog.Client, payments: Payments, remind_at: Callable[[Order], int]) -> acklog.Worker:
    """Charges orders. `remind_at`: when the customer of an order just charged is reminded, ms since 1970."""

    @acklog.worker(CHARGING, [ORDERS], concurrency=5, backoff=None)  # None: the group's acklog.retry.backoff
    async def charge(record: acklog.Received) -> None:
        order = Order.read(record.value)
        await payments.charge(order)  # what it raises hands the order back
        await client.publish(REMINDERS, record.value, key=record.key, deliver_at=remind_at(order))

    return charge


def mailing(mail_to: Callable[[Order], None]) -> acklog.Worker:
    """Asks customers what they think of what they bought."""

    @acklog.worker(MAILING, [REMINDERS])
    async def mail(record: acklog.Received) -> None:
        mail_to(Order.read(record.value))

    return mail
