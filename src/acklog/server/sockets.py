"""The sockets that are listened on.

Strategy: a name is listened on at all addresses that it has here, with one port. They are bound first of all at start,
so that a port in use is said before anything is opened, and listened on when all is ready.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence

from acklog.server.addresses import is_wildcard, show_address

ATTEMPTS = 10  # to find a port that is free at all addresses of a name
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

Address = tuple[socket.AddressFamily, str]


class CannotListen(OSError):
    """The address cannot be had; the message names it."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f'cannot listen on {show_address(host, port)}: {reason}')


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to `host`, not yet listening; port 0 takes a free one. Raises CannotListen."""
    try:
        addresses = _addresses(host)
    except OSError as error:
        raise CannotListen(host, port, error.strerror or str(error)) from None
    attempts = 1 if port else ATTEMPTS
    while True:
        try:
            return _bind_all(addresses, port)
        except OSError as error:
            attempts -= 1
            if attempts == 0 or error.errno != errno.EADDRINUSE:
                raise CannotListen(host, port, os.strerror(error.errno) if error.errno else str(error)) from None


def _addresses(host: str) -> Sequence[Address]:
    if not host:
        return [(socket.AF_INET6, '::')] if socket.has_dualstack_ipv6() else [(socket.AF_INET, '0.0.0.0')]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _bind_all(addresses: Sequence[Address], port: int) -> list[socket.socket]:
    bound: list[socket.socket] = []
    missing: OSError | None = None
    for family, host in addresses:
        try:
            bound.append(_bind(family, host, port))
        except OSError as error:
            if error.errno not in NOT_HERE:
                for each in bound:
                    each.close()
                raise
            missing = error
            continue
        port = bound[0].getsockname()[1]
    if not bound:
        assert missing is not None
        raise missing
    return bound


def _bind(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # The protocol is named, or asyncio would not set TCP_NODELAY on the connections.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart gets its port at once
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit it: lost peers are found
        if family == socket.AF_INET6:
            both = is_wildcard(host) and socket.has_dualstack_ipv6()
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not both)
        made.bind(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4])
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
