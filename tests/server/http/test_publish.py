"""Publishing, and looking at a record."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest
from tests.server.http.asking import problem

pytestmark = pytest.mark.system


def publish(api: httpx.Client, topic: str, *records: dict[str, Any], **more: Any) -> list[dict[str, int]]:
    headers = more.pop('headers', {})
    answer = api.post(f'/v1/topics/{topic}/records', json={'records': records, **more}, headers=headers)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, int]] = answer.json()['items']
    return items


def record(api: httpx.Client, topic: str, place: dict[str, int], **more: Any) -> httpx.Response:
    return api.get(f'/v1/topics/{topic}/partitions/{place["partition"]}/records/{place["offset"]}', **more)


@pytest.mark.parametrize(
    ('value', 'shown'),
    [
        ('text', 'text'),
        ('ä€😀', 'ä€😀'),
        ('', ''),
        ('\x00', '\x00'),
        (None, None),
        ({'base64': '/wAB'}, {'base64': '/wAB'}),
        ({'base64': base64.b64encode(b'text').decode()}, 'text'),
        ({'base64': ''}, ''),
    ],
)
def test_values(api: httpx.Client, topic: str, value: Any, shown: Any) -> None:
    new = {'value': value, 'key': value, 'headers': [{'name': 'a', 'value': value}, {'name': 'a'}]}
    [place] = publish(api, topic, new)
    found = record(api, topic, place).json()
    assert (found['value'], found['key']) == (shown, shown)
    assert found['headers'] == [{'name': 'a', 'value': shown}, {'name': 'a', 'value': None}]


def test_a_batch(api: httpx.Client, topic: str) -> None:
    places = publish(
        api, topic, *({'value': str(index), 'partition': index % 2} for index in range(10)), acks='written'
    )
    assert places == [{'partition': index % 2, 'offset': index // 2} for index in range(10)]
    assert [record(api, topic, place).json()['value'] for place in places] == [str(index) for index in range(10)]


def test_records_of_a_key_stay_together(api: httpx.Client, topic: str) -> None:
    places = publish(api, topic, *({'value': 'v', 'key': f'k{index % 5}'} for index in range(20)))
    assert len({(index % 5, place['partition']) for index, place in enumerate(places)}) == 5


def test_a_time(api: httpx.Client, topic: str) -> None:
    now = api.get('/v1').json()['now_ms']
    named, other = publish(api, topic, {'value': 'a', 'timestamp_ms': now - 5000}, {'value': 'b'})
    assert record(api, topic, named).json()['timestamp_ms'] == now - 5000
    assert 0 <= record(api, topic, other).json()['timestamp_ms'] - now < 10_000


def test_bytes_as_they_are(api: httpx.Client, topic: str) -> None:
    raw = {'content-type': 'application/octet-stream'}
    data = bytes(range(256))
    answer = api.post(f'/v1/topics/{topic}/records?key=k&partition=1', content=data, headers=raw)
    [place] = answer.json()['items']
    assert place['partition'] == 1
    shown = record(api, topic, place, headers={'accept': 'application/octet-stream'})
    assert (shown.content, shown.headers['content-type']) == (data, 'application/octet-stream')
    assert record(api, topic, place).json()['key'] == 'k'
    assert api.post(f'/v1/topics/{topic}/records?key=k', json={'records': [{'value': 'a'}]}).status_code == 422


def test_the_same_publication_again(api: httpx.Client, topic: str) -> None:
    headers = {'Idempotency-Key': 'order-1042'}
    first = publish(api, topic, {'value': 'a'}, {'value': 'b'}, headers=headers)
    assert publish(api, topic, {'value': 'a'}, {'value': 'b'}, headers=headers) == first
    ends = [partition['end'] for partition in api.get(f'/v1/topics/{topic}').json()['partitions']]
    assert sum(ends) == 2
    other = publish(api, topic, {'value': 'a'}, {'value': 'b'}, headers={'Idempotency-Key': 'order-1043'})
    assert other != first


@pytest.mark.parametrize('key', ['', 'a' * 256, 'with blank', 'ä'.encode()])
def test_a_key_that_is_none(api: httpx.Client, topic: str, key: Any) -> None:
    answer = api.post(
        f'/v1/topics/{topic}/records', json={'records': [{'value': 'a'}]}, headers={'Idempotency-Key': key}
    )
    assert (answer.status_code, problem(answer)['errors'][0]['parameter']) == (400, 'Idempotency-Key')


def test_what_is_refused(api: httpx.Client, topic: str, name: str) -> None:
    def post(topic: str, record: dict[str, Any]) -> dict[str, Any]:
        return problem(api.post(f'/v1/topics/{topic}/records', json={'records': [record]}))

    assert post(f'{name}-missing', {'value': 'a'})['status'] == 404
    assert post(topic, {'value': 'a', 'partition': 7})['status'] == 404
    api.patch(f'/v1/topics/{topic}/configs', json={'configs': {'max.message.bytes': '1000'}})
    assert post(topic, {'value': 'a' * 2000})['code'] == 'MESSAGE_TOO_LARGE'


def test_no_such_record(api: httpx.Client, topic: str, name: str) -> None:
    assert problem(record(api, topic, {'partition': 0, 'offset': 0}))['status'] == 404
    assert problem(record(api, topic, {'partition': 9, 'offset': 0}))['status'] == 404
    assert problem(record(api, f'{name}-missing', {'partition': 0, 'offset': 0}))['status'] == 404
