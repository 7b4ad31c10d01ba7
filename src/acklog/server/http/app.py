"""The API as an ASGI application: the request's way from headers to operation to answer.

Strategy: Starlette's router finds the path (undecoded, so that a name may hold a slash as %2F); the operation is one
`Endpoint`; every error, those of the router included, becomes a problem object here. What is no error of ours is a bug:
logged with its traceback, answered with 500, and the connection goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response
from starlette.routing import Route, Router

from acklog.broker.api import Caller
from acklog.errors import AcklogError
from acklog.server.addresses import show_address
from acklog.server.http.endpoint import CONNECTION, JSON, Call, Endpoint, Raw, Stream
from acklog.server.http.hosts import Hosts
from acklog.server.http.problems import MEDIA_TYPE, Problem, problem_of
from acklog.server.http.reading import Disconnected, body_value, path_values, query_values, read_body
from acklog.server.http.routes import ENDPOINTS
from acklog.server.rate_limit import RateLimited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from acklog.server.http.listener import HttpListener

complaints = RateLimited(logging.getLogger('acklog.http'))

ALWAYS = {'cache-control': 'no-store', 'x-content-type-options': 'nosniff'}
LONGEST_AGENT = 256
MOST_HEAD_BYTES = 16 << 10


class App:
    """All operations."""

    def __init__(self, listener: HttpListener, endpoints: Sequence[Endpoint] = ENDPOINTS) -> None:
        self._listener = listener
        paths: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        routes = [Route(path, _Path(listener, methods)) for path, methods in paths.items()]
        self._router = Router(routes, redirect_slashes=False, default=_nowhere)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp
        try:
            headers = _headers(scope)
            scope['path'] = _path(scope, headers)
            self._check_host(headers)
            scope['acklog.headers'] = headers
            await self._router(scope, receive, send)
            return
        except Disconnected:
            return
        except AcklogError as error:
            answer = _problem(problem_of(error))
        except Exception as error:
            where = f'{scope["method"]} {scope["path"]}'
            complaints.error('bug', '%s failed: this is a bug', where, exc_info=error)
            answer = _problem(Problem(500, 'The server failed; its log says how.'))
        await answer(scope, receive, send)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        listener = self._listener
        settings = listener.broker.settings
        names = {listener.host, listener.broker.node.host, *settings.items('acklog.http.hosts')}
        hosts = Hosts(names)
        host = headers.get('host', '')
        if not hosts.allows(host):
            raise Problem(421, f'{host!r} is no name of this server; acklog.http.hosts may list more.')
        origin = headers.get('origin')
        if origin is not None and not hosts.allows_origin(origin, host):
            raise Problem(403, f'Web pages of {origin!r} may not use this server; acklog.http.hosts may list more.')


class _Path:
    """All operations on one path."""

    def __init__(self, listener: HttpListener, methods: Mapping[str, Endpoint]) -> None:
        self._listener = listener
        self._methods = dict(methods)
        self._allow = ', '.join(sorted({*methods, *(['HEAD'] if 'GET' in methods else [])}))
        if 'GET' in methods:
            self._methods['HEAD'] = methods['GET']

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._methods.get(scope['method'])
        if endpoint is None:
            words = f'{scope["method"]} is not possible here; what is: {self._allow}.'
            raise Problem(405, words, headers={'allow': self._allow})
        headers = scope['acklog.headers']
        arguments: dict[str, Any] = path_values(endpoint, scope['path_params'])
        query = query_values(endpoint, scope['query_string'])
        if endpoint.query is not None:
            arguments['query'] = query
        if endpoint.body is None:
            await self._answer(endpoint, arguments, scope, receive, send)
            return
        body = await read_body(self._listener, headers, receive)
        budget, size = self._listener.budget, len(body)
        budget.take(size)
        try:
            arguments['body'] = body_value(endpoint, headers, body)
            del body
            await self._answer(endpoint, arguments, scope, receive, send)
        finally:
            budget.give_back(size)

    async def _answer(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = scope['acklog.headers']
        caller = Caller(_client(scope), client_id=headers.get('user-agent', '')[:LONGEST_AGENT] or None)
        call = Call(self._listener, caller, headers)
        if endpoint.waits:
            watch = asyncio.ensure_future(_watch(caller, receive))
            try:
                answer = await endpoint.handle(call, **arguments)
            finally:
                watch.cancel()
            if caller.closed and call.unsent is None:
                raise Disconnected
        else:
            answer = await endpoint.handle(call, **arguments)
        if call.unsent is not None and not scope['state'][CONNECTION].answers(call.unsent):
            raise Disconnected
        if isinstance(answer, Stream):
            await _send_stream(answer, caller, receive, send)
        else:
            await _response(endpoint, call, answer)(scope, receive, send)


async def _watch(caller: Caller, receive: Receive) -> None:
    """Let those who wait for this caller know that it is gone."""
    while (await receive())['type'] != 'http.disconnect':
        pass
    caller.closed = True
    callbacks, caller.on_close = caller.on_close, {}
    for callback in callbacks:
        callback()


async def _send_stream(stream: Stream, caller: Caller, receive: Receive, send: Send) -> None:
    head = _with({'content-type': stream.media_type})
    headers = [(name.encode(), value.encode()) for name, value in head.items()]
    await send({'type': 'http.response.start', 'status': 200, 'headers': headers})
    watch = asyncio.ensure_future(_watch(caller, receive))
    try:
        async with contextlib.aclosing(stream.pieces) as pieces:
            async for piece in pieces:
                await send({'type': 'http.response.body', 'body': piece, 'more_body': True})
                if caller.closed:
                    return
    finally:
        watch.cancel()
    await send({'type': 'http.response.body', 'body': b'', 'more_body': False})


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    raise Problem(404, f'There is no {scope["path"]!r}; /v1/openapi.json lists what there is.')


def _response(endpoint: Endpoint, call: Call, answer: Any) -> Response:
    if isinstance(answer, Raw):
        return Response(answer.body, endpoint.status, _with(answer.headers), media_type=answer.media_type)
    if answer is None:
        return Response(None, 204, _with({}))
    more = {} if call.location is None else {'location': call.location}
    return Response(msgspec.json.encode(answer), endpoint.status, _with(more), media_type=JSON)


def _problem(problem: Problem) -> Response:
    body = msgspec.json.encode(problem.fields())
    return Response(body, problem.status, _with(problem.headers), media_type=MEDIA_TYPE)


def _with(headers: Mapping[str, str]) -> dict[str, str]:
    return {'date': formatdate(usegmt=True), **ALWAYS, **headers}


def _path(scope: Scope, headers: dict[str, str]) -> str:
    """Of the request's target. One that is a whole URL, as proxies send it, names the host too (RFC 9112, 3.2.2)."""
    target: str = scope['raw_path'].decode('ascii')
    scheme, mark, rest = target.partition('://')
    if target.startswith('/') or not mark or scheme.lower() not in ('http', 'https'):
        return target
    headers['host'], slash, path = rest.partition('/')
    return slash + path or '/'


def _headers(scope: Scope) -> dict[str, str]:
    """By name; those that come more than once are joined. Raises Problem."""
    size = len(scope['raw_path']) + len(scope['query_string'])
    size += sum([len(name) + len(value) for name, value in scope['headers']])
    if size > MOST_HEAD_BYTES:  # it came in one piece: else the connection was closed before
        raise Problem(
            431, f'The head of a request has at most {MOST_HEAD_BYTES} bytes.', headers={'connection': 'close'}
        )
    headers: dict[str, str] = {}
    for name, value in scope['headers']:
        key, text = name.decode('latin-1'), value.decode('latin-1')
        if key == 'host' and key in headers:
            raise Problem(400, 'There is more than one Host header.')
        headers[key] = f'{headers[key]}, {text}' if key in headers else text
    return headers


def _client(scope: Scope) -> str:
    client = scope.get('client')
    return show_address(*client) if client else 'unknown'
