"""Addresses to listen on and to tell clients."""

from __future__ import annotations

from acklog.errors import ConfigError

WILDCARDS = ('0.0.0.0', '::', '')
ALLOWED = 'HOST:PORT, with PORT from 0 to 65535 and an IPv6 host in brackets'


def parse_address(name: str, value: str) -> tuple[str, int]:
    """(host, port) of a setting's value. Raises ConfigError."""
    host, colon, port = value.rpartition(':')
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(name, value, ALLOWED)
    if host.startswith('[') and host.endswith(']'):
        host = host[1:-1]
    elif ':' in host:
        raise ConfigError(name, value, ALLOWED)
    return host, int(port)


def advertised(listen: tuple[str, int], advertise: str) -> tuple[str, int] | None:
    """What clients are told, None for what is listened on. A wildcard address is nothing that a client could connect
    to.

    Raises ConfigError."""
    if advertise:
        host, port = parse_address('advertise', advertise)
        if host in WILDCARDS:
            raise ConfigError('advertise', advertise, 'an address that clients can connect to, which a wildcard is not')
        return host, port
    if listen[0] in WILDCARDS:
        raise ConfigError('advertise', advertise, 'HOST:PORT for clients to connect to, as `listen` is a wildcard')
    return None
