"""A server in the running loop: the data directory, the broker over it, the listeners in front of it.

Strategy: sockets are bound first, so that what cannot be had is known before anything is opened, and clients only wait
for as long as recovery takes; they are served last. Whatever goes wrong in between, what is open is closed again. It
stops from the outside inwards: long polls are answered, listeners finish what is under way, then the broker, then the
directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Sequence

from acklog.broker.broker import Broker
from acklog.broker.configs import Settings
from acklog.errors import LogError
from acklog.log.directory import DataDirectory
from acklog.log.files import Files
from acklog.server import sockets
from acklog.server.addresses import advertised, parse_address
from acklog.server.clock import CUT_MS, Clock
from acklog.server.dispatch import Dispatch
from acklog.server.file_limit import Shares, raise_limit, shares
from acklog.server.http import address as http_address
from acklog.server.http.listener import HttpLimits, HttpListener
from acklog.server.listener import Limits, Listener
from acklog.server.timer import LoopTimer

logger = logging.getLogger('acklog.server')

GRACE_S = 0.5  # in which what is under way has to finish


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
    there is no HTTP. `listens_on`: host and port, which clients may be told otherwise (`advertise`)."""

    def __init__(self, broker: Broker, directory: DataDirectory, timer: LoopTimer, settings: Settings) -> None:
        self.broker = broker
        self.settings = settings
        self._directory = directory
        self._timer = timer
        self.listener = Listener(Dispatch(broker), limits(settings))
        self.http: HttpListener | None = None
        self.listens_on = ('', 0)
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
        server.listens_on = _told(listen[0], bound, None)
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
        directory = DataDirectory(
            settings.text('data'),
            files,
            reserve_bytes=settings.integer('acklog.disk.reserve.bytes'),
            open_files=shares(_files(settings)).log_files,
        )
        timer = LoopTimer(clock, asyncio.get_running_loop())  # not before, since it has to be stopped
        try:
            broker = await Broker.open(directory, settings, clock, timer, cut_ms=CUT_MS)
            clock.not_below(broker.latest)
            timer.moved()  # what recovery has asked for is no further away than before
            broker.node.host, broker.node.port = told
            server = cls(broker, directory, timer, settings)
            timer.look_out(server.clock_astray)
            await server.listener.serve(bound)
        except BaseException:
            timer.stop()
            with contextlib.suppress(LogError, OSError):  # what went wrong first is what counts
                await directory.close()
            raise
        return server

    def clock_astray(self, by: int) -> None:
        """The wall clock was set by `by` ms, and this server's has to be too."""
        logger.warning(
            'the wall clock was set %s by %d ms: locks and delays go on as they were, what has a time of its own comes '
            'by the new clock',
            'forward' if by > 0 else 'back',
            abs(by),
        )
        clock = self._timer.clock
        self.broker.clock_steps()
        now = clock()
        clock.step(by)
        self._timer.stepped(by)
        self.broker.clock_stepped(now, by)

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
