"""The client against a real server: `ACKLOG_TEST_ADDRESS=HOST:PORT` takes another one than ours, Apache Kafka for
example.

`client` is one for the shared server; `topic` makes a topic and lets a group of the same name begin at its first
record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from acklog.client import Client
from acklog.testing.fixtures import acklog_process, acklog_server  # noqa: F401  # where the package is not installed

if TYPE_CHECKING:
    from tests.conftest import Shared

MakeTopic = Callable[..., Awaitable[str]]


@pytest.fixture
async def client(shared: Shared) -> AsyncIterator[Client]:
    async with Client(shared.address) as client:
        yield client


@pytest.fixture
def topic(client: Client, name: str) -> MakeTopic:
    async def make(partitions: int = 1, **group_configs: object) -> str:
        await client.admin.create_topic(name, partitions=partitions)
        configs = {key.replace('_', '.'): str(value) for key, value in group_configs.items()}
        await client.admin.alter_group_configs(name, {'share.auto.offset.reset': 'earliest', **configs})
        return name

    return make
