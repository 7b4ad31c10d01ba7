"""The command line without a server: help, usage, typing errors, exit codes, start-up time."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from tests.cli.run import acklog as run
from tests.cli.run import acklog_process, environment, parse

import acklog
from acklog.cli.main import COMMANDS

LEAVES = [
    ['serve'],
    *(['topic', name] for name in ('create', 'list', 'describe', 'config', 'delete')),
    *(['group', name] for name in ('list', 'describe', 'lag', 'config', 'delete')),
    *(['group', name] for name in ('why', 'status', 'seek', 'replay', 'pause', 'resume')),
    *(['waiting', name] for name in ('list', 'now', 'move', 'discard')),
    *(['dead', name] for name in ('list', 'show', 'redrive', 'discard')),
    *(['scheduled', name] for name in ('list', 'cancel', 'move')),
    ['record', 'show'],
    ['publish'],
    ['subscribe'],
    ['completion'],
]


def test_version() -> None:
    assert parse('--version') == (0, f'acklog {acklog.__version__}\n', '')


def test_help_lists_all_commands() -> None:
    ran = parse('--help')
    assert ran.code == 0
    assert all(f'  {name} ' in ran.out for name in COMMANDS)


@pytest.mark.parametrize('group', [[], *sorted({(leaf[0],) for leaf in LEAVES if len(leaf) > 1})])
def test_no_word_about_a_command_is_cut_off(group: list[str]) -> None:
    assert '...\n' not in parse(*group, '--help').out.split('Commands:')[1]


@pytest.mark.parametrize('path', LEAVES, ids=' '.join)
def test_each_command_has_help_in_its_groups_words(path: list[str]) -> None:
    ran = parse(*path, '-h')
    assert (ran.code, ran.err) == (0, '')
    assert 'Usage: acklog ' + ' '.join(path) in ran.out


@pytest.mark.parametrize('name', COMMANDS)
def test_the_lists_of_commands_say_what_the_commands_say(name: str) -> None:
    import importlib

    lazy = COMMANDS[name]
    command = getattr(importlib.import_module(lazy.module), lazy.name)
    assert command.name == name


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['tpic'], "No such command 'tpic'. Did you mean 'topic'?"),
        (['topic', 'creat'], "No such command 'creat'. Did you mean 'create'?"),
        (['publish', 't', '--rte', '5'], "No such option '--rte'. Did you mean '--rate'?"),
        (['xyz'], 'There are serve, topic, '),
        (['topic', 'describe'], "Missing argument 'NAME...'"),
        (['topic', 'create', 't', '-p', '0'], '0 is not in the range'),
        (['topic', 'create', 't', '-c', 'x'], "'x' is not NAME=VALUE"),
        (['topic', 'config', 't', '=5'], "'=5' is not NAME=VALUE"),
        (['publish', 't', '--rate', '0'], '0.0 is not in the range'),
        (['publish', 't', '--acks', '2'], "'2' is not one of 'all', '1', '0'"),
        (['topic', 'list', '--timeout', 'nan'], "'nan' is not a number"),
        (['publish', 't', '--rate', 'nan'], "'nan' is not a number"),
        (['subscribe', 'g', 't', '--idle', 'NaN'], "'NaN' is not a number"),
        (['topic', 'config', 't', 'a=1', 'b=2', 'a=3'], 'a is named twice'),
        (['group', 'config', 'g', 'a=1', '--unset', 'a'], 'a is named twice'),
        (['publish', 't', '--key-separator', ''], 'must not be empty'),
        (['subscribe', 'g'], "Missing argument 'TOPIC...'"),
        (['subscribe', 'g', 't', '--from', 'whenever'], '\'whenever\' is not "earliest", "latest"'),
        (['subscribe', 'g', 't', '--from', '2999-01-01'], 'is in the future'),
        (['waiting', 'now', 'g'], 'Say which records, as TOPIC[/PARTITION[/OFFSETS]], or --all.'),
        (['dead', 'discard', 'g', 't', '--all'], 'Either places or --all.'),
        (['dead', 'list', 'g', 't/0/5'], 'no offsets here'),
        (['dead', 'show', 'g', 't/0/5-6'], "'t/0/5-6' is not one record"),
        (['dead', 'redrive', 'g', 't/0', 't/1', '--rate', '5'], '--rate goes with one'),
        (['dead', 'redrive', 'g', 't/0/9-5'], "'9-5' ends before it begins"),
        (['dead', 'redrive', 'g', 't/x'], "'x' is not a partition"),
        (['dead', 'redrive', 'g', 't/0/1,,2'], "'' is not an offset"),
        (['group', 'replay', 'g', 't/0'], 'is not a range of offsets'),
        (['group', 'seek', 'g'], 'either --to or --offset'),
        (['group', 'seek', 'g', '--to', 'whenever'], "'whenever' is not earliest, latest, a time ago"),
        (['waiting', 'move', 'g', 't'], "Missing option '--to'"),
        (['scheduled', 'move', 't', '--to', 'soon'], "'soon' is not a time from now"),
        (['record', 'show', 't/0/1', '--value', '--json'], 'Either --value or --json.'),
        (['completion', 'tcsh'], "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, list) else '',
)
def test_what_is_wrong_is_said(arguments: list[str], said: str) -> None:
    ran = parse(*arguments)
    assert ran.code == 2
    assert said in ' '.join(ran.err.split())


@pytest.mark.parametrize('shell', ['bash', 'zsh', 'fish'])
def test_completion(shell: str) -> None:
    ran = parse('completion', shell)
    assert ran.code == 0
    assert '_ACKLOG_COMPLETE' in ran.out


@pytest.mark.parametrize(
    ('words', 'offered'),
    [
        ('acklog topic d', ['delete', 'describe']),
        ('acklog group re', ['replay', 'resume']),
        ('acklog waiting n', ['now']),
        ('acklog dead redrive --r', ['--rate']),
    ],
)
def test_completion_completes_commands_and_options(words: str, offered: list[str]) -> None:
    number = str(words.count(' '))
    env = {**environment('x'), '_ACKLOG_COMPLETE': 'bash_complete', 'COMP_WORDS': words, 'COMP_CWORD': number}
    code = 'from acklog.cli.main import main; main()'
    done = subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True)
    assert sorted(done.stdout.split()) == [f'plain,{word}' for word in offered]


def test_a_server_that_is_not_there_is_one_line_and_code_3() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody answers, and nobody else gets it
        taken.bind(('127.0.0.1', 0))
        address = f'127.0.0.1:{taken.getsockname()[1]}'
        for arguments in (['topic', 'list'], ['publish', 't'], ['subscribe', 'g', 't']):
            ran = acklog_process(*arguments, bootstrap=address, stdin=b'x\n')
            assert (ran.code, ran.out) == (3, '')
            why = f'no server answers at {address}: the connection was refused'
            cure = '"acklog serve" starts one; -b or ACKLOG_BOOTSTRAP for one elsewhere'
            assert ran.err == f'acklog: {why} ({cure})\n'


def test_bootstrap_by_option_before_or_behind_the_command_wins_over_the_environment() -> None:
    assert '127.0.0.1:2' in run('topic', 'list', '-b', '127.0.0.1:2').err
    assert '127.0.0.1:3' in run('-b', '127.0.0.1:3', 'topic', 'list').err
    assert '127.0.0.1:2' in run('-b', '127.0.0.1:3', 'topic', 'list', '-b', '127.0.0.1:2').err


@pytest.mark.parametrize('command', ['dead list g', 'group why g', 'waiting now g --all', 'record show t/0/1'])
def test_no_http_api_there_is_one_line_and_code_3(command: str) -> None:
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        address = f'http://127.0.0.1:{taken.getsockname()[1]}'
        why = f'no server answers at {address}: the connection was refused'
        cure = '"acklog serve" starts one; --http or ACKLOG_API for one elsewhere'
        assert run(*command.split(), http=address) == (3, '', f'acklog: {why} ({cure})\n')


def test_the_address_of_http_by_option_before_or_behind_the_command_wins_over_the_environment() -> None:
    assert 'http://127.0.0.1:2:' in run('dead', 'list', 'g', '--http', 'http://127.0.0.1:2').err
    assert '127.0.0.1:3:' in run('--http', '127.0.0.1:3', 'dead', 'list', 'g').err
    assert '127.0.0.1:2:' in run('--http', '127.0.0.1:3', 'dead', 'list', 'g', '--http', '127.0.0.1:2').err
    ran = run('dead', 'list', 'g', '--http', 'ftp://there')
    assert (ran.code, ran.out) == (2, '')
    assert "http='ftp://there' is not allowed" in ran.err


def test_what_answers_but_is_no_kafka() -> None:
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(20)
        address = f'127.0.0.1:{server.getsockname()[1]}'
        process = subprocess.Popen(
            [sys.executable, '-m', 'acklog', 'topic', 'list', '-b', address], stderr=subprocess.PIPE, text=True
        )
        connection, _ = server.accept()
        connection.sendall(b'HTTP/1.1 400 Bad Request\r\n\r\n')
        _, err = process.communicate(timeout=20)
        connection.close()
    assert process.returncode == 6
    assert f'what answers at {address} does not speak the Kafka protocol' in err


def test_an_address_that_is_none() -> None:
    ran = run('topic', 'list', '-b', 'host:port')
    assert (ran.code, ran.out) == (2, '')
    assert "bootstrap='host:port' is not allowed" in ran.err


def test_a_setting_that_is_not_allowed() -> None:
    ran = run('serve', '--set', 'num.partitions=none')
    assert ran.code == 2
    assert ran.err.startswith("acklog: num.partitions='none' is not allowed")
    ran = run('serve', '--log-level', 'loud')
    assert ran.code == 2
    assert "log.level='loud'" in ran.err


def test_the_server_does_not_run_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, 'platform', 'win32')
    ran = run('serve')
    assert (ran.code, ran.out) == (6, '')
    assert 'does not run on Windows' in ran.err


# What help and `import acklog` must not load, since each costs more than all the rest.
HEAVY = (
    'asyncio',
    'kio',
    'pyroaring',
    'http',
    'acklog.wire',
    'acklog.client',
    'acklog.server',
    'acklog.broker',
    'acklog.core',
)


@pytest.mark.parametrize(
    'code', ['import acklog', 'from acklog.cli.main import main; main(["--help"])'], ids=['import', 'help']
)
def test_nothing_heavy_is_imported(code: str) -> None:
    check = f'{code}\nimport sys\nsys.exit(",".join(m for m in {HEAVY} if m in sys.modules) or None)'
    done = subprocess.run([sys.executable, '-c', check], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, '')


@pytest.mark.parametrize(
    'words',
    [
        'topic create t',
        'topic list',
        'topic describe t',
        'topic config t',
        'topic delete t -y',
        'group list',
        'group describe g',
        'group lag g',
        'group config g',
        'group delete g -y',
    ],
)
def test_who_asks_loads_nothing_of_publishing_and_subscribing(words: str) -> None:
    arguments = [*words.split(), '-b', '127.0.0.1:1', '--timeout', '0.1']
    unused = ('acklog.client.producer', 'acklog.client.subscription', 'acklog.wire.record_batch', 'crc32c')
    check = f"""
import sys
from acklog.cli.main import main
code = main({arguments})
print(code, [name for name in {unused} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, '-c', check], capture_output=True, text=True)
    assert done.stdout == '3 []\n', done.stderr
