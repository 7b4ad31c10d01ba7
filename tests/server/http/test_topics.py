"""Topics, groups and configs over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest
from tests.server.http.asking import problem

pytestmark = pytest.mark.system


def test_a_topic_from_creation_to_deletion(api: httpx.Client, name: str) -> None:
    wanted = {'name': name, 'partitions': 2, 'configs': {'retention.ms': '60000'}}
    dry = api.post('/v1/topics', json=wanted | {'dry_run': True})
    assert (dry.status_code, api.get(f'/v1/topics/{name}').status_code) == (201, 404)
    made = api.post('/v1/topics', json=wanted)
    assert (made.status_code, made.headers['location']) == (201, f'/v1/topics/{name}')
    shown = api.get(made.headers['location']).json()
    assert shown == {
        'name': name,
        'id': made.json()['id'],
        'configs': {'retention.ms': '60000'},
        'partitions': [{'partition': index, 'start': 0, 'end': 0, 'size': 0} for index in range(2)],
    }
    assert api.patch(f'/v1/topics/{name}', json={'partitions': 4}).json()['partitions'] == 4
    assert len(api.get(f'/v1/topics/{name}').json()['partitions']) == 4
    assert api.patch(f'/v1/topics/{name}', json={'partitions': 4}).status_code == 422
    gone = api.delete(f'/v1/topics/{name}')
    assert (gone.status_code, gone.content) == (204, b'')
    assert api.delete(f'/v1/topics/{name}').status_code == 404


def test_a_topic_that_names_no_number_has_as_many_partitions_as_the_server_says(api: httpx.Client, name: str) -> None:
    configs = {item['name']: item['value'] for item in api.get('/v1/configs').json()['items']}
    assert api.post('/v1/topics', json={'name': name}).json()['partitions'] == int(configs['num.partitions'])


def test_lists_come_in_pages(api: httpx.Client, name: str) -> None:
    names = [f'{name}-{index}' for index in range(5)]
    for each in names:
        api.post('/v1/topics', json={'name': each})
        api.post('/v1/groups', json={'name': each})
    for path in ('/v1/topics', '/v1/groups'):
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = api.get(path, params={'limit': '2', **cursor}).json()
            assert len(page['items']) <= 2
            found += [item['name'] for item in page['items']]
            if page['next'] is None:
                break
            cursor = {'cursor': page['next']}
        assert [each for each in found if each in names] == names
        assert found == sorted(set(found))


@pytest.mark.parametrize('group', ['plain', 'a/b', 'with blanks', 'ä€😀', '%2F', '?&#', '..x'])
def test_a_group_may_have_any_name(api: httpx.Client, name: str, group: str) -> None:
    group = f'{name} {group}'
    made = api.post('/v1/groups', json={'name': group})
    assert (made.status_code, made.json()) == (201, {'name': group, 'members': 0, 'configs': {}})
    path = f'/v1/groups/{quote(group, safe="")}'
    assert made.headers['location'] == path
    assert api.get(path).json()['name'] == group
    assert api.get(f'{path}/members').json() == {'items': [], 'next': None}
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


def test_configs_of_a_topic(api: httpx.Client, topic: str) -> None:
    def value(answer: httpx.Response, config: str) -> tuple[str, str]:
        [found] = [item for item in answer.json()['items'] if item['name'] == config]
        return found['value'], found['source']

    path = f'/v1/topics/{topic}/configs'
    default = value(api.get(path), 'retention.ms')
    assert default[1] == 'default'
    dry = api.patch(path, json={'configs': {'retention.ms': '5'}, 'dry_run': True})
    assert value(dry, 'retention.ms') == default
    changed = api.patch(path, json={'configs': {'retention.ms': '5', 'retention.bytes': '7'}})
    assert value(changed, 'retention.ms') == ('5', 'topic')
    back = api.patch(path, json={'configs': {'retention.ms': None}})
    assert (value(back, 'retention.ms'), value(back, 'retention.bytes')) == (default, ('7', 'topic'))


def test_configs_of_a_group_that_does_not_exist_yet(api: httpx.Client, name: str) -> None:
    path = f'/v1/groups/{name}/configs'
    assert api.patch(path, json={'configs': {'acklog.retry.backoff': '1s,10s'}}).status_code == 200
    assert api.post('/v1/groups', json={'name': name}).json()['configs'] == {'acklog.retry.backoff': '1s,10s'}


def test_configs_of_the_server(api: httpx.Client) -> None:
    static = problem(api.patch('/v1/configs', json={'configs': {'data': '/elsewhere'}}))
    assert (static['status'], 'dynamically' in static['detail']) == (422, True)
    changed = api.patch('/v1/configs', json={'configs': {'acklog.state.sync.interval.ms': '51'}})
    [found] = [item for item in changed.json()['items'] if item['name'] == 'acklog.state.sync.interval.ms']
    assert (found['value'], found['source'], found['dynamic']) == ('51', 'server', True)
    api.patch('/v1/configs', json={'configs': {'acklog.state.sync.interval.ms': None}})


@pytest.mark.parametrize(
    ('configs', 'words'),
    [
        ({'retention.mss': '1'}, 'did you mean retention.ms'),
        ({'retention.ms': 'long'}, 'must be a whole number'),
        ({'cleanup.policy': 'compact'}, 'compact is not supported'),
    ],
)
def test_configs_that_are_wrong(api: httpx.Client, topic: str, configs: dict[str, str], words: str) -> None:
    refused = problem(api.patch(f'/v1/topics/{topic}/configs', json={'configs': configs}))
    assert (refused['status'], refused['code']) == (422, 'INVALID_CONFIG')
    assert words in refused['detail']


def test_the_server_says_what_it_is(api: httpx.Client) -> None:
    import acklog

    shown = api.get('/v1').json()
    assert shown['version'] == acklog.__version__
    assert len(shown['cluster_id']) == 22
    head = api.head('/v1')
    assert (head.status_code, head.content) == (200, b'')


def test_it_is_well(api: httpx.Client) -> None:
    assert [api.get(f'/health/{word}').json() for word in ('live', 'ready')] == [
        {'status': 'live'},
        {'status': 'ready'},
    ]


def test_answers_are_not_kept_nor_guessed_at(api: httpx.Client) -> None:
    headers = api.get('/v1').headers
    assert (headers['cache-control'], headers['x-content-type-options']) == ('no-store', 'nosniff')
    assert 'date' in headers
    assert 'server' not in headers
