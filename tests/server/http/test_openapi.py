"""The OpenAPI document says what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import msgspec
import pytest

from acklog.server.http.endpoint import Endpoint
from acklog.server.http.openapi import TAGS, document
from acklog.server.http.routes import ENDPOINTS

DOCUMENT = document()


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == '$ref':
                yield inner
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def validator(schema: Any) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**schema, 'components': DOCUMENT['components']})


def test_all_references_lead_somewhere() -> None:
    for reference in set(references(DOCUMENT)):
        found: Any = DOCUMENT
        for step in reference.removeprefix('#/').split('/'):
            found = found[step]
        assert found


def test_schemas_are_json_schemas() -> None:
    for schema in DOCUMENT['components']['schemas'].values():
        jsonschema_rs.meta.validate({'$schema': 'https://json-schema.org/draft/2020-12/schema', **schema})


def test_every_operation_is_described() -> None:
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)
    for endpoint in ENDPOINTS:
        assert re.match(r'[A-Z].*\.$', endpoint.words.split('\n')[0]), endpoint.name
        assert endpoint.tag in TAGS
    assert {endpoint.tag for endpoint in ENDPOINTS} <= set(TAGS)


@pytest.mark.parametrize('endpoint', ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_examples_are_right(endpoint: Endpoint) -> None:
    operation = DOCUMENT['paths'][endpoint.path][endpoint.method.lower()]
    asked, answered = endpoint.examples
    if endpoint.body is not None and not endpoint.body_optional:
        assert asked is not None
    if asked is not None:
        msgspec.convert(asked, endpoint.body)
        validator(operation['requestBody']['content']['application/json']['schema']).validate(asked)
    if answered is not None:
        content = operation['responses'][str(endpoint.status)]['content']['application/json']
        validator(content['schema']).validate(answered)
    if endpoint.answer not in (object, type(None)):
        assert answered is not None


def test_it_is_served(api: httpx.Client) -> None:
    served = api.get('/v1/openapi.json')
    assert served.headers['content-type'] == 'application/json'
    assert served.json() == msgspec.json.decode(msgspec.json.encode(DOCUMENT))
    assert served.json()['openapi'] == '3.1.0'
