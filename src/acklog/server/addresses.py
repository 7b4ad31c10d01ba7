"""Addresses to listen on, to tell clients, and of clients."""

from __future__ import annotations

import ipaddress

from acklog.errors import ConfigError

ALLOWED = 'HOST:PORT, with PORT from 0 to 65535 and an IPv6 host in brackets'
MAPPED = '::ffff:'  # how a socket for both shows an IPv4 address


def parse_address(name: str, value: str) -> tuple[str, int]:
    """(host, port) of a setting's value. Raises ConfigError."""
    host, colon, port = value.rpartition(':')
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(name, value, ALLOWED)
    if host.startswith('[') and host.endswith(']'):
        host = host[1:-1]
        if not isinstance(_ip(host), ipaddress.IPv6Address):
            raise ConfigError(name, value, ALLOWED)
    elif ':' in host or not host.isprintable() or ' ' in host:
        raise ConfigError(name, value, ALLOWED)
    return host, int(port)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def show_address(host: str, port: int) -> str:
    """HOST:PORT as `parse_address` reads it."""
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'


def peer_address(peer: object) -> tuple[str, str]:
    """(address with port, address) of a client, from what its socket says."""
    if not isinstance(peer, tuple) or len(peer) < 2:
        return 'unknown', 'unknown'
    host = str(peer[0]).removeprefix(MAPPED)
    return show_address(host, peer[1]), host


def advertised(listen: tuple[str, int], advertise: str) -> tuple[str, int] | None:
    """What clients are told, None for what is listened on. A wildcard address is nothing that a client could connect
    to.

    Raises ConfigError."""
    if advertise:
        host, port = parse_address('advertise', advertise)
        if is_wildcard(host):
            raise ConfigError('advertise', advertise, 'an address that clients can connect to, which a wildcard is not')
        return host, port
    if is_wildcard(listen[0]):
        raise ConfigError('advertise', advertise, 'HOST:PORT for clients to connect to, as `listen` is a wildcard')
    return None


def is_wildcard(host: str) -> bool:
    """Whether it stands for all addresses of this machine."""
    address = _ip(host)
    return not host or (address is not None and address.is_unspecified)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to what listens there. `host`: a name or an address."""
    address = _ip(host)
    return host == 'localhost' or (address is not None and address.is_loopback)
