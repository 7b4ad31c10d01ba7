"""The commands over HTTP against a real server process: time, failure and replay."""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.run import Ran, acklog, acklog_process, command

from acklog.cli.output import as_local_time
from acklog.client.http import HttpClient, path_of

if TYPE_CHECKING:
    from tests.conftest import Shared

pytestmark = pytest.mark.system

HOUR = 3_600_000


class Scene:
    """A topic of one partition and a group, both called `name`, at a server."""

    def __init__(self, http: str, name: str) -> None:
        self.http, self.name = http, name
        self.api = HttpClient(http)
        configs = {'acklog.deliver.at.enable': 'true'}
        self.api.post(path_of('topics'), {'name': name, 'partitions': 1, 'configs': configs})
        self.api.call(
            'PATCH', path_of('groups', name, 'configs'), body={'configs': {'share.auto.offset.reset': 'earliest'}}
        )

    def run(self, *arguments: str) -> Ran:
        return acklog(*arguments, http=self.http)

    def json(self, *arguments: str) -> Any:
        ran = self.run(*arguments, '--json')
        assert (ran.code, ran.err) == (0, '')
        return json.loads(ran.out)

    def publish(self, *values: Any, **fields: Any) -> None:
        records = [{'value': value, 'partition': 0, **fields} for value in values]
        self.api.post(path_of('topics', self.name, 'records'), {'records': records})

    def take(self, *actions: dict[str, Any], wait_ms: int = 5000) -> list[int]:
        """Take as many records as there are actions, and settle each so; an empty one keeps it."""
        body = {'member': 'worker-1', 'topics': [self.name], 'count': len(actions), 'wait_ms': wait_ms}
        taken = self.api.post(path_of('groups', self.name, 'acquire'), body)['records']
        acks = [{'lock': r['lock'], **action} for r, action in zip(taken, actions, strict=False) if action]
        if acks:
            results = self.api.post(path_of('groups', self.name, 'acknowledge'), {'acknowledgements': acks})
            assert all(result['ok'] for result in results['results'])
        return [record['offset'] for record in taken]

    def at(self, offsets: object) -> str:
        return f'{self.name}/0/{offsets}'


@pytest.fixture
def scene(shared: Shared, name: str) -> Scene:
    return Scene(shared.http, name)


ACCEPT = {'action': 'accept'}
REJECT = {'action': 'reject', 'reason': 'no such customer'}


def later(ms: int) -> dict[str, Any]:
    return {'action': 'release', 'after_ms': ms}


def lines(ran: Ran) -> list[list[str]]:
    assert ran.code == 0, ran.err
    return [line.split() for line in ran.out.splitlines()]


# -- dead --------------------------------------------------------------------------------------------------------------


def test_dead_records_are_listed_and_shown(scene: Scene) -> None:
    scene.publish('one', {'base64': '/wAB'}, key='k', headers=[{'name': 'h', 'value': 'x'}])
    scene.take(REJECT, {'action': 'reject'})
    ran = scene.run('dead', 'list', scene.name)
    head, first, second = ran.out.splitlines()
    assert head.split() == ['RECORD', 'DIED', 'FAILED', 'LAST', 'MEMBER', 'WHY']
    place, died, *why = first.split()
    assert (place, why) == (scene.at(0), ['0', 'worker-1', 'rejected:', 'no', 'such', 'customer'])
    assert datetime.fromisoformat(died).tzinfo is not None
    assert second.split()[2:] == ['0', 'worker-1', 'rejected']
    listed = scene.json('dead', 'list', scene.name, f'{scene.name}/0')
    assert [(each['offset'], each['reason'], each['words']) for each in listed] == [
        (0, 'rejected', 'no such customer'),
        (1, 'rejected', None),
    ]
    shown = scene.run('dead', 'show', scene.name, scene.at(0)).out
    for expected in ('why        rejected: no such customer', 'key        k', 'header     h: x', 'value      one'):
        assert expected in shown
    fields = scene.json('dead', 'show', scene.name, scene.at(1))
    assert (fields['key'], fields['value_base64'], fields['headers']) == ('k', '/wAB', [{'name': 'h', 'value': 'x'}])
    assert [(each['group'], each['state']) for each in fields['groups']] == [(scene.name, 'dead')]


def test_redrive_asks_for_more_than_named_offsets(scene: Scene) -> None:
    scene.publish('a', 'b', 'c', 'd')
    scene.take(*[REJECT] * 4)
    refused = scene.run('dead', 'redrive', scene.name, '--all')
    assert refused.code == 2
    assert f'Redrive 4 dead records of {scene.name}? Nobody can be asked here: say --yes.' in refused.err
    trial = scene.run('dead', 'redrive', scene.name, scene.name, '--dry-run', '--rate', '1')
    said = f'4 dead records of {scene.name} would be redriven, 3 of them later, at the rate asked for\n'
    assert trial == (0, '', said)
    assert scene.run('dead', 'redrive', scene.name, scene.at('1,3')) == (
        0,
        '',
        f'2 dead records of {scene.name} redriven\n',
    )
    assert scene.take(ACCEPT, ACCEPT, ACCEPT) == [1, 3]
    assert scene.json('dead', 'redrive', scene.name, scene.at('0-1'), '-y') == {
        'records': 1,
        'pending': 0,
        'dry_run': False,
    }
    assert scene.json('dead', 'discard', scene.name, '--all', '-y')['records'] == 1
    assert scene.run('dead', 'list', scene.name) == (0, '', 'nothing is dead\n')


def test_discarding_asks_even_for_one(scene: Scene) -> None:
    scene.publish('a')
    scene.take(REJECT)
    assert 'say --yes' in scene.run('dead', 'discard', scene.name, scene.at(0)).err
    assert len(scene.json('dead', 'list', scene.name)) == 1
    assert scene.run('dead', 'discard', scene.name, scene.at(0), '--yes').code == 0
    assert scene.run('dead', 'discard', scene.name, scene.at(0)).err == f'0 dead records of {scene.name} discarded\n'


def test_what_was_done_before_an_error_is_said(scene: Scene) -> None:
    scene.publish('a')
    scene.take(REJECT)
    ran = scene.run('dead', 'redrive', scene.name, scene.at(0), f'{scene.name}/7/0')
    assert (ran.code, ran.out) == (4, '')
    done, error = ran.err.splitlines()
    assert done == f'1 dead record of {scene.name} redriven; then:'
    assert error.startswith('acklog: ')


def test_dead_show_of_what_is_not_dead(scene: Scene) -> None:
    scene.publish('a')
    ran = scene.run('dead', 'show', 'nobody', scene.at(0))
    assert (ran.code, ran.err.count('\n')) == (4, 1)
    scene.take(ACCEPT)
    ran = scene.run('dead', 'show', scene.name, scene.at(0))
    assert (ran.code, ran.out) == (1, '')
    assert ran.err == f'acklog: {scene.at(0)} is not dead in {scene.name}: it is done\n'


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_waiting_records_are_listed_moved_made_due_and_given_up(scene: Scene) -> None:
    begun = time.time() * 1000
    scene.publish('a', 'b', 'c')
    scene.take(later(HOUR), later(2 * HOUR), later(3 * HOUR))
    assert [(each['offset'], each['attempts']) for each in scene.json('waiting', 'list', scene.name)] == [
        (0, 1),
        (1, 1),
        (2, 1),
    ]
    assert lines(scene.run('waiting', 'list', scene.name))[0] == ['RECORD', 'DUE', 'FAILED']
    assert scene.run('waiting', 'move', scene.name, scene.at(0), '--to', '5h').code == 0
    due = scene.json('waiting', 'list', scene.name)[0]['due_ms']
    assert 5 * HOUR <= due - begun < 5 * HOUR + 60_000
    assert scene.run('waiting', 'move', scene.name, scene.name, '--to', '5h').code == 2
    assert scene.json('waiting', 'move', scene.name, scene.name, '--to', '2100-01-01T00:00Z', '-y')['records'] == 3
    assert {each['due_ms'] for each in scene.json('waiting', 'list', scene.name)} == {4_102_444_800_000}
    assert scene.run('waiting', 'now', scene.name, scene.at(1)).code == 0
    assert scene.take(ACCEPT, ACCEPT) == [1]
    assert scene.run('waiting', 'discard', scene.name, '--all', '--dry-run').err == (
        f'2 waiting records of {scene.name} would be given up\n'
    )
    assert scene.run('waiting', 'discard', scene.name, '--all', '--yes').code == 0
    assert [each['reason'] for each in scene.json('dead', 'list', scene.name)] == ['given up by an operator'] * 2
    assert scene.run('waiting', 'list', scene.name) == (0, '', 'nothing waits\n')


def test_lists_follow_their_pages_up_to_the_limit(scene: Scene) -> None:
    scene.publish(*[str(number) for number in range(1200)])
    for _ in range(2):
        scene.take(*[later(HOUR)] * 1000)
    assert len(scene.json('waiting', 'list', scene.name, '--limit', '1200')) == 1200
    ran = scene.run('waiting', 'list', scene.name, '--limit', '1100', '--json')
    assert [each['offset'] for each in json.loads(ran.out)] == list(range(1100))
    assert ran.err == 'these are the first 1,100; there are more: --limit\n'
    assert len(scene.json('waiting', 'list', scene.name, '--limit', '9' * 30)) == 1200
    assert len(lines(scene.run('waiting', 'list', scene.name))) == 101


# -- scheduled ---------------------------------------------------------------------------------------------------------


def test_scheduled_records_are_listed_moved_and_cancelled(scene: Scene) -> None:
    due = int(time.time() * 1000) + HOUR
    scene.publish('a', 'b', 'c', deliver_at_ms=due)
    places = [{'topic': scene.name, 'partition': 0, 'offset': offset, 'due_ms': due} for offset in range(3)]
    assert scene.json('scheduled', 'list', scene.name) == places
    assert scene.run('scheduled', 'move', scene.at(0), '--to', str(due + HOUR)).code == 0
    assert scene.json('scheduled', 'list', scene.name)[0]['due_ms'] == due + HOUR
    assert scene.run('scheduled', 'cancel', scene.at(1)).code == 2
    assert (
        scene.run('scheduled', 'cancel', scene.at(1), '--yes').err == f'1 scheduled record of {scene.name} cancelled\n'
    )
    assert scene.json('scheduled', 'cancel', scene.name, '--dry-run') == {'records': 2, 'pending': 0, 'dry_run': True}
    assert [row[0] for row in lines(scene.run('scheduled', 'list', f'{scene.name}/0'))] == [
        'RECORD',
        scene.at(0),
        scene.at(2),
    ]
    scene.run('scheduled', 'move', scene.at(2), '--to', '0s')
    assert scene.take(ACCEPT) == [2]


def test_a_record_says_when_it_comes_or_that_it_was_cancelled(scene: Scene) -> None:
    due = 4_102_444_800_000
    scene.publish('a', 'b', deliver_at_ms=due)
    scene.publish('c')

    def shown(offset: int) -> tuple[int | None, bool]:
        fields = scene.json('record', 'show', scene.at(offset))
        return fields['due_ms'], fields['cancelled']

    assert [shown(offset) for offset in range(3)] == [(due, False), (due, False), (None, False)]
    scene.run('scheduled', 'move', scene.at(0), '--to', str(due + HOUR))
    scene.run('scheduled', 'cancel', scene.at(1), '--yes')
    assert [shown(offset) for offset in range(3)] == [(due + HOUR, False), (None, True), (None, False)]
    lines_of = [scene.run('record', 'show', scene.at(offset)).out.splitlines() for offset in range(3)]
    assert f'scheduled  {as_local_time(due + HOUR)}' in lines_of[0]
    assert 'cancelled  before its time: no group gets it' in lines_of[1]
    assert not any(line.startswith(('scheduled', 'cancelled')) for line in lines_of[2])
    scene.run('scheduled', 'move', scene.at(0), '--to', '0s')  # its time has come
    assert shown(0) == (None, False)


def test_scheduled_for_one_group(scene: Scene) -> None:
    due = int(time.time() * 1000) + HOUR
    scene.publish('a', deliver_at_ms=due)
    scene.take({}, wait_ms=0)  # the group has to be there
    ran = scene.run('scheduled', 'cancel', scene.name, '--group', scene.name, '-y')
    assert ran == (0, '', f'1 scheduled record of {scene.name} for {scene.name} cancelled\n')
    assert scene.json('scheduled', 'list', scene.name, '--group', scene.name) == []
    assert len(scene.json('scheduled', 'list', scene.name)) == 1


# -- one record --------------------------------------------------------------------------------------------------------


def test_a_record_and_its_state_in_every_group(scene: Scene) -> None:
    scene.publish('value', {'base64': '/wAB'})
    scene.take({'action': 'release', 'after_ms': HOUR, 'reason': 'down'}, {})
    ran = scene.run('record', 'show', f'{scene.name}[0]@0')  # as other tools for Kafka name it
    assert ran.out.splitlines()[0] == f'record     {scene.at(0)}'
    row = lines(ran)[-1]
    assert row[:5] == [scene.name, 'waiting', '1', '1', '-']
    fields = scene.json('record', 'show', scene.at(1))
    assert (fields['value_base64'], fields['groups'][0]['state'], fields['groups'][0]['member']) == (
        '/wAB',
        'acquired',
        'worker-1',
    )
    done = acklog_process('record', 'show', scene.at(0), '--value', '--http', scene.http)
    assert done == (0, 'value', '')


@pytest.mark.parametrize(
    ('where', 'why'),
    [
        ('{}/0/0', 'offset 0 is not in {}/0, which is empty and goes on at 0 (OFFSET_OUT_OF_RANGE)'),
        ('{}/0/5', 'offset 5 is not in {}/0, which is empty and goes on at 0 (OFFSET_OUT_OF_RANGE)'),
        ('{}/7/0', "topic '{}' has the partitions 0 to 0, not 7 (UNKNOWN_TOPIC_OR_PARTITION)"),
        ('nowhere/0/0', "there is no topic 'nowhere' (UNKNOWN_TOPIC_OR_PARTITION)"),
    ],
)
def test_no_such_record(scene: Scene, where: str, why: str) -> None:
    ran = scene.run('record', 'show', where.format(scene.name))
    assert ran == (4, '', f'acklog: {why.format(scene.name)}\n')


def test_a_record_behind_the_last_one(scene: Scene) -> None:
    scene.publish('a', 'b')
    why = f'offset 2 is not in {scene.name}/0, which holds 0 to 1 (OFFSET_OUT_OF_RANGE)'
    assert scene.run('record', 'show', scene.at(2)) == (4, '', f'acklog: {why}\n')


@pytest.mark.parametrize('arguments', ['group why', 'dead list', 'waiting now --all', 'group pause'])
def test_an_empty_name(scene: Scene, arguments: str) -> None:
    first, second, *options = arguments.split()
    assert scene.run(first, second, '', *options) == (4, '', 'acklog: nothing has an empty name\n')


# -- groups ------------------------------------------------------------------------------------------------------------


def why(scene: Scene, *arguments: str) -> list[str]:
    return [each['reason'] for each in scene.json('group', 'why', scene.name, *arguments)]


def test_why_and_pause(scene: Scene) -> None:
    assert scene.run('group', 'why', 'nobody').code == 4
    scene.publish('a', 'b')
    scene.take({})
    assert why(scene) == ['something']
    assert scene.run('group', 'pause', scene.name, '--reason', 'the payment service is down').code == 0
    assert why(scene) == ['paused']
    head, row = scene.run('group', 'why', scene.name).out.splitlines()
    assert head.split() == ['TOPIC', 'PARTITION', 'REASON', 'UNTIL', 'IN', 'WORDS']
    assert row.endswith('the payment service is down')
    assert 'is paused: the payment service is down' in scene.run('group', 'status', scene.name).err
    assert scene.json('group', 'resume', scene.name) == {'group': scene.name, 'paused': None}
    scene.take(ACCEPT)
    assert why(scene) == ['held']
    assert scene.run('group', 'why', scene.name).out.rstrip().endswith('(worker-1)')
    assert why(scene, '--member', 'worker-1') == ['held']


def test_status(scene: Scene) -> None:
    scene.publish('a', 'b', 'c', 'd')
    scene.take(REJECT, later(HOUR), {})
    (part,) = scene.json('group', 'status', scene.name)['partitions']
    assert [part[field] for field in ('acquired', 'waiting', 'dead', 'lag')] == [1, 1, 1, 3]
    head, row, _, holders, held = lines(scene.run('group', 'status', scene.name))
    assert head[:7] == ['TOPIC', 'PARTITION', 'START', 'LAG', 'AVAILABLE', 'HELD', 'WAITING']
    assert row[:7] == [scene.name, '0', '1', '3', '1', '1', '1']
    assert (holders[0], held[:3]) == ('MEMBER', ['worker-1', f'{scene.name}/0', '1'])


@pytest.mark.parametrize(
    ('target', 'after'),
    [
        (['--to', 'earliest'], 0),
        (['--to', 'latest'], 4),
        (['--offset', '2'], 2),
        (['--to', '1h'], 0),
        (['--to', '2099-01-01'], 4),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, list) else '',
)
def test_seek(scene: Scene, target: list[str], after: int) -> None:
    scene.publish('a', 'b', 'c', 'd')
    scene.take(ACCEPT, ACCEPT, ACCEPT)
    refused = scene.run('group', 'seek', scene.name, *target)
    assert (refused.code, refused.out) == (2, '')
    assert f'Move {scene.name} in 1 partition?' in ' '.join(refused.err.split())
    brings, drops = max(0, 3 - after), max(0, after - 3)
    plan = {'topic': scene.name, 'partition': 0, 'before': 3, 'after': after, 'brings': brings, 'drops': drops}
    assert scene.json('group', 'seek', scene.name, *target, '--dry-run') == [plan]
    head, row = lines(scene.run('group', 'seek', scene.name, f'{scene.name}/0', *target, '--yes'))
    assert head == ['TOPIC', 'PARTITION', 'BEFORE', 'AFTER', 'BRINGS', 'DROPS']
    assert row == [scene.name, '0', '3', str(after), str(brings), str(drops)]
    assert scene.take(*[ACCEPT] * 5, wait_ms=0) == list(range(after, 4))


def test_replay(scene: Scene) -> None:
    scene.publish('a', 'b', 'c')
    scene.take(ACCEPT, ACCEPT, ACCEPT)
    assert scene.run('group', 'replay', scene.name, scene.at('0-1'), '-n').err == (
        f'2 settled records of {scene.name} would be made available again\n'
    )
    assert scene.run('group', 'replay', scene.name, scene.at('0-1')).code == 2
    assert scene.json('group', 'replay', scene.name, scene.at('1-2'), '--yes')['records'] == 2
    assert scene.take(ACCEPT, ACCEPT, ACCEPT) == [1, 2]


def test_a_group_of_any_name(scene: Scene, name: str) -> None:
    odd = f'{name}/a b?&%\u00fc'
    scene.api.post(path_of('groups'), {'name': odd})
    assert scene.run('group', 'pause', odd) == (0, '', f'group {odd!r} paused\n')
    assert scene.json('group', 'status', odd) == {'group': odd, 'paused': 'paused by an operator', 'partitions': []}


@pytest.mark.parametrize(('answer', 'code', 'left'), [(b'n\n', 1, 1), (b'y\n', 0, 0)])
def test_a_person_is_asked(scene: Scene, answer: bytes, code: int, left: int) -> None:
    scene.publish('a')
    scene.take(REJECT)
    terminal, side = os.openpty()
    try:
        os.write(terminal, answer)
        done = subprocess.run(
            [*command('dead', 'discard', scene.name, '--all'), '--http', scene.http],
            stdin=side,
            capture_output=True,
            text=True,
            timeout=30,
        )
    finally:
        os.close(side)
        os.close(terminal)
    assert done.returncode == code
    assert f'Discard 1 dead record of {scene.name}? [y/N]' in done.stderr
    assert len(scene.json('dead', 'list', scene.name)) == left
