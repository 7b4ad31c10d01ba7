"""Which hosts a request may name, so that no web page in a browser on this machine or network gets at the server.

Strategy: a page that has rebound its own name to our address (DNS rebinding) sends that name in Host: so only names are
let through that are ours. An address as Host cannot be rebound, so all are. A page that simply posts to us is no
rebinding, but its browser says in Origin where it comes from: that has to be a host of ours too, and there an address
counts only if it is the one in Host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from acklog.server.addresses import is_loopback

ANY = '*'


class Hosts:
    """Names, without ports, in lower case; `*` for any."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower().strip('[]') for name in names if name}

    def allows(self, host: str) -> bool:
        """`host`: what a Host header says."""
        name = host_of(host)
        return name is not None and (self._known(name) or _is_address(name))

    def allows_origin(self, origin: str, host: str) -> bool:
        """`origin`: what an Origin header says; `host`: the Host header beside it."""
        scheme, mark, rest = origin.partition('://')
        if not mark or scheme not in ('http', 'https'):
            return False  # `null`, or no web page at all
        name = host_of(rest)
        return name is not None and (self._known(name) or name == host_of(host))

    def _known(self, name: str) -> bool:
        return is_loopback(name) or name.endswith('.localhost') or name in self._names or ANY in self._names


def host_of(text: str) -> str | None:
    """The host of HOST or HOST:PORT in lower case, an IPv6 one without brackets; None if it is neither."""
    text = text.strip().lower()
    if text.startswith('['):
        host, bracket, port = text[1:].partition(']')
        if not bracket or not (not port or port.startswith(':')):
            return None
        port = port[1:]
    else:
        host, _, port = text.partition(':')
    if not host or (port and not (port.isascii() and port.isdigit())):
        return None
    return host.rstrip('.')


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
