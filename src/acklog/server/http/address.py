"""Where HTTP is listened on, and what happens when that cannot be.

Strategy: who has set an address wants HTTP there, so a port that is taken ends the start, with the setting's name; at
the default nobody has asked, so the server goes on without HTTP and says so in one line.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence

from acklog.broker.configs import Settings
from acklog.server import sockets
from acklog.server.addresses import parse_address

NAME = 'http'
OFF = ('', 'off', 'none', 'false')

logger = logging.getLogger('acklog.server')


class CannotListen(OSError):
    """The address of the setting `http` cannot be had."""


def configured(settings: Settings) -> tuple[str, int] | None:
    """(host, port) to listen on; None: no HTTP. Raises ConfigError."""
    text = settings.text(NAME)
    return None if text.lower() in OFF else parse_address(NAME, text)


def bind(settings: Settings) -> Sequence[socket.socket]:
    """Sockets bound to it, not yet listening; none if there is no HTTP. Raises ConfigError, CannotListen."""
    address = configured(settings)
    if address is None:
        return ()
    try:
        return sockets.bind(*address)
    except sockets.CannotListen as error:
        if NAME in settings.static:
            raise CannotListen(f'{error} ({NAME}={settings.text(NAME)}; another port, or off for no HTTP)') from None
        logger.warning('no HTTP: %s (set http to another address, or to off)', error)
        return ()
