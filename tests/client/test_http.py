"""The HTTP client against servers that answer in every way; against acklog itself tests/cli has it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from acklog.client.errors import Disconnected, TimedOut, Unreachable, Unsupported
from acklog.client.http import HttpClient, HttpNotFound, HttpRefused, path_of, to_bytes
from acklog.errors import ConfigError

Answering = Callable[..., tuple[HttpClient, list[bytes]]]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """A client of a server that gives these answers, one a connection, and the requests that it gets."""
    stops: list[Callable[[], None]] = []

    def start(*answers: bytes, timeout: float = 10.0) -> tuple[HttpClient, list[bytes]]:
        server = socket.create_server(('127.0.0.1', 0))
        requests: list[bytes] = []

        def serve() -> None:
            for answer in answers:
                connection, _ = server.accept()
                with connection:
                    requests.append(connection.recv(65_536))
                    if answer == SILENCE:
                        connection.recv(1)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        stops.extend((thread.join, server.close))
        return HttpClient(f'127.0.0.1:{server.getsockname()[1]}', timeout), requests

    yield start
    for stop in stops:
        stop()


SILENCE = b''


def answer(status: int, value: object, media_type: str = 'application/json') -> bytes:
    body = json.dumps(value).encode()
    head = f'HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n'
    return head.encode() + body


def problem(status: int, **fields: object) -> bytes:
    return answer(status, fields, 'application/problem+json')


def test_pages_are_followed_as_far_as_they_are_wanted(answering: Answering) -> None:
    pages = [{'items': [{'n': 1}, {'n': 2}], 'next': 'a/b'}, {'items': [{'n': 3}], 'next': None}]
    client, requests = answering(*(answer(200, page) for page in pages))
    items = client.items(path_of('groups', 'a/b c', 'dead'), topic='t', partition=None)
    assert next(items) == {'n': 1}
    assert len(requests) == 1
    assert list(items) == [{'n': 2}, {'n': 3}]
    assert [request.split(b'\r\n')[0] for request in requests] == [
        b'GET /v1/groups/a%2Fb%20c/dead?limit=1000&topic=t HTTP/1.1',
        b'GET /v1/groups/a%2Fb%20c/dead?limit=1000&topic=t&cursor=a%2Fb HTTP/1.1',
    ]


def test_no_content_is_none(answering: Answering) -> None:
    client, requests = answering(b'HTTP/1.1 204 No Content\r\n\r\n')
    assert client.post(path_of('groups', 'g', 'pause'), {'reason': 'x'}) is None
    assert requests[0].startswith(b'POST /v1/groups/g/pause HTTP/1.1\r\n')


def test_problems_are_one_line(answering: Answering) -> None:
    client, _ = answering(
        problem(422, title='Unprocessable', detail='/last: not\n before first', code='INVALID_REQUEST'),
        problem(503, title='Service Unavailable'),
        problem(404, detail='There is no group g', code='GROUP_ID_NOT_FOUND'),
    )
    with pytest.raises(HttpRefused, match=r'^/last: not before first \(INVALID_REQUEST\)$') as refused:
        client.get('/v1')
    assert (refused.value.status, refused.value.code) == (422, 'INVALID_REQUEST')
    with pytest.raises(HttpRefused, match=r'^Service Unavailable$'):
        client.get('/v1')
    with pytest.raises(HttpNotFound, match='There is no group g'):
        client.get('/v1')


@pytest.mark.parametrize(
    'said',
    [
        answer(200, 'hello', 'text/html'),
        answer(502, {}, 'text/plain'),
        b'HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{',
        answer(500, {'error': 'another API'}),
        b'SSH-2.0-OpenSSH_9.6\r\n',
    ],
    ids=['a web page', 'a proxy', 'no JSON', 'another API', 'no HTTP'],
)
def test_what_is_not_acklog(answering: Answering, said: bytes) -> None:
    client, _ = answering(said)
    with pytest.raises(Unsupported, match='what answers at 127'):
        client.get('/v1')


def test_an_answer_that_ends_in_the_middle(answering: Answering) -> None:
    client, _ = answering(b'HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{')
    with pytest.raises(Disconnected, match='closed the connection before it had answered'):
        client.get('/v1')


def test_no_answer_in_time(answering: Answering) -> None:
    client, _ = answering(SILENCE, timeout=0.1)
    with pytest.raises(TimedOut, match=r'did not answer in 0\.1 s'):
        client.get('/v1')


def test_a_name_that_is_none() -> None:
    with pytest.raises(Unreachable, match='no server answers at http://nowhere'):
        HttpClient('http://nowhere.invalid').get('/v1')


@pytest.mark.parametrize(
    'address', ['', 'http://', 'ftp://a', 'a:b', 'a:0', 'a:70000', 'http://a b', 'http://u@a', 'a?x']
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ConfigError, match='http='):
        HttpClient(address)


@pytest.mark.parametrize('address', ['a', 'a:1', 'http://a', 'https://a/acklog/', '[::1]:8080', 'http://[::1]'])
def test_addresses(address: str) -> None:
    HttpClient(address)


def test_bytes() -> None:
    assert [to_bytes(value) for value in (None, '', 'a\u00fc', {'base64': '/wAB'})] == [
        None,
        b'',
        b'a\xc3\xbc',
        b'\xff\x00\x01',
    ]
