"""Which hosts and origins are let through."""

from __future__ import annotations

import httpx
import pytest
from tests.server.http.asking import problem
from tests.server.http.conftest import ServeHttp

from acklog.server.http.hosts import Hosts

OURS = Hosts(['mq.example.org', '', '::1'])


@pytest.mark.parametrize(
    'host',
    [
        'localhost',
        'localhost:8080',
        'LocalHost:8080',
        'api.localhost:8080',
        '127.0.0.1',
        '127.0.0.1:8080',
        '192.0.2.7:80',
        '[::1]:8080',
        '[2001:db8::1]',
        'mq.example.org',
        'MQ.example.org:8080',
        'mq.example.org.',
    ],
)
def test_hosts_of_ours(host: str) -> None:
    assert OURS.allows(host)


@pytest.mark.parametrize(
    'host',
    ['', 'evil.example', 'evil.example:8080', 'localhost.evil.example', 'xlocalhost', 'a@localhost', '[::1', '[::1]x'],
)
def test_hosts_of_others(host: str) -> None:
    assert not OURS.allows(host)


def test_any_host_where_that_is_wanted() -> None:
    assert Hosts(['*']).allows('evil.example')


@pytest.mark.parametrize(
    ('origin', 'host', 'allowed'),
    [
        ('http://localhost:3000', 'localhost:8080', True),
        ('http://127.0.0.1:3000', 'localhost:8080', True),
        ('https://mq.example.org', 'mq.example.org:8080', True),
        ('http://192.0.2.7:9000', '192.0.2.7:8080', True),
        ('http://198.51.100.9', '127.0.0.1:8080', False),
        ('http://evil.example', 'localhost:8080', False),
        ('null', 'localhost:8080', False),
        ('file://', 'localhost:8080', False),
    ],
)
def test_pages(origin: str, host: str, allowed: bool) -> None:
    assert OURS.allows_origin(origin, host) is allowed


@pytest.mark.system
def test_a_rebound_name_is_refused(api: httpx.Client) -> None:
    answer = api.get('/v1', headers={'host': 'evil.example:8080'})
    assert answer.status_code == 421
    assert 'acklog.http.hosts' in problem(answer)['detail']


@pytest.mark.system
def test_pages_of_others_are_refused(api: httpx.Client) -> None:
    answer = api.post('/v1/groups/g/resume', headers={'origin': 'http://evil.example'})
    assert answer.status_code == 403
    assert 'evil.example' in problem(answer)['detail']


async def test_more_names(serve_http: ServeHttp) -> None:
    _, client = await serve_http(acklog_http_hosts='mq,mq.example.org')
    statuses = [(await client.get('/v1', headers={'host': host})).status_code for host in ('mq:8080', 'mq2:8080')]
    assert statuses == [200, 421]
