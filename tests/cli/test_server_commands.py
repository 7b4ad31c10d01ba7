"""The command line against a real server process."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
import tty
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.run import acklog, command, end, environment, start, until

from acklog.broker.configs import BROKER
from acklog.client.http import HttpClient, path_of
from acklog.server.config import environment_name

if TYPE_CHECKING:
    from tests.conftest import Shared

    from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system


def test_a_topic_from_creation_to_deletion(shared: Shared, name: str) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        return acklog(*arguments, bootstrap=shared.address)

    assert run('topic', 'create', name, '-p', '2', '-c', 'retention.ms=60000') == (
        0,
        '',
        f"topic '{name}' created with 2 partitions\n",
    )
    assert run('topic', 'create', name)[0] == 5
    assert run('topic', 'create', name, '--if-missing') == (0, '', f"there is a topic '{name}' already\n")
    code, out, _ = run('topic', 'list', '--json')
    (listed,) = [entry for entry in json.loads(out) if entry['name'] == name]
    assert (code, listed['partitions'], listed['internal']) == (0, 2, False)
    assert listed['id'] == HttpClient(shared.http).get(path_of('topics', name))['id']
    assert run('topic', 'list')[1].count(listed['id']) == run('topic', 'describe', name)[1].count(listed['id']) == 1
    assert name in run('topic', 'list')[1]
    code, out, _ = run('topic', 'describe', name, '--json')
    assert code == 0
    assert json.loads(out) == [
        {
            'name': name,
            'id': listed['id'],
            'internal': False,
            'configs': {'retention.ms': '60000'},
            'partitions': [{'partition': index, 'leader': 0, 'start': 0, 'end': 0} for index in range(2)],
        }
    ]
    assert run('topic', 'describe', name)[1].splitlines()[3].split() == [
        'PARTITION',
        'LEADER',
        'START',
        'END',
        'OFFSETS',
    ]
    assert run('topic', 'delete', name, '--yes') == (0, '', f"topic '{name}' deleted\n")
    assert run('topic', 'delete', name, '-y')[0] == 4
    assert run('topic', 'delete', name, '-y', '--if-there')[0] == 0
    code, out, err = run('topic', 'describe', name)
    assert (code, out) == (4, '')
    assert err.count('\n') == 1


@pytest.mark.parametrize(('kind', 'setting'), [('topic', 'retention.ms'), ('group', 'share.record.lock.duration.ms')])
def test_configs(shared: Shared, name: str, kind: str, setting: str) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        return acklog(*arguments, bootstrap=shared.address)

    if kind == 'topic':
        run('topic', 'create', name)
    assert run(kind, 'config', name) == (0, '', f"{kind} '{name}' has the defaults only; --all shows them\n")
    assert run(kind, 'config', name, f'{setting}=20000') == (0, '', f"{kind} '{name}': {setting}=20000\n")
    assert run(kind, 'config', name)[1].splitlines()[1].split() == [setting, '20000', kind]
    configs = {config['name']: config for config in json.loads(run(kind, 'config', name, '--json')[1])}
    assert (configs[setting]['value'], configs[setting]['is_set']) == ('20000', True)
    assert run(kind, 'config', name, '--unset', setting)[0] == 0
    assert setting in run(kind, 'config', name, '--all')[1]
    code, out, err = run(kind, 'config', name, '--unset', setting[:-1])
    assert (code, out) == (2, '')
    assert f"there is no config '{setting[:-1]}'; did you mean {setting}?" in err
    code, out, err = run(kind, 'config', name, f'{setting}=soon')
    assert (code, out) == (1, '')
    assert setting in err
    assert err.count('\n') == 1


def test_publish_subscribe_lag_delete(shared: Shared, name: str) -> None:
    def run(*arguments: str, stdin: str = '') -> tuple[int, str, str]:
        return acklog(*arguments, bootstrap=shared.address, stdin=stdin)

    run('topic', 'create', name, '-p', '1')
    code, out, err = run('publish', name, '-k', ':', stdin='k:one\ntwo\nk:three')
    assert (code, out) == (0, '')
    assert err.startswith(f'3 records published to {name} in ')
    code, out, err = run('subscribe', name, name, '--max', '2')
    assert (code, out) == (0, f'{name}/0/0  k: one\n{name}/0/1  two\n')
    assert err.splitlines() == [
        f"group '{name}' is new: it begins at the earliest record (share.auto.offset.reset=earliest)",
        '2 records: 2 accepted',
    ]
    lag = json.loads(run('group', 'lag', name, '--json')[1])
    assert lag == {
        'group': name,
        'lag': 1,
        'partitions': [{'topic': name, 'partition': 0, 'start': 2, 'lag': 1, 'exact': True}],
    }
    code, out, err = run('subscribe', name, name, '--max', '1', '--json', '--from', 'latest')
    assert code == 0
    fields = json.loads(out)
    assert (fields['offset'], fields['key'], fields['value'], fields['deliveries']) == (2, 'k', 'three', 1)
    assert '--from is for new groups' in err
    assert run('group', 'lag', name)[1].splitlines()[1].split() == [name, '0', '3', '0']
    assert name in run('group', 'list')[1]
    (described,) = json.loads(run('group', 'describe', name, '--json')[1])
    assert (described['id'], described['members']) == (name, [])
    assert run('group', 'delete', name, '--yes') == (0, '', f"group '{name}' deleted\n")
    assert run('group', 'describe', name)[0] == 4
    assert run('group', 'lag', name)[0] == 4


def test_headers_and_a_time_to_deliver_at(shared: Shared, name: str) -> None:
    def run(*arguments: str, stdin: str = '') -> tuple[int, str, str]:
        return acklog(*arguments, bootstrap=shared.address, stdin=stdin)

    run('topic', 'create', name, '-p', '1', '-c', 'acklog.deliver.at.enable=true')
    assert run('publish', name, '-H', 'kind=first', '-H', 'trace=', stdin='now')[0] == 0
    assert run('publish', name, '--deliver-at', '2h', '-H', 'kind=second', stdin='later')[0] == 0
    assert run('publish', name, '--deliver-at', '2020-01-01', stdin='long due')[0] == 0
    code, out, _ = run('subscribe', name, name, '--json', '--idle', '1')
    first, second = (json.loads(line) for line in out.splitlines())
    assert (code, first['value'], second['value']) == (0, 'now', 'long due')
    assert first['headers'] == [{'name': 'kind', 'value': 'first'}, {'name': 'trace', 'value': ''}]
    [due] = {each['name'] for each in second['headers']}
    assert due == 'acklog-deliver-at'


def test_a_topic_that_delivers_at_once_is_said_to_be_one(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, bootstrap=shared.address)
    ran = acklog('publish', name, '--deliver-at', '2h', stdin='x', bootstrap=shared.address)
    said = f"acklog: topic '{name}' delivers at once; acklog.deliver.at.enable=true lets records wait\n"
    assert ran == (6, '', said)


@pytest.mark.parametrize('ask', [[], ['--ask']])
def test_idle_ends_when_nothing_has_come_for_so_long(shared: Shared, name: str, ask: list[str]) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='one\ntwo\n', bootstrap=shared.address)
    run = ('subscribe', name, name, '--idle', '1', *ask)
    ran = acklog(*run, bootstrap=shared.address, stdin='a\na\n')
    assert (ran.code, ran.out) == (0, f'{name}/0/0  one\n{name}/0/1  two\n')
    assert acklog(*run, bootstrap=shared.address) == (0, '', '0 records: 0 accepted\n')


@pytest.mark.parametrize(('records', 'most'), [(20_000, None), (20_000, 15_000), (700, 600), (3, 2)])
def test_records_of_large_batches_come_once_each_and_none_is_left_out(
    shared: Shared, name: str, records: int, most: int | None
) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    values = [str(number) for number in range(records)]
    acklog('publish', name, stdin='\n'.join(values), bootstrap=shared.address)
    ran = acklog(
        'subscribe', name, name, '--idle', '2', *(['--max', str(most)] if most else []), bootstrap=shared.address
    )
    assert [line.split('  ')[1] for line in ran.out.splitlines()] == values[:most]
    left = json.loads(acklog('group', 'lag', name, '--json', bootstrap=shared.address).out)['lag']
    assert left == records - (most or records)


def test_idle_is_a_failure_where_nothing_came_because_no_server_answers(server: ServerProcess) -> None:
    acklog('topic', 'create', 't', bootstrap=server.address)
    process = start('subscribe', 'g', 't', '--idle', '3', bootstrap=server.address)
    assert process.stderr is not None
    process.stderr.readline()  # that the group is new
    until('the group has begun', lambda: acklog('group', 'lag', 'g', bootstrap=server.address).code == 0)
    server.kill()
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (3, b'')
    assert err.decode().splitlines()[-1].startswith(f'acklog: no server answers at {server.address}')


def test_ask(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='one\ntwo\nthree\n', bootstrap=shared.address)
    ran = acklog(
        'subscribe', name, name, '--ask', '-n', '4', bootstrap=shared.address, stdin='a\nwhat\nrelease\nj\na\n'
    )
    assert ran.code == 0
    shown = [line.split('  ')[-1] for line in ran.out.splitlines()]
    assert shown == ['one', 'two', 'two', 'three']
    assert '4 records: 2 accepted, 1 released, 1 rejected' in ran.err


def test_answers_may_name_a_time_and_a_reason(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='one\ntwo\nthree\n', bootstrap=shared.address)
    answers = 'r soon\nr -5m\nR 2100-01-01T00:00Z\nj No such Customer\na now\na\n'
    ran = acklog('subscribe', name, name, '--ask', '-n', '3', bootstrap=shared.address, stdin=answers)
    assert ran.code == 0
    assert '3 records: 1 accepted, 1 released, 1 rejected' in ran.err
    for wrong in ("'soon' is not a time from now", "'-5m' is not a time from now", "nothing goes with accept: 'now'"):
        assert wrong in ran.err
    waiting = acklog('waiting', 'list', name, '--json', http=shared.http).out
    assert [(each['offset'], each['due_ms']) for each in json.loads(waiting)] == [(0, 4_102_444_800_000)]
    dead = acklog('dead', 'list', name, '--json', http=shared.http).out
    assert [(each['offset'], each['words']) for each in json.loads(dead)] == [(1, 'No such Customer')]


def test_the_end_of_input_ends_asking_and_gives_the_record_back(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='one\n', bootstrap=shared.address)
    assert '0 records: 0 accepted' in acklog('subscribe', name, name, '--ask', bootstrap=shared.address).err
    again = acklog('subscribe', name, name, '-n', '1', bootstrap=shared.address)
    assert again.out == f'{name}/0/0 (delivery 2)  one\n'


def test_where_a_new_group_begins(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='old\n', bootstrap=shared.address)
    process = start('subscribe', name, name, '--from', 'latest', '--max', '1', bootstrap=shared.address)
    assert process.stderr is not None
    assert b'the next record that is published' in process.stderr.readline()

    def joined() -> bool:
        return acklog('group', 'lag', name, '--json', bootstrap=shared.address).code == 0

    until('the group has begun', joined)
    time.sleep(0.5)
    acklog('publish', name, stdin='new\n', bootstrap=shared.address)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out.decode()) == (0, f'{name}/0/1  new\n')


@pytest.mark.parametrize(('number', 'code'), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_subscriber_that_is_ended_goes_quietly_and_gives_back_what_it_holds(
    shared: Shared, name: str, number: int, code: int
) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='one\n', bootstrap=shared.address)
    process = start('subscribe', name, name, bootstrap=shared.address)
    assert process.stdout is not None
    assert process.stdout.readline() == f'{name}/0/0  one\n'.encode()
    ran = end(process, number)
    assert (ran.code, ran.out) == (code, '')
    assert 'Traceback' not in ran.err
    assert ran.err.splitlines()[-1] == '1 record: 1 accepted'
    assert json.loads(acklog('group', 'lag', name, '--json', bootstrap=shared.address).out)['lag'] == 0


def test_a_subscriber_that_waits_ends_at_ctrl_c(shared: Shared, name: str) -> None:
    process = start('subscribe', name, name, bootstrap=shared.address)
    assert process.stderr is not None
    lines = [process.stderr.readline().decode() for _ in range(2)]
    assert lines[0] == f"group '{name}': topic '{name}' does not exist yet: waiting for it\n"
    time.sleep(0.5)
    begun = time.monotonic()
    ran = end(process)
    assert (ran.code, ran.err) == (130, '0 records: 0 accepted\n')
    assert time.monotonic() - begun < 5


def test_a_reader_that_goes_away_is_no_error_message(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    acklog('publish', name, stdin='\n'.join(str(i) for i in range(20_000)), bootstrap=shared.address)
    process = start('subscribe', name, name, bootstrap=shared.address)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=20)
    assert process.returncode == 141
    assert b'Traceback' not in err
    assert b'Broken' not in err


def test_publishing_is_ended_by_ctrl_c(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    process = start('publish', name, '--rate', '1000', bootstrap=shared.address)
    assert process.stdin is not None
    process.stdin.write(b'one\ntwo\n')
    until('both are stored', lambda: _end_of(shared, name) == 2)
    time.sleep(0.5)  # stored is not yet confirmed: that takes a sync, and the answer
    ran = end(process)
    assert ran.code == 130
    assert ran.err.startswith(f'2 records published to {name}')


def _end_of(shared: Shared, name: str) -> int:
    described = json.loads(acklog('topic', 'describe', name, '--json', bootstrap=shared.address).out)
    return int(described[0]['partitions'][0]['end'])


def test_the_rate_is_kept(shared: Shared, name: str) -> None:
    acklog('topic', 'create', name, '-p', '1', bootstrap=shared.address)
    begun = time.monotonic()
    ran = acklog('publish', name, '--rate', '100', bootstrap=shared.address, stdin='x\n' * 150)
    assert ran.code == 0
    assert 1.4 <= time.monotonic() - begun < 6


def test_a_topic_that_nobody_may_have(shared: Shared) -> None:
    ran = acklog('publish', 'no/topic', bootstrap=shared.address, stdin='x\n')
    assert (ran.code, ran.out) == (1, '')
    assert 'INVALID_TOPIC_EXCEPTION' in ran.err


def test_serve_from_start_to_ctrl_c(tmp_path: Path) -> None:
    process = start(
        'serve', '--data', str(tmp_path / 'd'), '--listen', '127.0.0.1:0', '--log-format', 'json', bootstrap=''
    )
    assert process.stdout is not None
    ready = process.stdout.readline().decode()
    assert ready.startswith('acklog ')
    assert ready.endswith(f', data in {tmp_path / "d"}\n')
    ran = end(process)
    assert (ran.code, ran.out) == (0, '')
    assert all('message' in json.loads(line) for line in ran.err.splitlines())


def test_serve_at_an_address_that_is_taken(shared: Shared, tmp_path: Path) -> None:
    ran = acklog('serve', '--data', str(tmp_path / 'd'), '--listen', shared.address)
    assert (ran.code, ran.out) == (1, '')
    assert ran.err.count('\n') == 1
    assert 'Traceback' not in ran.err


def test_no_variable_of_the_client_commands_is_a_setting_of_the_server() -> None:
    settings = {environment_name(name) for name in BROKER}
    assert settings.isdisjoint({'ACKLOG_BOOTSTRAP', 'ACKLOG_API'})
    assert 'ACKLOG_HTTP' in settings


def test_a_long_publish_tells_how_far_it_is(shared: Shared, name: str) -> None:
    """On a terminal, and leaves nothing there but the last line."""
    ours, terminal = pty.openpty()
    tty.setraw(terminal)
    try:
        process = subprocess.Popen(
            command('publish', name, '--rate', '10'),
            stdin=subprocess.PIPE,
            stderr=terminal,
            env=environment(shared.address),
        )
        process.communicate(b'line\n' * 25, timeout=30)
        said = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
        os.close(terminal)
    assert re.search(r'\d+ records published, \d+ on their way', said)
    assert re.fullmatch(rf'25 records published to {name} in \d\.\d s\s*', said.rpartition('\x1b[K')[2])


@pytest.mark.parametrize(
    'words', ['topic describe', 'topic config', 'publish', 'subscribe g', 'group status', 'waiting now', 'group delete']
)
def test_names_are_completed(shared: Shared, name: str, words: str) -> None:
    """By the server that is named before, else by that in the environment; without one nothing is said."""
    acklog('topic', 'create', name, bootstrap=shared.address)
    acklog('publish', name, stdin='x', bootstrap=shared.address)
    acklog('subscribe', name, name, '--max', '1', bootstrap=shared.address)
    line, found = f'acklog {words} {name[:-1]}', f'plain,{name}\n'
    before = line.replace('acklog', f'acklog -b {shared.address}')
    for typed, bootstrap, offered in (
        (line, shared.address, found),
        (line, '127.0.0.1:1', '\n'),
        (before, '127.0.0.1:1', found),
    ):
        done = subprocess.run(
            command(),
            env=environment(bootstrap)
            | {'_ACKLOG_COMPLETE': 'bash_complete', 'COMP_WORDS': typed, 'COMP_CWORD': str(len(typed.split()) - 1)},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert (done.stdout, done.stderr) == (offered, '')


def test_a_name_does_not_steer_the_terminal(shared: Shared, name: str) -> None:
    group = f'{name}\x1b[2J\n'
    HttpClient(shared.http).post(path_of('groups'), {'name': group})
    shown = f'{name}\\x1b[2J\\n'
    for arguments in (['group', 'list'], ['group', 'describe', group], ['group', 'describe', f'{group}-gone']):
        ran = acklog(*arguments, bootstrap=shared.address)
        assert shown in ran.out + ran.err
        assert '\x1b' not in ran.out + ran.err
