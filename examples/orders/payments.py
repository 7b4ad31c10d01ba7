"""A payment service as they are: now and then it does not answer, and there are orders that it cannot stand."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from .orders import Order


class Payments:
    """Charges each order once, however often it is asked: by the order's number. So a second delivery costs nobody
    anything."""

    def __init__(self) -> None:
        self.charged: dict[int, Decimal] = {}
        self.asked: dict[int, int] = {}  # how often, by order
        self.understands_commas = False

    async def charge(self, order: Order) -> None:
        """Raises TimeoutError where it does not answer, ValueError for an amount that it cannot read."""
        times = self.asked[order.number] = self.asked.get(order.number, 0) + 1
        if times <= order.number % 3:  # a third of the orders fails once, another third twice
            raise TimeoutError('the payment service does not answer')
        self.charged[order.number] = self._amount(order)

    def _amount(self, order: Order) -> Decimal:
        amount = order.amount.replace(',', '.') if self.understands_commas else order.amount
        try:
            return Decimal(amount)
        except InvalidOperation:
            raise ValueError(f'{order.amount!r} is not an amount') from None
