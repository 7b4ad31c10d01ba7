"""Config definitions: what is accepted, in which words anything else is refused, where a value comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from acklog.broker.catalog.catalog import Group, Topic, new_id
from acklog.broker.configs import BROKER, GROUP, TOPIC, Settings, Source, Table, log_config, text_of
from acklog.broker.configs.checks import duration_ms
from acklog.broker.configs.reference import reference
from acklog.broker.configs.values import Readable
from acklog.errors import ConfigError
from acklog.log.seam import LogConfig

TABLES = {'topic': TOPIC, 'group': GROUP, 'broker': BROKER}


def topic(settings: Settings | None = None, **configs: str) -> Topic:
    texts = {name.replace('_', '.'): text for name, text in configs.items()}
    return Topic('orders', new_id(), 1, texts, settings or Settings())


@pytest.mark.parametrize('table', TABLES.values(), ids=TABLES)
def test_every_default_is_allowed(table: Table) -> None:
    for name, definition in table.items():
        assert definition.default is not None, name
        assert definition.parse(text_of(definition.default) or '') == definition.default
        assert definition.words.endswith('.'), name
        assert definition.broker is None or definition.broker in BROKER


@pytest.mark.parametrize(
    ('table', 'name', 'text', 'stored'),
    [
        ('topic', 'retention.ms', ' 5 ', '5'),
        ('topic', 'retention.ms', '-1', '-1'),
        ('topic', 'cleanup.policy', 'delete', 'delete'),
        ('topic', 'cleanup.policy', '', ''),
        ('topic', 'preallocate', 'TRUE', 'true'),
        ('topic', 'min.cleanable.dirty.ratio', '0.25', '0.25'),
        ('group', 'share.auto.offset.reset', 'by_duration:PT1H', 'by_duration:PT1H'),
        ('group', 'share.delivery.count.limit', '-1', '-1'),
        ('group', 'acklog.retry.backoff', 'exponential:1s..10m~20%', 'exponential:1s..10m~20%'),
        ('group', 'errors.deadletterqueue.topic.name', 'dlq.orders', 'dlq.orders'),
        ('broker', 'num.partitions', '+7', '7'),
    ],
)
def test_accepted(table: str, name: str, text: str, stored: str) -> None:
    assert TABLES[table].normal(name, text) == stored


@pytest.mark.parametrize(
    ('table', 'name', 'text', 'allowed'),
    [
        ('topic', 'retention.ms', '-2', 'at least -1'),
        ('topic', 'retention.ms', 'abc', 'a whole number of 64 bits'),
        ('topic', 'retention.ms', '', 'whole number'),
        ('topic', 'retention.ms', '9223372036854775808', '64 bits'),
        ('topic', 'retention.ms', '٣', 'whole number'),
        ('topic', 'max.message.bytes', '2147483648', '32 bits'),
        ('topic', 'segment.bytes', '13', 'at least 1048576'),
        ('topic', 'cleanup.policy', 'compact', 'compact is not supported by acklog yet'),
        ('topic', 'cleanup.policy', 'delete,compact', 'compact is not supported by acklog yet'),
        ('topic', 'cleanup.policy', 'x', 'must be delete'),
        ('topic', 'message.timestamp.type', 'createtime', 'CreateTime, LogAppendTime'),
        ('topic', 'preallocate', 'yes', 'true or false'),
        ('topic', 'min.insync.replicas', '2', 'must be 1'),
        ('topic', 'min.cleanable.dirty.ratio', 'nan', 'from 0 to 1'),
        ('topic', 'retention', '5', 'unknown topic config name; did you mean retention.'),
        ('topic', 'share.isolation.level', 'x', 'unknown topic config name'),
        ('group', 'share.auto.offset.reset', 'EARLIEST', "either 'earliest', 'latest'"),
        ('group', 'share.auto.offset.reset', 'by_duration:-PT1H', 'by_duration'),
        ('group', 'share.record.lock.duration.ms', '5', 'from 100 to'),
        ('group', 'share.delivery.count.limit', '0', 'from 1 to 32767'),
        ('group', 'share.isolation.level', 'x', 'read_committed, read_uncommitted'),
        ('group', 'acklog.retry.backoff', 'often', 'exponential:'),
        ('broker', 'num.partition', '5', 'did you mean num.partitions'),
        ('broker', 'node.id', '1', 'must be 0'),
        ('broker', 'data', '', 'must be the name of a directory'),
    ],
)
def test_refused(table: str, name: str, text: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as refused:
        TABLES[table].normal(name, text)
    assert (refused.value.name, refused.value.value) == (name, text)
    assert allowed in refused.value.allowed


@pytest.mark.parametrize(
    ('text', 'ms'),
    [
        ('PT1H', 3_600_000),
        ('P1DT2H3M4.5S', 93_784_500),
        ('pt0s', 0),
        ('PT0.0019S', 1),
        ('P1D', 86_400_000),
        ('P', None),
        ('PT', None),
        ('P1DT', None),
        ('1h', None),
        ('-PT1H', None),
        ('PT-1H', None),
        ('PT1H2', None),
    ],
)
def test_durations(text: str, ms: int | None) -> None:
    assert duration_ms(text) == ms


def test_a_value_comes_from_the_most_particular_place() -> None:
    settings = Settings({'log.retention.ms': '1'})
    orders = topic(settings)
    assert orders.integer('retention.ms') == 1
    settings.replace_dynamic({'': {'log.retention.ms': '2'}})
    assert orders.integer('retention.ms') == 2
    settings.replace_dynamic({'': {'log.retention.ms': '2'}, '0': {'log.retention.ms': '3'}})
    assert orders.integer('retention.ms') == 3
    orders.replace_configs({'retention.ms': '4'})
    assert orders.integer('retention.ms') == 4
    assert [(place.name, place.text, place.source) for place in orders.synonyms('retention.ms')] == [
        ('retention.ms', '4', Source.TOPIC),
        ('log.retention.ms', '3', Source.DYNAMIC_BROKER),
        ('log.retention.ms', '2', Source.DYNAMIC_DEFAULT_BROKER),
        ('log.retention.ms', '1', Source.STATIC_BROKER),
        ('log.retention.ms', '604800000', Source.DEFAULT),
    ]


def test_what_is_derived_follows_each_change() -> None:
    settings, asked = Settings(), []
    orders = topic(settings)

    def retention(configs: Readable) -> int:
        asked.append(configs)
        return configs.integer('retention.ms')

    assert [orders.derived(retention) for _ in range(2)] == [7 * 24 * 3_600_000] * 2
    settings.replace_dynamic({'': {'log.retention.ms': '2'}})
    assert [orders.derived(retention) for _ in range(2)] == [2, 2]
    orders.replace_configs({'retention.ms': '4'})
    assert [orders.derived(retention) for _ in range(2)] == [4, 4]
    assert asked == [orders] * 3


def test_a_group_follows_its_defaults() -> None:
    settings = Settings()
    readers = Group('readers', 1, {'share.record.lock.duration.ms': '1000'}, settings)
    assert readers.integer('share.partition.max.record.locks') == 100_000
    settings.replace_dynamic({'': {'group.share.partition.max.record.locks': '7', 'acklog.retry.backoff': 'fixed:1s'}})
    assert readers.integer('share.partition.max.record.locks') == 7
    assert readers.text('acklog.retry.backoff') == 'fixed:1s'
    assert readers.integer('share.record.lock.duration.ms') == 1000


def test_settings_fit_together() -> None:
    with pytest.raises(ConfigError, match=r'must be greater than group\.share.heartbeat.interval.ms'):
        Settings({'group.share.session.timeout.ms': '5000'})


def test_what_a_log_is_told() -> None:
    assert log_config(topic()) == LogConfig()
    told = log_config(topic(message_timestamp_type='LogAppendTime', retention_bytes='-7', segment_ms='9'))
    assert (told.log_append_time, told.retention_bytes, told.segment_ms) == (True, -1, 9)
    kept = log_config(topic(cleanup_policy='', retention_ms='1', retention_bytes='1'))
    assert (kept.retention_ms, kept.retention_bytes) == (-1, -1)


def test_the_reference_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / 'docs' / 'configuration.md'
    written = page.read_text(encoding='utf-8')
    assert written == reference(), 'run: python -m acklog.broker.configs.reference > docs/configuration.md'
    for name in (*BROKER, *TOPIC, *GROUP):
        assert f'| `{name}` |' in written
