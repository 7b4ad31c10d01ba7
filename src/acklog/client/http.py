"""A client for acklog's HTTP API: one request at a time, with nothing but the standard library.

Strategy: a connection for each call, closed behind it, so that nothing has gone stale while a person was asked.
Whatever goes wrong is an error of this package with one line that says what: `Unreachable`, `TimedOut` and
`Disconnected` as over the Kafka protocol, and `HttpRefused` (`HttpNotFound` for 404) with the words of the problem
object (RFC 9457).
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from acklog.client.errors import ClientError, Disconnected, TimedOut, Unreachable, Unsupported
from acklog.errors import ConfigError

DEFAULT_PORT = 8080
LONGEST_PAGE = 1_000
PROBLEM = 'application/problem+json'

_ALLOWED = 'http://HOST:PORT or HOST:PORT (an IPv6 address in brackets), with https:// behind a proxy that offers it'


class HttpRefused(ClientError):
    """The server answered with an error. `status`: that of HTTP; `code`: Kafka's name for it, if there is one."""

    def __init__(self, status: int, words: str, code: str | None = None) -> None:
        super().__init__(f'{words} ({code})' if code else words)
        self.status, self.words, self.code = status, words, code


class HttpNotFound(HttpRefused):
    """There is no such topic, group, member or record."""


class HttpClient:
    """The API at one address. `timeout`: seconds that the server may be silent, for connecting too."""

    def __init__(self, address: str, timeout: float = 10.0) -> None:
        """`address`: http://HOST:PORT or HOST:PORT; the port is 8080 where none is given. Raises ConfigError."""
        parts = urlsplit(address if '://' in address else f'http://{address}')
        try:
            port = parts.port
        except ValueError:
            raise ConfigError('http', address, _ALLOWED) from None
        bad = parts.username is not None or parts.query or parts.fragment or any(c.isspace() for c in address)
        if parts.scheme not in ('http', 'https') or not parts.hostname or port == 0 or bad:
            raise ConfigError('http', address, _ALLOWED)
        self.address, self.timeout = address, timeout
        self._host, self._prefix = parts.hostname, parts.path.rstrip('/')
        self._secure = parts.scheme == 'https'
        self._port = port or (443 if self._secure else DEFAULT_PORT)

    def get(self, path: str, **query: Any) -> Any:
        """What is at that path. Parameters that are None are left out. Raises ClientError."""
        return self.call('GET', path, query=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to this body; None where there is nothing to say. Raises ClientError."""
        return self.call('POST', path, body=body)

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page, each page asked for when it is needed. Raises ClientError."""
        cursor = None
        while True:
            page = self.get(path, **{'limit': LONGEST_PAGE, **query}, cursor=cursor)
            yield from page['items']
            cursor = page['next']
            if cursor is None:
                return

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """One request; `path` as `path_of` makes it. The JSON of the answer, None if it has no body.

        Raises ClientError; after Disconnected and TimedOut it may or may not have been done."""
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        target = self._prefix + path + (f'?{urlencode(given, quote_via=quote)}' if given else '')
        headers = {'Accept': f'application/json, {PROBLEM}', 'Connection': 'close'}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers['Content-Type'] = 'application/json'
        status, media_type, answer = self._exchange(method, target, data, headers)
        return self._understood(status, media_type, answer)

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str, bytes]:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self.timeout)
        try:
            self._connect(connection)
            connection.request(method, target, data, dict(headers))
            response = connection.getresponse()
            return response.status, response.headers.get_content_type(), response.read()
        except TimeoutError:
            raise TimedOut(f'{self.address} did not answer in {self.timeout:g} s') from None
        except (http.client.RemoteDisconnected, http.client.IncompleteRead, ConnectionError):
            raise Disconnected(f'{self.address} closed the connection before it had answered') from None
        except http.client.HTTPException:
            raise Unsupported(f'what answers at {self.address} does not speak HTTP') from None
        finally:
            connection.close()

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except TimeoutError:
            raise Unreachable(f'no server answers at {self.address}: nothing came in {self.timeout:g} s') from None
        except ConnectionRefusedError:
            raise Unreachable(f'no server answers at {self.address}: the connection was refused') from None
        except OSError as error:
            raise Unreachable(f'no server answers at {self.address}: {error.strerror or error}') from None

    def _understood(self, status: int, media_type: str, answer: bytes) -> Any:
        if status == 204:
            return None
        foreign = Unsupported(
            f"what answers at {self.address} is not acklog's HTTP API (status {status}, {media_type})"
        )
        if media_type not in ('application/json', PROBLEM):
            raise foreign
        try:
            value = json.loads(answer)
        except ValueError:
            raise foreign from None
        if status < 400:
            return value
        if media_type != PROBLEM or not isinstance(value, dict):
            raise foreign
        raise _refusal(status, value)


def _refusal(status: int, problem: Mapping[str, Any]) -> HttpRefused:
    words = ' '.join(str(problem.get('detail') or problem.get('title') or f'status {status}').split())
    code = problem.get('code')
    return (HttpNotFound if status == 404 else HttpRefused)(status, words, None if code is None else str(code))


def path_of(*segments: str | int) -> str:
    """The path under /v1 of these names, each percent-encoded: they may hold anything. Raises HttpNotFound for a name
    that is empty: there would be another path, or none."""
    if '' in segments:
        raise HttpNotFound(404, 'nothing has an empty name')
    return '/v1/' + '/'.join(quote(str(segment), safe='') for segment in segments)


def to_bytes(value: Any) -> bytes | None:
    """The bytes of a key, a value or a header's value as the API writes them."""
    if isinstance(value, dict):
        return base64.b64decode(value['base64'])
    return None if value is None else str(value).encode()
