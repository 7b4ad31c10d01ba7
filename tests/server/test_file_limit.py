"""The operating system's limit of open files, and what there can be within it."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Iterator

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.raw import API_VERSIONS, Closed, Raw

from acklog.server.file_limit import Shares, raise_limit, shares

FILES = resource.RLIMIT_NOFILE
WANTED = Shares(10_000, 1000, 1000)


@pytest.fixture(autouse=True)
def limit() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(FILES)
    yield before
    resource.setrlimit(FILES, before)


@pytest.mark.parametrize(
    ('allowed', 'found'),
    [
        (20_000, WANTED),
        (12_064, WANTED),
        (12_063, Shares(9999, 1000, 1000)),
        (4096, Shares(2528, 504, 1000)),
        (1024, Shares(600, 120, 240)),
        (256, Shares(120, 24, 48)),
        (70, Shares(26, 6, 16)),
    ],
)
def test_who_gets_how_many(allowed: int, found: Shares, limit: tuple[int, int]) -> None:
    if limit[1] != resource.RLIM_INFINITY and limit[1] < allowed:
        pytest.skip('this machine allows fewer')
    resource.setrlimit(FILES, (allowed, limit[1]))
    assert shares(WANTED) == found


def test_the_limit_is_raised_as_far_as_it_is_wanted(limit: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    resource.setrlimit(FILES, (256, limit[1]))
    raise_limit(Shares(100, 10, 100))
    assert resource.getrlimit(FILES)[0] == 274
    assert not caplog.messages
    raise_limit(Shares(10, 1, 10))
    assert resource.getrlimit(FILES)[0] == 274


async def test_connections_beyond_it_are_refused_and_logs_go_on(
    serve: Serve, limit: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    """Connections that would leave no file for anything else are not let in."""
    server = await serve()
    first = await Raw.connect(address_of(server))
    server.listener.reconfigure(server.listener.limits.__class__(connections=5))
    with caplog.at_level(logging.WARNING):
        raws = [await Raw.connect(address_of(server)) for _ in range(10)]
        await asyncio.sleep(0.05)
    let_in = 0
    for raw in raws:
        try:
            await raw.call(API_VERSIONS, 0, {})
            let_in += 1
        except Closed:
            pass
    assert let_in == 4
    assert (await first.call(API_VERSIONS, 0, {}))['api_keys']
    assert 0 < len(caplog.messages) <= 6
