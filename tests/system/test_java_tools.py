"""Apache Kafka's own console tools against a real server process; skipped without Java and the jars.

The jars come with `bench/kafka/kafka fetch` (Maven), which a run of the tests does not do by itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.system.clients import publish, set_up

if TYPE_CHECKING:
    from tests.conftest import Shared

LAUNCHER = Path(__file__).parents[2] / 'bench' / 'kafka' / 'kafka'
HOME = Path(os.environ.get('ACKLOG_KAFKA_HOME', Path.home() / '.cache' / 'acklog-kafka'))
JARS = HOME / os.environ.get('ACKLOG_KAFKA_VERSION', '4.4.0') / 'libs'

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which('java') is None, reason='java is not installed'),
    pytest.mark.skipif(not JARS.is_dir(), reason='no jars of Apache Kafka: bench/kafka/kafka fetch'),
]


def tool(name: str, *arguments: str, stdin: str = '') -> str:
    done = subprocess.run(
        [str(LAUNCHER), 'tool', f'org.apache.kafka.tools.{name}', *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_topics_and_configs(shared: Shared, name: str) -> None:
    server = ['--bootstrap-server', shared.address]
    tool('TopicCommand', *server, '--create', '--topic', name, '--partitions', '3', '--config', 'retention.ms=3600000')
    assert name in tool('TopicCommand', *server, '--list').split()
    described = tool('TopicCommand', *server, '--describe', '--topic', name)
    assert 'PartitionCount: 3' in described
    assert 'retention.ms=3600000' in described
    tool('TopicCommand', *server, '--delete', '--topic', name)
    assert name not in tool('TopicCommand', *server, '--list').split()


def test_publish_and_take_with_the_console_tools(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    lines = ''.join(f'line {i}\n' for i in range(100))
    server = ['--bootstrap-server', shared.address]
    tool('ConsoleProducer', *server, '--topic', name, stdin=lines)
    options = ['--topic', name, '--max-messages', '100', '--timeout-ms', '20000']
    assert tool('consumer.ConsoleShareConsumer', *server, '--group', name, *options) == lines


def test_the_share_groups_tool_tells_state_members_and_lag(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    publish(shared.address, name, [b'%d' % i for i in range(10)])
    server = ['--bootstrap-server', shared.address]
    options = ['--topic', name, '--group', name, '--max-messages', '4', '--timeout-ms', '20000']
    tool('consumer.ConsoleShareConsumer', *server, *options, '--command-property', 'max.poll.records=4')
    assert name in tool('consumer.group.ShareGroupCommand', *server, '--list').split()
    offsets = tool('consumer.group.ShareGroupCommand', *server, '--describe', '--group', name, '--offsets')
    row = next(line.split() for line in offsets.splitlines() if line.startswith(name))
    assert row[:3] == [name, name, '0']
    tool('consumer.group.ShareGroupCommand', *server, '--delete', '--group', name)
    assert name not in tool('consumer.group.ShareGroupCommand', *server, '--list').split()


def test_the_performance_tool_publishes_with_idempotence(shared: Shared, name: str) -> None:
    set_up(shared.address, name)
    arguments = ['--topic', name, '--num-records', '20000', '--record-size', '100', '--throughput', '-1']
    properties = ['--command-property', f'bootstrap.servers={shared.address}', 'acks=all']
    assert '20000 records sent' in tool('ProducerPerformance', *arguments, *properties)
