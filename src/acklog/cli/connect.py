"""How a command reaches the server: the options for it, and the event loop it runs in.

`--bootstrap` comes from the option, else from ACKLOG_BOOTSTRAP, else it is 127.0.0.1:9092. SIGTERM ends a command as
Ctrl-C does: what is open is closed cleanly first, so that a subscriber hands back what it holds at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from acklog.cli.exit_codes import Exit

if TYPE_CHECKING:
    from acklog.client import Client

F = TypeVar('F', bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Server:
    """Where the server is and how long to wait for an answer."""

    bootstrap: str
    timeout: float

    def client(self) -> Client:
        """A client for it; `async with` opens and closes it."""
        from acklog.client import Client

        return Client(self.bootstrap, timeout=self.timeout, client_id='acklog-cli')


def reaches_server(command: F) -> F:
    """Give a command the options `--bootstrap` and `--timeout`, and with them its argument `server`."""

    def wrapped(bootstrap: str, timeout: float, **others: Any) -> Any:
        return command(Server(_bootstrap(bootstrap), timeout), **others)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__click_params__ = getattr(command, '__click_params__', [])  # type: ignore[attr-defined]
    with_timeout = click.option(
        '--timeout',
        type=click.FloatRange(min=0.1, max=3600),
        default=10.0,
        show_default=True,
        metavar='SECONDS',
        help='How long to wait for an answer.',
    )(wrapped)
    return click.option(
        '-b',
        '--bootstrap',
        envvar='ACKLOG_BOOTSTRAP',
        default='127.0.0.1:9092',
        show_default=True,
        show_envvar=True,
        metavar='HOST:PORT[,...]',
        help='Address of the server, or several of them.',
    )(with_timeout)  # type: ignore[return-value]


def _bootstrap(own: str) -> str:
    """The command's own `--bootstrap`, or the one that was written before the command's name."""
    context = click.get_current_context()
    before = context.find_root().params.get('bootstrap')
    given = context.get_parameter_source('bootstrap') is click.core.ParameterSource.COMMANDLINE
    return own if given or not before else str(before)


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
