"""One server process from start to end: `serve` opens the data directory, listens, waits for a signal, and closes all.

SIGTERM and SIGINT stop it: no new connections, waiting polls are answered, what is under way finishes within a grace,
everything is on disk. A second signal ends it at once; that loses nothing that was answered either, but the next start
has to look at what was not closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys

import acklog
from acklog.broker.broker import Broker
from acklog.broker.configs import Settings
from acklog.errors import AcklogError, ConfigError
from acklog.log.directory import DataDirectory
from acklog.server.addresses import advertised, parse_address
from acklog.server.clock import Clock, LoopTimer
from acklog.server.dispatch import Dispatch
from acklog.server.listener import Limits, Listener
from acklog.server.notify import notify

logger = logging.getLogger('acklog.server')

GRACE_S = 0.5
IDLE_LOOK_S = 5.0
COLLECT_AFTER = 100_000  # objects


def limits(settings: Settings) -> Limits:
    """The bounds of the listener, from the configs."""
    return Limits(
        connections=settings.integer('max.connections'),
        connections_per_ip=settings.integer('max.connections.per.ip'),
        request_bytes=settings.integer('socket.request.max.bytes'),
        total_bytes=settings.integer('queued.max.request.bytes'),
        answer_bytes=settings.integer('acklog.connection.queued.bytes'),
        idle_ms=settings.integer('connections.max.idle.ms'),
    )


class Server:
    """A broker and its listener in the running loop. Tests use it in process; `serve` as a process."""

    def __init__(self, broker: Broker, directory: DataDirectory, timer: LoopTimer, settings: Settings) -> None:
        self.broker = broker
        self.settings = settings
        self._directory = directory
        self._timer = timer
        self.listener = Listener(Dispatch(broker), limits(settings))
        settings.on_change.append(lambda: self.listener.reconfigure(limits(settings)))
        self._idle: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, settings: Settings) -> Server:
        """Recover the data directory and listen. Raises ConfigError, LogError, OSError."""
        clock = Clock()
        timer = LoopTimer(clock, asyncio.get_running_loop())
        listen = parse_address('listen', settings.text('listen'))
        advertise = advertised(listen, settings.text('advertise'))
        directory = DataDirectory(
            settings.text('data'),
            reserve_bytes=settings.integer('acklog.disk.reserve.bytes'),
            open_files=settings.integer('acklog.max.open.files'),
        )
        try:
            broker = await Broker.open(directory, settings, clock, timer)
            clock.not_below(broker.latest)
            server = cls(broker, directory, timer, settings)
            host, port = await server.listener.open(*listen)
            broker.node.host, broker.node.port = advertise or (host, port)
            if advertise is not None and advertise[1] == 0:
                broker.node.port = port
        except BaseException:
            await directory.close()
            raise
        await server.listener.serve()
        server._close_idle()
        return server

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self.listener.close_idle(loop.time())
        self._idle = loop.call_later(IDLE_LOOK_S, self._close_idle)

    async def close(self) -> None:
        """Stop listening, answer who waits, finish what is under way, close everything cleanly."""
        if self._idle is not None:
            self._idle.cancel()
        self.broker.groups.stop()
        for partition in self.broker.partitions.values():
            partition.end_waits()
        await self.listener.close(GRACE_S)
        await self.broker.close()
        await self._directory.close()
        self._timer.stop()


async def _serve(settings: Settings) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stopping() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping)
    server = await Server.open(settings)
    node = server.broker.node
    _warn(settings)
    ready = f'acklog {acklog.__version__} is ready on {node.host}:{node.port}, data in {settings.text("data")}'
    sys.stdout.write(f'{ready}\n')
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    notify('READY=1')
    gc.freeze()  # what is there now stays: the collector need not look at it again
    gc.set_threshold(COLLECT_AFTER)  # requests make no cycles; looking for them often cost a fifth of the time
    await stop.wait()
    notify('STOPPING=1')
    logger.info('stopping')
    await server.close()
    logger.info('stopped')
    return 0


def _warn(settings: Settings) -> None:
    host = parse_address('listen', settings.text('listen'))[0]
    if host not in ('127.0.0.1', 'localhost', '::1'):
        logger.warning('listening on %s: there is no authentication yet, everybody may do everything', host)
    if sys.platform == 'darwin':
        logger.warning('macOS is for development: a sync there does not reach the disk as on Linux')


def serve(settings: Settings) -> int:
    """Run the server until a signal ends it; the exit code comes back. Errors at start are said in one line."""
    if sys.platform == 'win32':
        sys.stderr.write('acklog: the server runs on Linux (and macOS, for development); Windows is for clients only\n')
        return 1
    try:
        return asyncio.run(_serve(settings))
    except ConfigError as error:
        sys.stderr.write(f'acklog: {error}\n')
        return 2
    except (AcklogError, OSError) as error:
        sys.stderr.write(f'acklog: cannot start: {error}\n')
        return 1


__all__ = ['Server', 'serve']
