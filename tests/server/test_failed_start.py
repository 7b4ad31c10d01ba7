"""A server that could not be opened leaves nothing open, whatever it failed at."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Serve, address_of

from acklog.broker.broker import Broker
from acklog.errors import AcklogError
from acklog.server.listener import Listener

DESCRIPTORS = '/proc/self/fd' if sys.platform == 'linux' else '/dev/fd'


def opened() -> int:
    return len(os.listdir(DESCRIPTORS))


async def refuses(serve: Serve, **settings: object) -> None:
    for _ in range(2):
        with pytest.raises((AcklogError, OSError)):
            await serve(**settings)


async def test_what_cannot_be_had(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    server = await serve()
    before = opened()
    await refuses(serve)  # its data directory is in use
    assert opened() == before
    await refuses(serve, data=tmp_path / 'file' / 'data')
    assert opened() == before
    await refuses(serve, data=tmp_path / 'other', listen=address_of(server))
    assert opened() == before


@pytest.mark.parametrize(('owner', 'name'), [(Broker, 'open'), (Listener, 'serve')])
async def test_later_steps(serve: Serve, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise OSError('as if')

    monkeypatch.setattr(owner, name, fails)
    before = opened()
    await refuses(serve)
    assert opened() == before
