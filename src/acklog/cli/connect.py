"""How a command reaches the server: the options for it, and the event loop it runs in.

`--bootstrap` comes from the option, else from ACKLOG_BOOTSTRAP, else it is 127.0.0.1:9092. SIGTERM ends a command as
Ctrl-C does: what is open is closed cleanly first, so that a subscriber hands back what it holds at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from acklog.cli.exit_codes import Exit
from acklog.cli.options import gathered, own_or_root, timeout_option
from acklog.errors import AcklogError

if TYPE_CHECKING:
    from acklog.client import Client


@dataclass(frozen=True, slots=True)
class Server:
    """Where the server is and how long to wait for an answer."""

    bootstrap: str
    timeout: float

    def client(self) -> Client:
        """A client for it; `async with` opens and closes it."""
        from acklog.client import Client

        return Client(self.bootstrap, timeout=self.timeout, client_id='acklog-cli')


def _server(bootstrap: str, timeout: float) -> Server:
    return Server(own_or_root('bootstrap', bootstrap), timeout)


@contextlib.contextmanager
def with_cure(names_another: str) -> Iterator[None]:
    """Where no server answers, say what starts one and which option and variable name another."""
    try:
        yield
    except AcklogError as error:
        from acklog.client.errors import Unreachable

        if not isinstance(error, Unreachable):
            raise
        raise Unreachable(f'{error} ("acklog serve" starts one; {names_another} for one elsewhere)') from None


reaches_server = gathered(
    'server',
    _server,
    click.option(
        '-b',
        '--bootstrap',
        envvar='ACKLOG_BOOTSTRAP',
        default='127.0.0.1:9092',
        show_default=True,
        show_envvar=True,
        metavar='HOST:PORT[,...]',
        help='Address of the server, or several of them.',
    ),
    timeout_option,
    within=lambda: with_cure('-b or ACKLOG_BOOTSTRAP'),
)


def run(command: Coroutine[Any, Any, int | None]) -> int:
    """Run a command's coroutine to its end and return its exit code (None counts as 0)."""

    async def until_done() -> int:
        task = asyncio.current_task()
        assert task is not None
        terminated = False

        def terminate() -> None:
            nonlocal terminated
            terminated = True
            task.cancel()

        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
            loop.add_signal_handler(signal.SIGTERM, terminate)
        try:
            return await command or Exit.OK
        except asyncio.CancelledError:
            if not terminated:
                raise
            return Exit.TERMINATED

    return asyncio.run(until_done())
