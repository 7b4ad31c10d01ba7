"""One server process from start to end: `serve` opens a `Server`, waits for a signal, and closes it.

SIGTERM and SIGINT stop it: no new connections, waiting polls are answered, what is under way finishes within a grace,
everything is on disk. A second signal ends it at once, and so does a disk that is too slow for what is to be closed;
that loses nothing that was answered either, but the next start has to look at what was not closed. A signal while it
starts ends it when it is ready, and at once if that takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from types import FrameType
from typing import TextIO

import acklog
from acklog.broker.configs import Settings
from acklog.errors import AcklogError, ConfigError
from acklog.server.addresses import is_loopback, parse_address, show_address
from acklog.server.http import address as http_address
from acklog.server.notify import notify
from acklog.server.server import GRACE_S, Server

logger = logging.getLogger('acklog.server')

STOP_S = 3.0  # for all of it: who stops a server wants it to be gone
COLLECT_AFTER = 100_000  # objects


class _Signals:
    """SIGTERM and SIGINT. Handled as soon as Python runs anything, so a second one ends the process whatever it is
    busy with."""

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._first = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._first:
            os._exit(128 + number)  # as a shell says it of who was ended by a signal
        self._first = False
        self._loop.call_soon_threadsafe(self.received.set)


async def _serve(settings: Settings) -> int:
    signals = _Signals()
    asyncio.get_running_loop().set_exception_handler(_report)
    server = await _opened(settings, signals.received)
    if not signals.received.is_set():
        address = show_address(*server.listens_on)
        told = show_address(server.broker.node.host, server.broker.node.port)
        if told != address:
            address += f' (clients are told {told})'
        if server.http is not None:
            address += f', HTTP on http://{show_address(*server.http.address)}'
        _warn(settings)
        _say(sys.stdout, f'acklog {acklog.__version__} is ready on {address}, data in {settings.text("data")}')
        notify('READY=1')
        gc.freeze()  # what is there now stays: the collector need not look at it again
        gc.set_threshold(COLLECT_AFTER)  # requests make no cycles; looking for them often cost a fifth of the time
    await signals.received.wait()
    notify('STOPPING=1')
    logger.info('stopping')
    closing = asyncio.ensure_future(server.close())
    await asyncio.wait([closing], timeout=STOP_S)
    if not closing.done():
        _end_at_once('stopped, but not all logs could be closed in %.0f s; the next start has to look at them', STOP_S)
    try:
        closing.result()
    except (AcklogError, OSError) as error:
        logger.error('stopped, but not cleanly: %s', error)
        return 1
    logger.info('stopped')
    return 0


def _end_at_once(text: str, *args: object) -> None:
    """As if killed, which loses nothing that was answered."""
    logger.warning(text, *args)
    logging.shutdown()
    os._exit(0)


async def _opened(settings: Settings, stop: asyncio.Event) -> Server:
    opening, stopping = asyncio.ensure_future(Server.open(settings)), asyncio.ensure_future(stop.wait())
    await asyncio.wait([opening, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        await asyncio.wait([opening], timeout=GRACE_S)
    if not opening.done():  # nobody has been answered, so nothing can be lost
        _end_at_once('stopped before it was ready; the next start has to look at everything again')
    stopping.cancel()
    return opening.result()


def _say(out: TextIO | None, line: str) -> None:
    if out is not None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads it
            out.write(f'{line}\n')
            out.flush()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """What asyncio has to say."""
    error = context.get('exception')
    if isinstance(error, OSError) and 'accept' in str(context.get('message')):
        logger.error('no more connections for a second: %s', error.strerror)
    else:
        loop.default_exception_handler(context)


def _warn(settings: Settings) -> None:
    for host, _ in filter(None, (parse_address('listen', settings.text('listen')), http_address.configured(settings))):
        if not is_loopback(host):
            logger.warning('listening on %s: there is no authentication yet, everybody may do everything', host or '*')
    if sys.platform == 'darwin':
        logger.warning('macOS is for development: a sync there does not reach the disk as on Linux')


def _keep_standard_files() -> None:
    """Where stdin, stdout or stderr is closed no other file may get its number, or it would get what libraries write
    to it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def _why(error: AcklogError | OSError, settings: Settings) -> str:
    if isinstance(error, OSError):
        if error.errno is None:  # one of ours, which says it all: an address cannot be had
            return str(error)
        return f'cannot start: {error.filename or settings.text("data")}: {error.strerror}'
    return f'cannot start: {error}'


def serve(settings: Settings) -> int:
    """Run the server until a signal ends it; the exit code comes back. Errors at start are said in one line."""
    if sys.platform == 'win32':
        sys.stderr.write('acklog: the server runs on Linux (and macOS, for development); Windows is for clients only\n')
        return 1
    _keep_standard_files()
    try:
        return asyncio.run(_serve(settings))
    except ConfigError as error:
        _say(sys.stderr, f'acklog: {error}')
        return 2
    except (AcklogError, OSError) as error:
        _say(sys.stderr, f'acklog: {_why(error, settings)}')
        return 1
