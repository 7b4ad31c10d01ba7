"""One server process from start to end: `serve` opens the data directory, listens, waits for a signal, and closes all.

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
import socket
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TextIO

import acklog
from acklog.broker.broker import Broker
from acklog.broker.configs import Settings
from acklog.errors import AcklogError, ConfigError, LogError
from acklog.log.directory import DataDirectory
from acklog.log.files import Files
from acklog.server import sockets
from acklog.server.addresses import advertised, is_loopback, parse_address, show_address
from acklog.server.clock import Clock, LoopTimer
from acklog.server.dispatch import Dispatch
from acklog.server.file_limit import Shares, raise_limit, shares
from acklog.server.http import address as http_address
from acklog.server.http.listener import HttpLimits, HttpListener
from acklog.server.listener import Limits, Listener
from acklog.server.notify import notify

logger = logging.getLogger('acklog.server')

GRACE_S = 0.5
STOP_S = 3.0  # for all of it: who stops a server wants it to be gone
COLLECT_AFTER = 100_000  # objects
INTERRUPTED = 130  # exit code of a process that a second signal ended


def _files(settings: Settings) -> Shares:
    """What the configs want."""
    http = 0 if http_address.configured(settings) is None else settings.integer('acklog.http.max.connections')
    return Shares(settings.integer('max.connections'), http, settings.integer('acklog.max.open.files'))


def limits(settings: Settings) -> Limits:
    """The bounds of the listener, from the configs."""
    return Limits(
        connections=shares(_files(settings)).connections,
        connections_per_ip=settings.integer('max.connections.per.ip'),
        request_bytes=settings.integer('socket.request.max.bytes'),
        total_bytes=settings.integer('queued.max.request.bytes'),
        answer_bytes=settings.integer('acklog.connection.queued.bytes'),
        total_answer_bytes=settings.integer('acklog.queued.max.answer.bytes'),
        idle_ms=settings.integer('connections.max.idle.ms'),
    )


def http_limits(settings: Settings) -> HttpLimits:
    """The bounds of the HTTP listener, from the configs."""
    return HttpLimits(
        connections=shares(_files(settings)).http_connections,
        connections_per_ip=settings.integer('max.connections.per.ip'),
        body_bytes=settings.integer('acklog.http.max.body.bytes'),
    )


class Server:
    """A broker and its listeners in the running loop. Tests use it in process; `serve` as a process. `http`: None where
    there is no HTTP."""

    def __init__(self, broker: Broker, directory: DataDirectory, timer: LoopTimer, settings: Settings) -> None:
        self.broker = broker
        self.settings = settings
        self._directory = directory
        self._timer = timer
        self.listener = Listener(Dispatch(broker), limits(settings))
        self.http: HttpListener | None = None
        settings.on_change.append(self._reconfigure)

    def _reconfigure(self) -> None:
        self.listener.reconfigure(limits(self.settings))
        if self.http is not None:
            self.http.limits = http_limits(self.settings)

    @classmethod
    async def open(cls, settings: Settings, files: Files | None = None, clock: Clock | None = None) -> Server:
        """Recover the data directory and listen. `files`: the file system it is in; `clock`: another one, for tests.
        Raises ConfigError, LogError, OSError."""
        listen = parse_address('listen', settings.text('listen'))
        advertise = advertised(listen, settings.text('advertise'))
        raise_limit(_files(settings))
        bound = sockets.bind(*listen)
        bound_http: Sequence[socket.socket] = ()
        try:
            bound_http = http_address.bind(settings)
            server = await cls._open(settings, files, bound, _told(listen[0], bound, advertise), clock or Clock())
        except BaseException:
            for each in (*bound, *bound_http):
                each.close()
            raise
        if bound_http:
            server._serve_http(bound_http)
        return server

    def _serve_http(self, bound: Sequence[socket.socket]) -> None:
        """Comes last: the sockets only wait for the first connection."""
        self.http = HttpListener(self.broker, self.listener, http_limits(self.settings))
        self.http.serve(bound)

    @classmethod
    async def _open(
        cls,
        settings: Settings,
        files: Files | None,
        bound: Sequence[socket.socket],
        told: tuple[str, int],
        clock: Clock,
    ) -> Server:
        timer = LoopTimer(clock, asyncio.get_running_loop())
        directory = DataDirectory(
            settings.text('data'),
            files,
            reserve_bytes=settings.integer('acklog.disk.reserve.bytes'),
            open_files=shares(_files(settings)).log_files,
        )
        try:
            broker = await Broker.open(directory, settings, clock, timer)
            clock.not_below(broker.latest)
            timer.moved()  # what recovery has asked for is no further away than before
            broker.node.host, broker.node.port = told
            server = cls(broker, directory, timer, settings)
            await server.listener.serve(bound)
        except BaseException:
            timer.stop()
            with contextlib.suppress(LogError, OSError):  # what went wrong first is what counts
                await directory.close()
            raise
        return server

    def clock_moved(self) -> None:
        """Its clock was moved ahead: do what is due."""
        self._timer.moved()

    async def close(self) -> None:
        """Stop listening, answer who waits, finish what is under way, close everything cleanly."""
        self.broker.stop_waits()
        closing = [self.listener.close(GRACE_S)]
        if self.http is not None:
            closing.append(self.http.close(GRACE_S))
        await asyncio.gather(*closing)
        try:
            await self.broker.close()
        finally:
            self._timer.stop()
            await self._directory.close()


def _told(host: str, bound: Sequence[socket.socket], advertise: tuple[str, int] | None) -> tuple[str, int]:
    """What clients are told to connect to: as configured, else the name that is listened on, else an address of this
    machine, IPv4 if there is one."""
    names = [each.getsockname()[:2] for each in sorted(bound, key=lambda each: each.family != socket.AF_INET)]
    port = names[0][1]
    if advertise is not None:
        return advertise[0], advertise[1] or port
    return (names[0][0] if host == 'localhost' else host), port


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
            os._exit(INTERRUPTED)
        self._first = False
        self._loop.call_soon_threadsafe(self.received.set)


async def _serve(settings: Settings) -> int:
    signals = _Signals()
    asyncio.get_running_loop().set_exception_handler(_report)
    server = await _opened(settings, signals.received)
    if not signals.received.is_set():
        address = show_address(server.broker.node.host, server.broker.node.port)
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


__all__ = ['Server', 'serve']
