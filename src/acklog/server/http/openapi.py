"""The OpenAPI 3.1 document, made from the operations and their types.

JSON Schema comes from msgspec: names, bounds and words stand at the types. A query Struct becomes one parameter for
each of its fields. Every operation may be answered with any problem; those that are its own are listed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

import acklog
from acklog.server.http.endpoint import JSON, OCTETS, Endpoint
from acklog.server.http.problems import MEDIA_TYPE
from acklog.server.http.routes import ENDPOINTS

REF = '#/components/schemas/{name}'

TAGS = {
    'records': 'Publish records, and look at one.',
    'subscribing': 'Take records as a member of a group, and sign each one off.',
    'topics': 'Topics and their partitions.',
    'groups': 'Groups and their members.',
    'insight': 'Where the records of a group are, and why it gets nothing.',
    'waiting': 'Records that wait for a time.',
    'dead': 'Records that were given up.',
    'moving': 'Move a group to another place in the log, stop it and let it go on.',
    'scheduled': 'Records published for later.',
    'configs': 'Configs of topics, groups and the server.',
    'server': 'The server itself.',
}

WORDS = """\
acklog over HTTP. Times are milliseconds since 1970, UTC; offsets are those of the log. Bytes (keys, values, values of
headers) are a JSON string where they are UTF-8 text, else `{"base64": "..."}`, and `null` where there are none. Lists
come in pages: `next` of one is `cursor` for the one behind it. Errors are problem details (RFC 9457).
"""


class Fault(Struct, omit_defaults=True):
    """What is wrong with a part of the request."""

    detail: str
    pointer: Annotated[str | None, Meta(description='Into the body (RFC 6901).')] = None
    parameter: Annotated[str | None, Meta(description='Of the path or the query.')] = None


class ProblemDetails(Struct, omit_defaults=True):
    """Why a request was refused (RFC 9457)."""

    type: str
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    code: Annotated[str | None, Meta(description="Kafka's name of the error, where it has one.")] = None
    errors: list[Fault] = []


EVERY = (400, 403, 405, 421, 431, 500, 503)
WITH_BODY = (408, 413, 415)
STORING = (504, 507)


def document(endpoints: Sequence[Endpoint] = ENDPOINTS) -> dict[str, Any]:
    """The document, as JSON values."""
    schemas = _Schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = paths.setdefault(endpoint.path, {})
        path[endpoint.method.lower()] = _operation(endpoint, schemas)
    used = {endpoint.tag for endpoint in endpoints}
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'acklog',
            'version': acklog.__version__,
            'description': WORDS,
            'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
        },
        'servers': [{'url': '/'}],
        'tags': [{'name': name, 'description': words} for name, words in TAGS.items() if name in used],
        'paths': paths,
        'components': {
            'schemas': schemas.components,
            'responses': {
                'Problem': {
                    'description': 'Refused.',
                    'content': {MEDIA_TYPE: {'schema': schemas.of(ProblemDetails)}},
                }
            },
        },
    }


@functools.cache
def document_json() -> bytes:
    """The document of all operations."""
    return msgspec.json.format(msgspec.json.encode(document()), indent=1)


class _Schemas:
    """JSON Schemas of all types in bodies."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        types = [ProblemDetails]
        for endpoint in endpoints:
            types += [kind for kind in (endpoint.body, endpoint.answer) if kind not in (None, type(None), object)]
        types = list({id(kind): kind for kind in types}.values())
        schemas, self.components = msgspec.json.schema_components(types, ref_template=REF)
        self._schemas = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
        for schema in self.components.values():
            if 'description' in schema:
                schema['description'] = _flowing(schema['description'])

    def of(self, kind: Any) -> Mapping[str, Any]:
        return self._schemas[id(kind)]


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    summary, _, description = endpoint.words.partition('\n')
    operation: dict[str, Any] = {
        'operationId': endpoint.name,
        'tags': [endpoint.tag],
        'summary': summary.rstrip('.'),
    }
    if description.strip():
        operation['description'] = _flowing(description)
    parameters = [*_path_parameters(endpoint), *_query_parameters(endpoint), *_header_parameters(endpoint)]
    if parameters:
        operation['parameters'] = parameters
    if endpoint.body is not None:
        operation['requestBody'] = _request_body(endpoint, schemas)
    operation['responses'] = _responses(endpoint, schemas)
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [_parameter(name, 'path', _inline(kind), required=True) for name, kind in endpoint.path_types.items()]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    schema = _inline(endpoint.query)
    required = schema.get('required', [])
    return [
        _parameter(name, 'query', _not_null(part), required=name in required)
        for name, part in schema['properties'].items()
    ]


def _header_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        _parameter(name, 'header', {'type': 'string', 'pattern': pattern, 'description': words}, required=False)
        for name, (words, pattern) in endpoint.headers.items()
    ]


def _parameter(name: str, place: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    schema = dict(schema)
    parameter = {'name': name, 'in': place, 'required': required}
    if 'description' in schema:
        parameter['description'] = schema.pop('description')
    return parameter | {'schema': schema}


def _inline(kind: Any) -> dict[str, Any]:
    """The schema of a type that refers to no other."""
    [schema], components = msgspec.json.schema_components([kind], ref_template=REF)
    if '$ref' in schema:
        [schema] = components.values()
    return dict(schema)


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is there or not; it is never null."""
    schema = {key: value for key, value in schema.items() if not (key == 'default' and value is None)}
    if 'anyOf' in schema:
        parts = [part for part in schema.pop('anyOf') if part != {'type': 'null'}]
        [part] = parts
        schema = {**part, **schema}
    return schema


def _request_body(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {JSON: {'schema': schemas.of(endpoint.body)}}
    if endpoint.examples[0] is not None:
        content[JSON]['example'] = endpoint.examples[0]
    if endpoint.raw:
        content[OCTETS] = {'schema': {'type': 'string', 'contentMediaType': OCTETS}}
    return {'required': not endpoint.body_optional, 'content': content}


def _responses(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    status = 204 if endpoint.answer is type(None) else endpoint.status
    success: dict[str, Any] = {'description': HTTPStatus(status).phrase}
    if status == 201:
        location = {'description': 'Where it is.', 'schema': {'type': 'string', 'format': 'uri-reference'}}
        success['headers'] = {'location': location}
    if endpoint.answer is not type(None):
        success['content'] = {media_type: {} for media_type in endpoint.media_types}
        if JSON in endpoint.media_types:
            kind = endpoint.answer
            schema = {'type': 'object'} if kind is object else schemas.of(kind)
            success['content'][JSON]['schema'] = schema
            if endpoint.examples[1] is not None:
                success['content'][JSON]['example'] = endpoint.examples[1]
    changes = STORING if endpoint.method != 'GET' else ()
    refusals = {*EVERY, *endpoint.refuses, *(WITH_BODY if endpoint.body is not None else ()), *changes}
    problems = {str(status): {'$ref': '#/components/responses/Problem'} for status in sorted(refusals)}
    return {str(status): success, **problems}


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks of the source."""
    return '\n\n'.join(' '.join(part.split()) for part in text.strip().split('\n\n'))
