"""Configs of broker, topics and groups: definitions, validation, look-up, reference page."""

from acklog.broker.configs.broker_table import BROKER
from acklog.broker.configs.definitions import Definition, Kind, Table, UnknownConfig, Value, text_of
from acklog.broker.configs.group_table import GROUP, check_together
from acklog.broker.configs.log_config import log_config
from acklog.broker.configs.topic_table import TOPIC
from acklog.broker.configs.values import CLUSTER, Configured, Readable, Settings, Source, Synonym

__all__ = [
    'BROKER',
    'CLUSTER',
    'GROUP',
    'TOPIC',
    'Configured',
    'Definition',
    'Kind',
    'Readable',
    'Settings',
    'Source',
    'Synonym',
    'Table',
    'UnknownConfig',
    'Value',
    'check_together',
    'log_config',
    'text_of',
]
