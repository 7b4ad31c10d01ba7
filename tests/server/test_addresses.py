"""Addresses to listen on and to tell clients."""

import pytest

from acklog.errors import ConfigError
from acklog.server.addresses import advertised, parse_address


@pytest.mark.parametrize(
    ('text', 'address'),
    [
        ('127.0.0.1:9092', ('127.0.0.1', 9092)),
        ('localhost:0', ('localhost', 0)),
        ('[::1]:9092', ('::1', 9092)),
        (':9092', ('', 9092)),
    ],
)
def test_host_and_port(text, address):
    assert parse_address('listen', text) == address


NO_ADDRESSES = [
    '',
    '9092',
    'host',
    'host:',
    'host:x',
    'host:65536',
    'host:-1',
    '::1:9092',
    'h:\u0661',
    '[x]:1',
    'a b:1',
]


@pytest.mark.parametrize('text', NO_ADDRESSES)
def test_what_is_no_address_is_refused_by_name(text):
    with pytest.raises(ConfigError, match=r'listen=.*HOST:PORT'):
        parse_address('listen', text)


def test_without_advertise_clients_are_told_what_is_listened_on():
    assert advertised(('127.0.0.1', 9092), '') is None
    assert advertised(('127.0.0.1', 9092), 'broker.example:19092') == ('broker.example', 19092)


@pytest.mark.parametrize('host', ['0.0.0.0', '::', ''])
def test_a_wildcard_needs_advertise_and_is_none(host):
    with pytest.raises(ConfigError, match='wildcard'):
        advertised((host, 9092), '')
    with pytest.raises(ConfigError, match='wildcard'):
        advertised((host, 9092), '0.0.0.0:9092')
    assert advertised((host, 9092), '10.1.1.1:9092') == ('10.1.1.1', 9092)
