"""One cause, one text: the Python client says over the Kafka protocol what HTTP says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import acklog
from acklog.client import ClientError, Refused
from acklog.client.http import HttpClient, HttpRefused, path_of

if TYPE_CHECKING:
    from tests.conftest import Shared

    from acklog import BlockingClient

pytestmark = pytest.mark.system

LATER = 4_102_444_800_000
ONE_MORE = {'records': [{'value': 'x', 'partition': 2}]}

# the text, without its code; what asks for it over the Kafka protocol; path and body over HTTP. T: a topic and a group
CAUSES: list[tuple[str, Callable[[BlockingClient], Any], tuple[str, ...], Any]] = [
    ("there is no topic 'N'", lambda c: c.admin.describe_topic('N'), ('topics', 'N'), None),
    ("there is no topic 'N'", lambda c: c.admin.delete_topic('N'), ('topics', 'N', 'scheduled'), None),
    ("there is no topic 'N'", lambda c: c.admin.topic_configs('N'), ('topics', 'N', 'configs'), None),
    ("there is no topic 'N'", lambda c: c.admin.alter_topic_configs('N', {}), ('topics', 'N', 'records'), ONE_MORE),
    ("there is no topic 'N'", lambda c: c.admin.offsets('N', -1), ('groups', 'T', 'seek'), {'topic': 'N', 'offset': 0}),
    (
        "topic 'T' has the partitions 0 to 1, not 2",
        lambda c: c.publish('T', b'x', partition=2),
        ('topics', 'T', 'records'),
        ONE_MORE,
    ),
    ("there is no group 'N'", lambda c: c.admin.describe_group('N'), ('groups', 'N'), None),
    ("there is no group 'N'", lambda c: c.admin.delete_group('N'), ('groups', 'N', 'pause'), {}),
    ("there is no group 'N'", lambda c: c.admin.lag('N'), ('groups', 'N', 'lag'), None),
    ("there is a topic 'T' already", lambda c: c.admin.create_topic('T'), ('topics',), {'name': 'T'}),
    (
        "names that begin with '__' are kept for the server's own topics",
        lambda c: c.publish('__x', b'x'),
        ('topics',),
        {'name': '__x'},
    ),
    (
        "topic 'T' delivers at once; acklog.deliver.at.enable=true lets records wait",
        lambda c: c.publish('T', b'x', deliver_at=LATER),
        ('topics', 'T', 'records'),
        {'records': [{'value': 'x', 'deliver_at_ms': LATER}]},
    ),
]


@pytest.fixture
def there(shared: Shared) -> HttpClient:
    """The topic and the group T; N is neither."""
    api = HttpClient(shared.http)
    if all(each['name'] != 'T' for each in api.items(path_of('topics'))):
        api.post(path_of('topics'), {'name': 'T', 'partitions': 2})
    api.post(path_of('groups'), {'name': 'T'})
    return api


@pytest.mark.parametrize(('text', 'over_kafka', 'path', 'body'), CAUSES, ids=range(len(CAUSES)))
def test_one_cause_has_one_text(
    shared: Shared,
    there: HttpClient,
    text: str,
    over_kafka: Callable[[BlockingClient], Any],
    path: tuple[str, ...],
    body: Any,
) -> None:
    with acklog.connect_sync(shared.address) as client, pytest.raises(ClientError) as said:
        over_kafka(client)
    with pytest.raises(HttpRefused) as over_http:
        there.call('GET' if body is None else 'POST', path_of(*path), body=body)
    code = f' ({said.value.code.name})' if isinstance(said.value, Refused) else ''
    assert str(said.value).removeprefix("topic '__x': ") == text + code
    assert over_http.value.words == text


def test_a_group_that_has_members(shared: Shared, there: HttpClient, name: str) -> None:
    there.post(path_of('groups', name, 'acquire'), {'member': 'm', 'topics': ['T']})
    text = f"group '{name}' has members: stop its subscribers first"
    with acklog.connect_sync(shared.address) as client, pytest.raises(Refused) as said:
        client.admin.delete_group(name)
    with pytest.raises(HttpRefused) as over_http:
        there.call('DELETE', path_of('groups', name))
    assert str(said.value) == f'{text} (NON_EMPTY_GROUP)'
    assert over_http.value.words == text


def test_a_record_that_nobody_holds(shared: Shared, there: HttpClient, name: str) -> None:
    there.post(path_of('groups'), {'name': name})
    deferral = {'topic': 'T', 'partition': 0, 'offset': 0, 'after_ms': 1}
    for _ in ('nothing was taken', 'nothing is held'):
        with pytest.raises(HttpRefused) as refused:
            there.post(path_of('groups', name, 'defer'), deferral)
        assert str(refused.value) == 'offset 0: held by nobody, or not in that delivery (INVALID_RECORD_STATE)'
        there.post(path_of('groups', name, 'acquire'), {'member': 'm', 'topics': ['T']})


TOPIC = "a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"


@pytest.mark.parametrize('no_name', ['a b', 'x' * 250])
def test_a_name_that_no_topic_has(shared: Shared, there: HttpClient, no_name: str) -> None:
    with acklog.connect_sync(shared.address) as client:
        for asked in (
            lambda: client.admin.create_topic(no_name),
            lambda: client.publish(no_name, b'x'),
            lambda: client.admin.describe_topic(no_name),
            lambda: client.subscribe('T', no_name),
        ):
            with pytest.raises(Refused) as said:
                asked()
            assert str(said.value) == f'topic {no_name!r}: {TOPIC} (INVALID_TOPIC_EXCEPTION)'
    asked_over_http = [
        (path_of('topics'), {'name': no_name}, '/name'),
        (path_of('groups', 'T', 'acquire'), {'member': 'm', 'topics': ['T', no_name]}, '/topics/1'),
        (path_of('topics', no_name, 'records'), {'records': []}, "Parameter 'topic'"),
    ]
    for path, body, where in asked_over_http:
        with pytest.raises(HttpRefused) as over_http:
            there.post(path, body)
        assert over_http.value.words == f'{where}: {TOPIC}'


def test_a_name_that_no_group_has(shared: Shared, there: HttpClient) -> None:
    words = "a group's name has 1 to 255 characters"
    with acklog.connect_sync(shared.address) as client:
        for asked in (
            lambda: client.admin.alter_group_configs('g' * 256, {'share.auto.offset.reset': 'earliest'}),
            lambda: client.admin.group_configs('g' * 256),
            lambda: client.subscribe('g' * 256, 'T'),
        ):
            with pytest.raises(Refused, match=f': {words} '):
                asked()
    with pytest.raises(HttpRefused) as over_http:
        there.post(path_of('groups'), {'name': 'g' * 256})
    assert over_http.value.words == f'/name: {words}'
    with pytest.raises(HttpRefused) as over_http:
        there.get(path_of('groups', 'g' * 256, 'lag'))
    assert over_http.value.words == f"Parameter 'group': {words}"
    assert over_http.value.status == 400
