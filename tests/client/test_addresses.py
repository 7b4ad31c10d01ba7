"""Addresses as people write them."""

from __future__ import annotations

import pytest

from acklog.client.addresses import parse_addresses
from acklog.errors import ConfigError


@pytest.mark.parametrize(
    ('text', 'addresses'),
    [
        ('localhost', [('localhost', 9092)]),
        ('localhost:1234', [('localhost', 1234)]),
        ('a:1, b:2 ,c', [('a', 1), ('b', 2), ('c', 9092)]),
        ('[::1]:19092', [('::1', 19092)]),
        ('[::1]', [('::1', 9092)]),
        ('::1', [('::1', 9092)]),
    ],
)
def test_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize('text', ['', ',', ':9092', 'host:', 'host:0', 'host:99999', 'host:x', 'kafka://host', '[::1'])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match='bootstrap='):
        parse_addresses(text)
