"""What an order is, and what the shop has on the server: two topics and two groups."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import acklog

ORDERS, REMINDERS = 'shop-orders', 'shop-reminders'
CHARGING, MAILING = 'charging', 'mailing'
ATTEMPTS = 4


@dataclass(frozen=True)
class Order:
    """`amount`: as the web shop wrote it down, such as 19.50."""

    number: int
    customer: str
    amount: str

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, value: bytes | None) -> Order:
        return cls(**json.loads(value or b'{}'))


async def prepare(client: acklog.Client, backoff: str) -> None:
    """Topics and groups, where they are not there yet. `backoff`: how long an order waits after a failed charge."""
    if not await client.topic_exists(ORDERS):
        await client.admin.create_topic(ORDERS, partitions=2)
    if not await client.topic_exists(REMINDERS):
        await client.admin.create_topic(REMINDERS, partitions=1, configs={'acklog.deliver.at.enable': 'true'})
    beginning = {'share.auto.offset.reset': 'earliest'}
    limits = {'acklog.retry.backoff': backoff, 'share.delivery.count.limit': str(ATTEMPTS)}
    await client.admin.alter_group_configs(CHARGING, {**beginning, **limits})
    await client.admin.alter_group_configs(MAILING, beginning)
