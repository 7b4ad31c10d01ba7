"""Settings from file, environment and command line: who wins, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from acklog.broker.configs import BROKER
from acklog.errors import ConfigError
from acklog.server.config import environment_name, load_settings


def test_each_place_wins_over_those_before(tmp_path: Path) -> None:
    file = tmp_path / 'acklog.toml'
    file.write_text('num.partitions = 2\n"data" = "file"\nmessage.max.bytes = 1000\nlog.level = "debug"\n')
    environment = {'ACKLOG_NUM_PARTITIONS': '3', 'ACKLOG_MESSAGE_MAX_BYTES': '2000', 'HOME': '/'}
    settings = load_settings(
        file=file,
        environment=environment,
        assignments=['num.partitions=4', 'data = set'],
        options={'data': 'option', 'listen': None},
    )
    assert settings.integer('num.partitions') == 4
    assert settings.integer('message.max.bytes') == 2000
    assert settings.text('data') == 'option'
    assert settings.text('log.level') == 'debug'
    assert settings.text('listen') == '127.0.0.1:9092'


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / 'acklog.toml'
    file.write_text('"acklog.state.sync" = "all"\n"acklog.state.sync.interval.ms" = 7\nlog.cleanup.policy = ["delete"]')
    settings = load_settings(environment={'ACKLOG_CONFIG': str(file)})
    assert settings.text('acklog.state.sync') == 'all'
    assert settings.integer('acklog.state.sync.interval.ms') == 7
    assert settings.items('log.cleanup.policy') == ('delete',)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('num.partitions = 0', r"num.partitions='0' is not allowed: must be .* from 1 to"),
        ('num.partitions = "x"', "num.partitions='x' is not allowed"),
        ('num.partition = 3', 'did you mean num.partitions'),
        ('auto.create.topics.enable = "maybe"', 'must be true or false'),
        ('num.partitions = 2020-01-01', 'must be text, a number'),
        ('num.partitions = [1, 2]', 'must be text, a number'),
        ('num.partitions', 'must be a TOML file'),
        ('acklog.state.sync = "all"\nacklog.state.sync.interval.ms = 5', 'quote a name'),
    ],
)
def test_what_a_file_may_not_hold(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / 'acklog.toml'
    file.write_text(content)
    with pytest.raises(ConfigError, match=message):
        load_settings(file=file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='must be a file that can be read: No such file'):
        load_settings(file=tmp_path / 'none.toml')


@pytest.mark.parametrize(
    ('assignment', 'message'),
    [
        ('num.partitions', 'must be NAME=VALUE'),
        ('num.partitions=', "num.partitions='' is not allowed"),
        ('lisen=:1', 'did you mean listen'),
        ('zzz=1', "zzz='1' is not allowed: unknown broker config name$"),
    ],
)
def test_what_may_not_be_set(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(assignments=[assignment])


def test_the_environment() -> None:
    with pytest.raises(ConfigError, match=r"ACKLOG_NUM_PARTITION='3' .* did you mean ACKLOG_NUM_PARTITIONS"):
        load_settings(environment={'ACKLOG_NUM_PARTITION': '3'})
    with pytest.raises(ConfigError, match=r"acklog\.state\.sync='sometimes' is not allowed: must be one of: interval"):
        load_settings(environment={'ACKLOG_STATE_SYNC': 'sometimes'})
    assert load_settings(environment={'ACKLOG_KAFKA_HOME': '/x'}).static == {}  # another program's


def test_no_two_names_are_one_in_the_environment() -> None:
    assert len({environment_name(name) for name in BROKER}) == len(BROKER)
