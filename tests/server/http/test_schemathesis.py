"""Schemathesis against the OpenAPI document: whatever may be sent is answered as the document says.

It makes requests from the schemas, right ones and wrong ones, and looks at every answer: no 5xx, no status, media type
or body that the document does not name, nothing wrong accepted and nothing right refused. What is right by its schema
may still be refused for what it says: 422. Half of the right ones are about a topic, a group and locks that are there.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from acklog.server.http.openapi import document
from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system

EXAMPLES = 6  # for each operation, besides those that cover each keyword of its schemas
NAME = 'schemathesis'  # of a topic and a group

CONFIG = schemathesis.Config.from_dict(
    {
        'generation': {'deterministic': True, 'max-examples': EXAMPLES},
        'checks': {
            'positive_data_acceptance': {'expected-statuses': ['2xx', '404', '409', '413', '422']},
            'not_a_server_error': {'expected-statuses': ['2xx', '4xx']},
        },
    }
)

schema = schemathesis.openapi.from_dict(document(), config=CONFIG).exclude(path='/v1/events')  # it does not end

LOCKS: list[str] = []


@pytest.fixture(scope='module')
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own, for its configs are changed too, with a topic whose records a group has taken, released and
    rejected."""
    process = ServerProcess(tmp_path_factory.mktemp('schemathesis') / 'data', {'http': '127.0.0.1:0'})
    process.start()
    with httpx.Client(base_url=process.http) as api:
        api.post('/v1/topics', json={'name': NAME, 'partitions': 2})
        configs = {'share.auto.offset.reset': 'earliest', 'acklog.retry.backoff': '1h'}
        api.patch(f'/v1/groups/{NAME}/configs', json={'configs': configs})
        records = [{'value': str(index), 'partition': index % 2} for index in range(100)]
        api.post(f'/v1/topics/{NAME}/records', json={'records': records})
        body = {'member': NAME, 'topics': [NAME], 'count': 60}
        taken = api.post(f'/v1/groups/{NAME}/acquire', json=body).json()['records']
        LOCKS[:] = [record['lock'] for record in taken]
        acks = [
            {'lock': lock, 'action': action} for lock, action in zip(LOCKS, ['release', 'reject'] * 15, strict=False)
        ]
        api.post(f'/v1/groups/{NAME}/acknowledge', json={'acknowledgements': acks})
    yield process
    process.stop()


def known(case: schemathesis.Case) -> None:
    """Let it be about what is there."""
    parameters, body = case.path_parameters, case.body
    for name in ('topic', 'group', 'member'):
        if name in parameters:
            parameters[name] = NAME
    if 'partition' in parameters:
        parameters |= {'partition': int(parameters['partition']) % 2, 'offset': int(parameters['offset']) % 100}
    if not isinstance(body, dict):
        return
    if 'topic' in body and body['topic'] is not None:
        body['topic'] = NAME
    if 'topics' in body:
        body['topics'] = [NAME]
    for name, size in (('partition', 2), ('offset', 100), ('first', 50), ('last', 100), ('deliveries', 3)):
        if body.get(name) is not None:
            body[name] = int(body[name]) % size
    for index, ack in enumerate(body.get('acknowledgements', ())):
        ack['lock'] = LOCKS[index % len(LOCKS)]


def small(case: schemathesis.Case) -> None:
    """Nobody waits long, and nothing large is made."""
    if isinstance(case.body, dict):
        for name, most in (('wait_ms', 10), ('partitions', 8)):
            if case.body.get(name) is not None:
                case.body[name] = min(case.body[name], most)


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_operation(case: schemathesis.Case, world: ServerProcess) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive:
        small(case)
        if case.operation.method != 'delete' and zlib.crc32(repr(case.body).encode()) % 2:
            known(case)
    case.call_and_validate(base_url=world.http, timeout=20)
    assert world.tracebacks() == 0, world.last_words()
