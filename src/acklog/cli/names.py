"""Completing the names of topics and groups in the shell, by asking the server.

Nothing is said when it cannot be asked: who presses Tab wants names, not errors.
"""

from __future__ import annotations

import asyncio
import os

import click

from acklog.cli.options import own_or_root
from acklog.errors import AcklogError

PATIENCE_S = 2.0  # somebody waits with a finger on Tab


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of topics that begin so."""
    return _found(ctx, incomplete, groups=False)


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of share groups that begin so."""
    return _found(ctx, incomplete, groups=True)


def _found(ctx: click.Context, incomplete: str, *, groups: bool) -> list[str]:
    own = ctx.params.get('bootstrap') or os.environ.get('ACKLOG_BOOTSTRAP') or '127.0.0.1:9092'
    with ctx:
        bootstrap = own_or_root('bootstrap', own)
    try:
        names = asyncio.run(asyncio.wait_for(_names(bootstrap, groups=groups), PATIENCE_S))
    except (AcklogError, OSError, TimeoutError, ValueError):
        return []
    return sorted(name for name in names if name.startswith(incomplete))


async def _names(bootstrap: str, *, groups: bool) -> list[str]:
    from acklog.client import Client

    async with Client(bootstrap, timeout=PATIENCE_S, client_id='acklog-cli') as client:
        if groups:
            return [group.id for group in await client.admin.list_groups(kinds=('share',))]
        return [topic.name for topic in await client.admin.list_topics()]
