"""Configs of the HTTP listener."""

from __future__ import annotations

from acklog.broker.configs.definitions import Definition, Kind

HTTP = (
    Definition(
        name='http',
        kind=Kind.STRING,
        default='127.0.0.1:8080',
        words='HOST:PORT of the HTTP listener; port 0 picks a free one and prints it; `off` or empty: no HTTP. If the '
        'default port is taken the server goes on without HTTP; one that was set must be free.',
    ),
    Definition(
        name='acklog.http.hosts',
        kind=Kind.LIST,
        default=(),
        words='Names, besides localhost, addresses, and the hosts of `http`, `listen` and `advertise`, that a request '
        'may name in its Host header, so that no web page reaches the server under a name of its own (DNS rebinding). '
        '`*`: any.',
    ),
    Definition(
        name='acklog.http.max.connections',
        kind=Kind.INT,
        default=1000,
        low=1,
        dynamic=True,
        words='HTTP connections at a time; further ones are answered with 503.',
    ),
    Definition(
        name='acklog.http.max.body.bytes',
        kind=Kind.INT,
        default=16 << 20,
        low=1024,
        dynamic=True,
        words='Bytes of the body of one HTTP request; a larger one is answered with 413.',
    ),
)
