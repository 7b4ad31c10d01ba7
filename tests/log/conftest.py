"""`world`: logs of every kind, one after the other; see tests/log/worlds.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.log.worlds import LocalWorld, MemoryWorld, World


@pytest.fixture(params=['real files', 'files in memory', 'memory', 'memory with delays'])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    made: World
    match request.param:
        case 'real files':
            made = LocalWorld(tmp_path / 'data')
        case 'files in memory':
            made = LocalWorld()
        case 'memory':
            made = MemoryWorld()
        case _:
            made = MemoryWorld(delay=5)
    yield made
    await made.close()


@pytest.fixture
async def local() -> AsyncIterator[LocalWorld]:
    made = LocalWorld()
    yield made
    await made.close()
