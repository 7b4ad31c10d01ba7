"""Every error is a problem object, and names what is wrong."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
from tests.server.http.asking import Wire, listener_of, problem
from tests.server.http.conftest import ServeHttp

from acklog.server.http.app import App
from acklog.server.http.endpoint import Call, endpoint
from acklog.wire.error_words import TOPIC_RULE

pytestmark = pytest.mark.system

JSON = {'content-type': 'application/json'}


def test_no_such_path(api: httpx.Client) -> None:
    assert problem(api.get('/v2/nothing'))['title'] == 'Not Found'


def test_no_such_method(api: httpx.Client) -> None:
    answer = api.put('/v1/topics')
    assert (answer.status_code, answer.headers['allow']) == (405, 'GET, HEAD, POST')
    assert 'PUT' in problem(answer)['detail']


@pytest.mark.parametrize(
    ('body', 'errors'),
    [
        (b'{"name": 7}', [{'pointer': '/name', 'detail': 'Expected `str`, got `int`'}]),
        (b'{"name": ""}', [{'pointer': '/name', 'detail': TOPIC_RULE}]),
        (b'{}', [{'pointer': '/name', 'detail': 'missing'}]),
        (
            b'{"name": "a", "partitons": 3}',
            [{'pointer': '/partitons', 'detail': 'unknown; known are: name, partitions, configs, dry_run'}],
        ),
        (b'{"name": "a", "partitions": 0}', [{'pointer': '/partitions', 'detail': 'Expected `int` >= 1'}]),
        (
            b'{"name": "a", "configs": {"cleanup.policy": "delete", "retention.ms": 5, "segment.ms": 6}}',
            [{'pointer': '/configs/retention.ms', 'detail': 'Expected `str`, got `int`'}],
        ),
        (
            b'{"name": "a", "configs": {"retention.ms": 5}, and no JSON from here on',
            [{'pointer': '/configs/...', 'detail': 'Expected `str`, got `int`'}],
        ),
        (b'[]', [{'pointer': '', 'detail': 'Expected `object`, got `array`'}]),
    ],
)
def test_a_body_that_is_not_as_it_should_be(api: httpx.Client, body: bytes, errors: list[dict[str, str]]) -> None:
    answer = api.post('/v1/topics', content=body, headers=JSON)
    assert (answer.status_code, problem(answer)['errors']) == (400, errors)


@pytest.mark.parametrize('body', [b'{"name":', b'', b'\xff', b'{"name": "\xff"}', b'nothing', b'{"name": "a"} {}'])
def test_a_body_that_is_no_json(api: httpx.Client, body: bytes) -> None:
    answer = api.post('/v1/topics', content=body, headers=JSON)
    assert answer.status_code == 400
    assert problem(answer)['detail'].startswith('The body is no JSON')


@pytest.mark.parametrize('content', [b'', None])
def test_a_body_that_is_empty(api: httpx.Client, content: bytes | None) -> None:
    answer = api.post('/v1/topics', content=content, headers=JSON)
    assert (answer.status_code, problem(answer)['detail']) == (400, 'The body is no JSON: it is empty')


def test_whole_numbers_may_be_written_as_any(api: httpx.Client, name: str) -> None:
    body = f'{{"name": "{name}", "partitions": 2.0}}'.encode()
    assert api.post('/v1/topics', content=body, headers=JSON).json()['partitions'] == 2
    wrong = problem(api.post('/v1/topics', content=body.replace(b'2.0', b'2.5'), headers=JSON))
    assert wrong['errors'] == [{'pointer': '/partitions', 'detail': 'Expected `int | null`, got `float`'}]


@pytest.mark.parametrize('body', [b'[' * 100_000, b'{"name": ' + b'[' * 100_000, b'{"a":' * 100_000])
def test_what_is_nested_without_end(api: httpx.Client, body: bytes) -> None:
    assert api.post('/v1/topics', content=body, headers=JSON).status_code == 400
    deep = b'{"records": [{"value": "", "partition": 1.0}, {"value": ' + b'[' * 100_000
    assert api.post('/v1/topics/a/records', content=deep, headers=JSON).status_code == 400


def test_a_field_deep_inside(api: httpx.Client) -> None:
    body = {'records': [{'value': 'a'}, {'value': {'base64': '!'}}]}
    answer = api.post('/v1/topics/a/records', json=body)
    assert problem(answer)['errors'] == [
        {'pointer': '/records/1/value/base64', 'detail': 'Invalid base64 encoded string'}
    ]


@pytest.mark.parametrize(
    ('query', 'parameter', 'words'),
    [
        ('limit=0', 'limit', 'Expected `int` >= 1'),
        ('limit=x', 'limit', 'Expected `int`, got `str`'),
        ('limt=1', 'limt', 'unknown; known are: cursor, limit'),
        ('limit=1&limit=2', 'limit', 'given more than once'),
    ],
)
def test_a_parameter(api: httpx.Client, query: str, parameter: str, words: str) -> None:
    answer = api.get(f'/v1/topics?{query}')
    assert (answer.status_code, problem(answer)['errors']) == (400, [{'parameter': parameter, 'detail': words}])


def test_a_part_of_the_path(api: httpx.Client) -> None:
    answer = api.get('/v1/topics/a/partitions/x/records/1')
    assert problem(answer)['errors'][0]['parameter'] == 'partition'
    assert api.get('/v1/groups/%FF').status_code == 400
    assert api.get('/v1/topics/%2e%2e%2f').status_code == 400


@pytest.mark.parametrize('where', ['header', 'headers', 'path', 'query'])
def test_a_head_that_is_too_large(api: httpx.Client, where: str) -> None:
    """In one piece; in several the connection is closed when it gets too large."""
    host, port = api.base_url.host, api.base_url.port or 80
    headers = {'header': 'a: ' + 'x' * 20_000 + '\r\n', 'headers': 'a: xxxxxxxx\r\n' * 2000}.get(where, '')
    path = {'path': '/v1/topics/' + 'x' * 20_000, 'query': '/v1/topics?limit=' + '1' * 20_000}.get(where, '/v1')
    with socket.create_connection((host, port)) as client:
        client.sendall(f'GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n'.encode())
        client.settimeout(10)
        said = b''
        while piece := client.recv(65_536):
            said += piece
    assert said.startswith((b'HTTP/1.1 431 ', b'HTTP/1.1 400 ')), said[:200]
    assert b'"status":431' in said or b'"status": 400' in said


@pytest.mark.parametrize(
    ('target', 'status'),
    [
        ('http://localhost/v1/topics?limit=1', 200),
        ('HTTP://127.0.0.1:8080/v1', 200),
        ('http://localhost', 404),
        ('http://evil.example/v1', 421),
        ('ftp://localhost/v1', 404),
    ],
)
def test_a_target_that_is_a_whole_url(api: httpx.Client, target: str, status: int) -> None:
    """It says what host is meant, whatever the Host header does."""
    with socket.create_connection((api.base_url.host, api.base_url.port or 80)) as client:
        client.sendall(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'.encode())
        client.settimeout(10)
        assert client.recv(65_536).startswith(f'HTTP/1.1 {status} '.encode())


@pytest.mark.parametrize('kind', ['application/x-www-form-urlencoded', 'text/plain', ''])
def test_another_media_type(api: httpx.Client, kind: str) -> None:
    answer = api.post('/v1/topics', content=b'{"name": "a"}', headers={'content-type': kind} if kind else {})
    assert (answer.status_code, answer.headers['accept']) == (415, 'application/json')
    problem(answer)


def test_a_media_type_with_a_parameter(api: httpx.Client, name: str) -> None:
    headers = {'content-type': 'Application/JSON; charset=utf-8'}
    assert api.post('/v1/topics', content=f'{{"name": "{name}"}}', headers=headers).status_code == 201


def test_the_words_of_the_broker(api: httpx.Client, topic: str) -> None:
    again = problem(api.post('/v1/topics', json={'name': topic}))
    assert (again['status'], again['code']) == (409, 'TOPIC_ALREADY_EXISTS')
    missing = problem(api.get('/v1/groups/nobody'))
    assert (missing['status'], missing['code']) == (404, 'GROUP_ID_NOT_FOUND')
    refused = problem(api.post('/v1/topics', json={'name': '__mine'}))
    assert (refused['status'], refused['code']) == (422, 'INVALID_TOPIC_EXCEPTION')


def test_a_connection_goes_on_after_errors(api: httpx.Client) -> None:
    for _ in range(3):
        assert api.get('/nowhere').status_code == 404
        assert api.get('/v1').status_code == 200


async def test_what_is_no_http(serve_http: ServeHttp) -> None:
    server, _ = await serve_http()
    wire = await Wire.open(server)
    await wire.say(b'\x00\x00\x00\x10nonsense\r\n\r\n')
    head, _, body = (await wire.rest()).partition(b'\r\n\r\n')
    assert head.startswith(b'HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json')
    assert b'"status": 400' in body
    wire.close()


async def test_a_body_that_is_too_large(serve_http: ServeHttp) -> None:
    _, client = await serve_http(acklog_http_max_body_bytes=1024)

    async def pieces() -> Any:
        for _ in range(100):
            yield b' ' * 100

    told = await client.post('/v1/topics', content=b' ' * 10_000, headers=JSON)
    untold = await client.post('/v1/topics', content=pieces(), headers=JSON)
    for answer in (told, untold):
        assert answer.status_code == 413
        assert 'acklog.http.max.body.bytes' in problem(answer)['detail']
    assert (await client.get('/v1')).status_code == 200


async def test_one_that_is_refused_is_not_sent_if_the_client_asks_first(serve_http: ServeHttp) -> None:
    server, _ = await serve_http(acklog_http_max_body_bytes=1024)
    wire = await Wire.open(server)
    head = b'POST /v1/topics HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n'
    await wire.say(head + b'content-length: 5000\r\n\r\n')
    assert (await wire.answer()).startswith(b'HTTP/1.1 413 ')
    wire.close()


@endpoint('GET', '/broken', tag='server')
async def broken(call: Call) -> None:
    """Fail as no operation should."""
    raise RuntimeError('a bug')


async def test_a_bug_is_answered_and_logged(serve_http: ServeHttp, caplog: pytest.LogCaptureFixture) -> None:
    server, _ = await serve_http()
    app = httpx.ASGITransport(app=App(listener_of(server), [broken]))
    async with httpx.AsyncClient(transport=app, base_url='http://localhost') as client:
        answer = await client.get('/broken')
    assert (answer.status_code, problem(answer)['title']) == (500, 'Internal Server Error')
    [record] = [each for each in caplog.records if each.name.startswith('acklog')]
    assert record.getMessage() == 'GET /broken failed: this is a bug'
    assert 'RuntimeError: a bug' in caplog.text
    caplog.clear()
