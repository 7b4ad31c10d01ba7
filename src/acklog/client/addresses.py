"""Addresses as people write them: `host`, `host:port`, `[::1]:9092`, several of them with commas."""

from __future__ import annotations

from acklog.errors import ConfigError

DEFAULT_PORT = 9092

_ALLOWED = 'HOST or HOST:PORT (an IPv6 address in brackets), several with commas; ports are 1 to 65535'


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """The (host, port) pairs in `text`; the port is 9092 where none is given. Raises ConfigError."""
    parts = [part.strip() for part in text.split(',') if part.strip()]
    if not parts:
        raise ConfigError('bootstrap', text, _ALLOWED)
    return [_parse(part) for part in parts]


def _parse(text: str) -> tuple[str, int]:
    host, port = text, ''
    if text.startswith('['):
        host, bracket, rest = text[1:].partition(']')
        if not bracket or (rest and not rest.startswith(':')):
            raise ConfigError('bootstrap', text, _ALLOWED)
        port = rest[1:]
    elif text.count(':') == 1:  # more of them: an IPv6 address without a port
        host, port = text.split(':')
    if not port and not text.endswith(':'):
        port = str(DEFAULT_PORT)
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not host or '/' in host or ' ' in host or not 0 < number < 65536:
        raise ConfigError('bootstrap', text, _ALLOWED)
    return host, number
