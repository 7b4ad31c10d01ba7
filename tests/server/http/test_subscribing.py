"""Taking records over HTTP and signing them off; what an operator sees and does meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.server.http.asking import problem
from tests.server.http.test_publish import publish

pytestmark = pytest.mark.system


class Group:
    """A group on one topic, as its members and operators have it over HTTP."""

    def __init__(self, api: httpx.Client, group: str, topic: str) -> None:
        self.api, self.path, self.topic = api, f'/v1/groups/{quote(group, safe="")}', topic
        configs = {'share.auto.offset.reset': 'earliest'}
        assert api.patch(f'{self.path}/configs', json={'configs': configs}).status_code == 200

    def acquire(self, member: str = 'm', count: int = 10, **more: Any) -> list[dict[str, Any]]:
        body = {'member': member, 'topics': [self.topic], 'count': count, **more}
        answer = self.api.post(f'{self.path}/acquire', json=body)
        assert answer.status_code == 200, answer.text
        records: list[dict[str, Any]] = answer.json()['records']
        return records

    def take(self, number: int, member: str = 'm', **more: Any) -> list[dict[str, Any]]:
        """So many, by as many acquires as it takes."""
        taken: list[dict[str, Any]] = []
        while len(taken) < number:
            more_taken = self.acquire(member, number - len(taken), wait_ms=5000, **more)
            assert more_taken, f'{len(taken)} of {number} came'
            taken += more_taken
        return taken

    def settle(self, action: str, *records: dict[str, Any], **more: Any) -> list[tuple[bool, str]]:
        acks = [{'lock': record['lock'], 'action': action, **more} for record in records]
        answer = self.api.post(f'{self.path}/acknowledge', json={'acknowledgements': acks})
        assert answer.status_code == 200, answer.text
        return [(result['ok'], result['code']) for result in answer.json()['results']]

    def post(self, path: str, **body: Any) -> Any:
        answer = self.api.post(f'{self.path}/{path}', json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def get(self, path: str, **query: Any) -> Any:
        answer = self.api.get(f'{self.path}/{path}', params=query)
        assert answer.is_success, answer.text
        return answer.json()

    def lag(self) -> int:
        lag: int = self.get('lag')['lag']
        return lag


@pytest.fixture
def group(api: httpx.Client, topic: str) -> Group:
    return Group(api, f'{topic} group', topic)


def values(records: list[dict[str, Any]]) -> list[str]:
    return sorted(record['value'] for record in records)


def test_taken_and_signed_off(api: httpx.Client, topic: str, group: Group) -> None:
    publish(
        api, topic, *({'value': str(index), 'key': 'k', 'headers': [{'name': 'h', 'value': 'v'}]} for index in range(5))
    )
    records = group.take(5)
    assert values(records) == list('01234')
    assert records[0] | {'lock': '', 'timestamp_ms': 0, 'lock_until_ms': 0, 'partition': 0} == {
        'topic': topic,
        'partition': 0,
        'offset': 0,
        'lock': '',
        'deliveries': 1,
        'attempts': 0,
        'timestamp_ms': 0,
        'key': 'k',
        'value': '0',
        'headers': [{'name': 'h', 'value': 'v'}],
        'lock_until_ms': 0,
    }
    assert group.lag() == 5
    assert group.settle('accept', *records) == [(True, 'ok')] * 5
    assert group.lag() == 0
    assert group.acquire() == []


def test_in_any_order_while_more_is_taken(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, *({'value': str(index)} for index in range(6)))
    first, second = group.take(3), group.take(3)
    assert values(first + second) == list('012345')
    assert group.settle('accept', second[1], first[2], second[0], first[0]) == [(True, 'ok')] * 4
    assert group.lag() == 2


def test_a_group_begins_on_all_partitions_at_once(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a', 'partition': 0}, {'value': 'b', 'partition': 1})
    assert len(group.acquire(count=1)) == 1
    assert group.lag() == 2


def test_an_acknowledgement_again(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a'})
    [record] = group.take(1)
    assert group.settle('accept', record) == group.settle('accept', record) == [(True, 'ok')]
    assert group.settle('release', record)[0][0] is False


def test_each_result_for_itself(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a'}, {'value': 'b'})
    records = group.take(2)
    results = group.settle('accept', records[0], {'lock': 'nonsense'}, records[1])
    assert [code for _, code in results] == ['ok', 'malformed', 'ok']


def test_released_for_later(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a'})
    [record] = group.take(1)
    begun = time.monotonic()
    assert group.settle('release', record, after_ms=600) == [(True, 'ok')]
    [waiting] = group.get('waiting')['items']
    assert (waiting['offset'], waiting['attempts']) == (record['offset'], 1)
    assert group.get('why')['items'][record['partition']]['reason'] == 'waiting'
    [again] = group.take(1)
    assert time.monotonic() - begun >= 0.6
    assert (again['deliveries'], again['attempts'], again['offset']) == (2, 1, record['offset'])
    assert again['lock'] != record['lock']
    assert group.settle('accept', record) == [(False, 'settled')]
    assert group.settle('release', record) == [(True, 'ok')]
    assert group.settle('accept', again) == [(True, 'ok')]


def test_a_lock_runs_out(api: httpx.Client, topic: str, group: Group) -> None:
    api.patch(f'{group.path}/configs', json={'configs': {'share.record.lock.duration.ms': '1000'}})
    publish(api, topic, {'value': 'a'})
    [record] = group.take(1, 'm1')
    [again] = group.take(1, 'm2')
    assert group.settle('accept', record) == [(False, 'lost')]
    assert group.settle('accept', again) == [(True, 'ok')]


def test_kept_for_longer(api: httpx.Client, topic: str, group: Group) -> None:
    api.patch(f'{group.path}/configs', json={'configs': {'share.record.lock.duration.ms': '1000'}})
    publish(api, topic, {'value': 'a'})
    [record] = group.take(1)
    for _ in range(3):
        time.sleep(0.6)
        [result] = group.post('renew', locks=[record['lock']])['results']
        assert (result['ok'], result['code']) == (True, 'ok')
        assert result['lock_until_ms'] > record['lock_until_ms']
    assert group.settle('accept', record) == [(True, 'ok')]


def test_a_poll_waits_for_what_comes(api: httpx.Client, topic: str, group: Group) -> None:
    assert group.acquire() == []
    got: list[dict[str, Any]] = []
    with httpx.Client(base_url=api.base_url, timeout=30) as other:
        poll = threading.Thread(
            target=lambda: got.extend(Group(other, f'{topic} group', topic).acquire(wait_ms=10_000))
        )
        poll.start()
        time.sleep(0.3)
        begun = time.monotonic()
        publish(api, topic, {'value': 'a'})
        poll.join(10)
    assert values(got) == ['a']
    assert time.monotonic() - begun < 2


def test_who_hangs_up_takes_nothing(api: httpx.Client, topic: str, group: Group) -> None:
    group.acquire()
    with httpx.Client(base_url=api.base_url) as other, pytest.raises(httpx.ReadTimeout):
        body = {'member': 'gone', 'topics': [topic], 'wait_ms': 20_000}
        other.post(f'{group.path}/acquire', json=body, timeout=0.3)
    time.sleep(0.2)
    publish(api, topic, {'value': 'a'})
    assert values(group.acquire(wait_ms=3000)) == ['a']


def test_a_member_like_any_other(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a'})
    group.take(1, 'worker-1')
    [member] = group.get('members')['items']
    assert (member['member'], member['topics']) == ('worker-1', [topic])
    assert member['client'].startswith('python-httpx')
    assert problem(api.delete(group.path))['code'] == 'NON_EMPTY_GROUP'
    assert api.delete(f'{group.path}/members/worker-1').status_code == 204
    [again] = group.take(1, 'worker-2')
    assert (again['value'], again['attempts']) == ('a', 0)
    assert api.delete(f'{group.path}/members/worker-1').status_code == 404


def test_dead_and_back(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a', 'partition': 0}, {'value': 'b', 'partition': 0})
    a, b = sorted(group.take(2), key=lambda record: record['offset'])
    assert group.settle('reject', a, reason='no such customer') == [(True, 'ok')]
    assert group.settle('reject', b) == [(True, 'ok')]
    first = group.get('dead', limit=1)
    [dead] = first['items']
    assert (dead['offset'], dead['words'], dead['member']) == (0, 'no such customer', 'm')
    [other] = group.get('dead', limit=1, cursor=first['next'])['items']
    assert other['offset'] == 1
    shown = api.get(f'/v1/topics/{topic}/partitions/0/records/0').json()
    [mine] = [each for each in shown['groups'] if each['group'] == f'{topic} group']
    assert (mine['state'], mine['words']) == ('dead', 'no such customer')
    choice = {'topic': topic, 'partition': 0, 'first': 0, 'last': 0}
    assert group.post('dead/redrive', **choice, dry_run=True) == {'records': 1, 'dry_run': True, 'pending': 0}
    assert group.post('dead/redrive', **choice)['records'] == 1
    [again] = group.take(1)
    assert (again['offset'], again['attempts']) == (0, 0)
    assert group.post('dead/discard', all=True)['records'] == 1
    assert group.get('dead') == {'items': [], 'next': None}


def test_waiting_records_are_moved(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, *({'value': str(index), 'partition': 0} for index in range(3)))
    records = group.take(3)
    far = api.get('/v1').json()['now_ms'] + 3_600_000
    assert group.settle('release', *records, at_ms=far) == [(True, 'ok')] * 3
    assert {item['due_ms'] for item in group.get('waiting', topic=topic)['items']} == {far}
    assert group.post('waiting/move', topic=topic, partition=0, offsets=[1], due_ms=far + 1)['records'] == 1
    assert [item['due_ms'] for item in group.get('waiting')['items']] == [far, far + 1, far]
    assert group.post('waiting/discard', topic=topic, partition=0, first=2, last=9)['records'] == 1
    assert group.post('waiting/now', all=True, dry_run=True)['records'] == 2
    assert group.post('waiting/now', all=True)['records'] == 2
    assert values(group.take(2)) == ['0', '1']
    assert [item['offset'] for item in group.get('dead')['items']] == [2]


def test_a_deferred_release(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a', 'partition': 0})
    [record] = group.take(1)
    group.post('defer', topic=topic, partition=0, offset=0, after_ms=3_600_000, deliveries=1)
    assert group.settle('release', record) == [(True, 'ok')]
    [waiting] = group.get('waiting')['items']
    assert waiting['due_ms'] > api.get('/v1').json()['now_ms'] + 3_000_000
    body = {'topic': topic, 'partition': 0, 'offset': 0, 'after_ms': 1}
    assert problem(api.post(f'{group.path}/defer', json=body))['status'] == 409


def test_published_for_later(api: httpx.Client, topic: str, group: Group) -> None:
    api.patch(f'/v1/topics/{topic}/configs', json={'configs': {'acklog.deliver.at.enable': 'true'}})
    now = api.get('/v1').json()['now_ms']
    far = now + 3_600_000
    times = {'soon': now + 700, '0': far, '1': far, '2': far}
    publish(api, topic, *({'value': value, 'partition': 0, 'deliver_at_ms': at} for value, at in times.items()))
    path = f'/v1/topics/{topic}/scheduled'
    assert [item['due_ms'] for item in api.get(path).json()['items']] == [now + 700, far, far, far]
    assert group.acquire() == []
    first = api.get(path, params={'limit': 2}).json()
    assert [item['offset'] for item in api.get(path, params={'cursor': first['next']}).json()['items']] == [2, 3]
    moved = api.post(f'{path}/move', json={'partition': 0, 'offsets': [1], 'due_ms': 1})
    assert (moved.status_code, moved.json()['records']) == (200, 1)
    assert values(group.take(1)) == ['0']
    assert api.post(f'{path}/cancel', json={'partition': 0, 'first': 2, 'last': 2}).json()['records'] == 1
    assert api.post(f'{path}/cancel', json={'all': True, 'dry_run': True}).json()['records'] == 2
    assert values(group.take(1)) == ['soon']
    assert [item['offset'] for item in api.get(path).json()['items']] == [3]
    assert api.post(f'{path}/cancel', json={}).status_code == 422
    assert problem(api.post(f'{path}/cancel', json={'all': True, 'first': 1}))['errors'][0]['pointer'] == '/partition'


def test_moved_to_another_place(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, *({'value': str(index), 'partition': 0} for index in range(4)))
    records = group.take(4)
    group.settle('accept', *records[:3])
    place = {'topic': topic, 'partition': 0}
    [dry] = group.post('seek', to='earliest', **place, dry_run=True)['items']
    assert (dry['before'], dry['after'], dry['brings'], dry['drops']) == (3, 0, 3, 0)
    group.post('seek', offset=1, **place)
    assert group.settle('accept', records[3]) == [(False, 'lost')]
    assert values(group.take(3)) == ['1', '2', '3']
    group.post('seek', to='latest', **place)
    assert group.lag() == 0
    assert group.post('replay', **place, first=2, last=2)['records'] == 1
    assert values(group.take(1)) == ['2']


def test_paused_and_resumed(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, {'value': 'a', 'partition': 0})
    group.acquire('nobody', topics=[f'{topic}'], count=1)
    group.post('seek', to='earliest')
    group.post('pause', reason='the bank is closed')
    assert group.get('status')['paused'] == 'the bank is closed'
    assert group.acquire() == []
    assert group.get('why')['items'][0]['reason'] == 'paused'
    group.post('resume')
    assert values(group.take(1)) == ['a']


def test_where_the_records_are(api: httpx.Client, topic: str, group: Group) -> None:
    publish(api, topic, *({'value': str(index), 'partition': 0} for index in range(10)))
    records = group.take(4)
    group.settle('accept', records[0])
    group.settle('reject', records[1])
    group.settle('release', records[2], after_ms=3_600_000)
    [status] = [each for each in group.get('status')['partitions'] if each['partition'] == 0]
    numbers = {name: status[name] for name in ('end', 'acquired', 'waiting', 'dead', 'lag', 'log_end')}
    assert numbers == {'end': 4, 'acquired': 1, 'waiting': 1, 'dead': 1, 'lag': 8, 'log_end': 10}
    [holder] = status['holders']
    assert (holder['member'], holder['records']) == ('m', 1)
    [lag] = group.get('lag')['topics']
    assert (lag['topic'], lag['lag'], lag['available'], lag['acquired'], lag['dead']) == (topic, 8, 6, 1, 1)


@pytest.mark.parametrize(
    ('path', 'body'),
    [
        ('acknowledge', {'acknowledgements': [{'lock': 'a', 'action': 'release', 'at_ms': 1, 'after_ms': 1}]}),
        ('acknowledge', {'acknowledgements': [{'lock': 'a', 'action': 'accept', 'after_ms': 1}]}),
        ('defer', {'topic': 'a', 'partition': 0, 'offset': 0}),
        ('seek', {}),
        ('seek', {'to': 'earliest', 'offset': 4}),
        ('seek', {'to': 'earliest', 'partition': 4}),
        ('replay', {'topic': 'a', 'partition': 0, 'first': 2, 'last': 1}),
        ('waiting/now', {}),
        ('waiting/now', {'all': True, 'topic': 'a'}),
        ('waiting/now', {'all': True, 'partition': 1}),
        ('dead/redrive', {'topic': 'a', 'first': 1}),
        ('dead/discard', {'topic': 'a', 'partition': 0, 'first': 1, 'offsets': [1]}),
        ('dead/discard', {'topic': 'a', 'partition': 0, 'first': 2, 'last': 1}),
    ],
)
def test_what_makes_no_sense(api: httpx.Client, group: Group, path: str, body: dict[str, Any]) -> None:
    api.post('/v1/groups', json={'name': f'{group.topic} group'})
    answer = api.post(f'{group.path}/{path}', json=body)
    assert answer.status_code == 422, answer.text
    assert 'pointer' in problem(answer)['errors'][0]


def test_a_group_that_is_not_there(api: httpx.Client, name: str) -> None:
    calls: list[Callable[[], httpx.Response]] = [
        *(
            lambda path=path: api.get(f'/v1/groups/{name}/{path}')
            for path in ('lag', 'status', 'why', 'waiting', 'dead')
        ),
        lambda: api.post(f'/v1/groups/{name}/pause'),
        lambda: api.post(f'/v1/groups/{name}/resume'),
        lambda: api.post(f'/v1/groups/{name}/seek', json={'to': 'latest'}),
        lambda: api.post(f'/v1/groups/{name}/dead/redrive', json={'all': True}),
    ]
    for call in calls:
        assert problem(call())['code'] == 'GROUP_ID_NOT_FOUND'
