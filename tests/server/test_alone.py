"""Who is alone has its record written without waiting for others; those who come together share a write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.raw import PRODUCE, Raw
from tests.server.traffic import batch, create, produce

from acklog.broker.apis import produce as handler


@pytest.mark.parametrize('together', [1, 3])
async def test_writes(serve: Serve, monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    server = await serve()
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    asked: list[bool] = []
    append = handler.append

    def watched(*arguments: Any, at_once: bool) -> Any:
        asked.append(at_once)
        return append(*arguments, at_once=at_once)

    monkeypatch.setattr(handler, 'append', watched)
    for _ in range(2):
        await asyncio.sleep(0.05)
        await raw.send(raw.frame(PRODUCE, 11, produce('t', batch(10))) * together)
        for _ in range(together):
            await raw.answer(PRODUCE, 11)
    assert asked == [together == 1] * together * 2
