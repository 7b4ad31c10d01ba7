"""From a request to the values that its operation is called with. Whatever is wrong is named: field or parameter."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

import msgspec

from acklog.server.http.allowed import known_fields, known_values, rule
from acklog.server.http.endpoint import JSON, OCTETS, Endpoint
from acklog.server.http.problems import Problem

if TYPE_CHECKING:
    from starlette.types import Receive

    from acklog.server.http.listener import HttpListener

MOST_PARAMETERS = 100
_PLACE = re.compile(r'^(?P<words>.*?)(?: - at `(?P<place>(?:key in )?\$.*)`)?$', re.DOTALL)
_STEP = re.compile(r'\.([^.\[]+)|\[(\d+|\.\.\.)\]')
_BOUNDS = re.compile(r' (of length|matching regex) ')
UNNAMED = '...'  # what msgspec calls the names of a map, all of them
LOOKED_AT = 1000  # of these, to find the one that is meant
_FIELD = re.compile(r'^(Object missing required field|Object contains unknown field) `(.*)`$', re.DOTALL)


class Disconnected(Exception):
    """The client is gone in the middle of its request."""


# -- path and query ----------------------------------------------------------------------------------------------------


def path_values(endpoint: Endpoint, texts: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of the path. `texts`: as they came. Raises Problem."""
    values = {}
    for name, text in texts.items():
        try:
            values[name] = msgspec.convert(unquote(text, errors='strict'), endpoint.path_types[name], strict=False)
        except msgspec.ValidationError as error:
            raise _wrong_parameter(name, _placed(str(error), endpoint.path_types[name])[0]) from None
        except UnicodeDecodeError as error:
            raise _wrong_parameter(name, str(error)) from None
    return values


def query_values(endpoint: Endpoint, query: bytes) -> Any:
    """The Struct of query parameters, None if the operation has none. Raises Problem."""
    try:
        pairs = parse_qsl(
            query.decode('ascii'), keep_blank_values=True, errors='strict', max_num_fields=MOST_PARAMETERS
        )
    except ValueError as error:
        raise Problem(400, f'The query cannot be read: {error}') from None
    texts: dict[str, str] = {}
    known = {field.encode_name for field in msgspec.structs.fields(endpoint.query)} if endpoint.query else set()
    for name, text in pairs:
        if name not in known:
            raise _wrong_parameter(name, f'unknown; known are: {", ".join(sorted(known)) or "none"}')
        if name in texts:
            raise _wrong_parameter(name, 'given more than once')
        texts[name] = text
    if endpoint.query is None:
        return None
    try:
        values = msgspec.convert(texts, endpoint.query, strict=False)
    except msgspec.ValidationError as error:
        words, pointer = _placed(str(error), endpoint.query)
        raise _wrong_parameter(pointer.lstrip('/'), words) from None
    for name in texts:
        if getattr(values, name) is None:  # what is not there is left out, not called null
            raise _wrong_parameter(name, 'null is no value')
    return values


def _wrong_parameter(name: str, words: str) -> Problem:
    return Problem(400, f'Parameter {name!r}: {words}', faults=[{'parameter': name, 'detail': words}])


# -- body --------------------------------------------------------------------------------------------------------------


async def read_body(listener: HttpListener, headers: Mapping[str, str], receive: Receive) -> bytes:
    """All of the body, within bounds of size and time. Raises Problem, Disconnected."""
    limit = listener.limits.body_bytes
    declared = headers.get('content-length', '')
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    if not listener.budget.has_room:
        raise Problem(503, 'There are as many bytes of requests as queued.max.request.bytes allows.')
    try:
        async with asyncio.timeout(listener.limits.body_s):
            return await _whole(receive, limit)
    except TimeoutError:
        words = f'The body did not arrive in {listener.limits.body_s:.0f} s.'
        raise Problem(408, words, headers={'connection': 'close'}) from None


async def _whole(receive: Receive, limit: int) -> bytes:
    pieces, size = [], 0
    while True:
        message = await receive()
        if message['type'] == 'http.disconnect':
            raise Disconnected
        piece = message.get('body', b'')
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
        if not message.get('more_body', False):
            return pieces[0] if len(pieces) == 1 else b''.join(pieces)


def _too_large(limit: int) -> Problem:
    return Problem(413, f'A body has at most {limit} bytes (acklog.http.max.body.bytes).')


def body_value(endpoint: Endpoint, headers: Mapping[str, str], body: bytes) -> Any:
    """What the body says: a value of the operation's type, or the bytes as they are. Raises Problem."""
    media_type = headers.get('content-type', '').partition(';')[0].strip().lower()
    if endpoint.raw and media_type == OCTETS:
        return body
    if not body and endpoint.body_optional and media_type in ('', JSON):
        return endpoint.body()
    if media_type != JSON:
        accepted = JSON if not endpoint.raw else f'{JSON} or {OCTETS}'
        said = f'not {media_type}' if media_type else 'and the request names none'
        raise Problem(415, f'The body has to be {accepted} (Content-Type), {said}.', headers={'accept': accepted})
    if not body:
        words = 'it is empty'
        raise Problem(400, f'The body is no JSON: {words}', faults=[{'pointer': '', 'detail': words}])
    try:
        return _decoded(body, endpoint.body)
    except msgspec.ValidationError as error:
        words, pointer = _placed(str(error), endpoint.body, body)
        shown = pointer or 'the body'
        raise Problem(400, f'{shown}: {words}', faults=[{'pointer': pointer, 'detail': words}]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f'The body is no JSON: {error}', faults=[{'pointer': '', 'detail': str(error)}]) from None


def _decoded(body: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        if 'got `float`' not in str(error):
            raise
    return msgspec.convert(_with_whole_numbers(msgspec.json.decode(body)), kind)


def _with_whole_numbers(value: Any) -> Any:
    """`value` with 1.0 as 1: the same number, to JSON Schema and to writers that know no integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _with_whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(inner) for inner in value]
    return value


def _placed(message: str, kind: Any, body: bytes | None = None) -> tuple[str, str]:
    """(words, JSON pointer) of what msgspec says about a `kind`; the pointer names the field that is missing or unknown
    too, and the words say what is known instead."""
    match = _PLACE.match(message)
    assert match is not None
    words, place = match['words'], match['place'] or '$'
    steps = [name or index for name, index in _STEP.findall(place.removeprefix('key in ')[1:])]
    if body is not None and steps and steps[-1] == UNNAMED:
        steps[-1] = _name_in_map(body, kind, steps[:-1], message)
    if (named := _FIELD.match(words)) is not None:
        known = ', '.join(known_fields(kind, steps)) or 'none'
        words = 'missing' if 'missing' in named[1] else f'unknown; known are: {known}'
        steps.append(named[2])
    elif words.startswith('Invalid enum value'):
        words += f', not one of: {", ".join(known_values(kind, steps))}'
    elif _BOUNDS.search(words):
        words = rule(kind, steps) or words
    return words, ''.join(f'/{step.replace("~", "~0").replace("/", "~1")}' for step in steps)


def _name_in_map(body: bytes, kind: Any, steps: Sequence[str], message: str) -> str:
    """Which name it is of the map at that place: the one with which alone the body is refused in the same words."""
    try:
        whole = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):  # what is behind the fault is no JSON
        return UNNAMED
    inside = whole
    for step in steps:
        inside = inside[int(step)] if isinstance(inside, list) else inside[step]
    values: dict[str, Any] = dict(inside)
    for name in list(values)[:LOOKED_AT]:
        inside.clear()
        inside[name] = values[name]
        try:
            msgspec.convert(whole, kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return name
    return UNNAMED
