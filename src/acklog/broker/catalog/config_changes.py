"""Changing configs of topics, groups and the broker: judged as a whole, durable, then in use everywhere.

Strategy: a change is a function from a resource's own configs to new ones. It runs inside the catalog's turn, so two
changes of one resource at the same time both count. With `only` it is judged and dropped (validate_only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.broker.catalog.catalog import ConfigChange, Group
from acklog.broker.catalog.topics import reconfigure
from acklog.broker.configs import BROKER, CLUSTER, GROUP, TOPIC, Settings, Table, UnknownConfig, check_together
from acklog.broker.dead_letters.topic import check_name
from acklog.broker.refusals import check_group_name, no_topic
from acklog.errors import ConfigError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


def refused_config(table: Table, error: ConfigError, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> Refused:
    """The refusal of a wrong config, in Kafka's words where it has them."""
    if isinstance(error, UnknownConfig):
        hint = error.allowed.partition(';')[2]
        message = f'Unknown {table.resource} config name: {error.name}{";" if hint else ""}{hint}'
        return Refused(ErrorCode.INVALID_CONFIG, message)
    return Refused(code, f'Invalid value {error.value} for configuration {error.name}: Value {error.allowed}')


async def change_topic(broker: Broker, name: str, change: ConfigChange, *, only: bool) -> None:
    """Raises Refused, LogError."""
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, 'Default topic resources are not allowed.')
    topic = broker.catalog.topics.get(name)
    if topic is None:
        raise no_topic(name)

    def judged(configs: Mapping[str, str]) -> dict[str, str]:
        return _normalized(TOPIC, change(configs))

    if only:
        judged(topic.configs)
        return
    if not await broker.catalog.alter_topic_configs(topic, judged):
        raise no_topic(name)
    reconfigure(broker, topic)


async def change_group(broker: Broker, name: str, change: ConfigChange, *, only: bool) -> None:
    """The group need not exist (yet). Raises Refused, LogError."""
    check_group_name(name, ErrorCode.INVALID_REQUEST)

    def judged(configs: Mapping[str, str]) -> dict[str, str]:
        changed = _normalized(GROUP, change(configs))
        try:
            check_together(Group(name, 0, changed, broker.settings))
        except ConfigError as error:
            raise Refused(ErrorCode.INVALID_CONFIG, f'{error.name} {error.allowed}') from None
        check_name(broker, name, changed)
        return changed

    if only:
        judged(broker.catalog.group_configs.get(name, {}))
        return
    await broker.catalog.alter_group_configs(name, judged)
    group = broker.catalog.groups.get(name)
    if group is not None:
        broker.deliveries.reconfigure(group)


async def change_broker(broker: Broker, name: str, change: ConfigChange, *, only: bool) -> None:
    """`name`: the node's id, or '' for all nodes. Raises Refused, LogError."""
    if name != CLUSTER:
        check_node(broker, name, 'Node')

    def judged(configs: Mapping[str, str]) -> dict[str, str]:
        changed = change(configs)
        fixed = sorted(key for key in changed if key in BROKER and not BROKER[key].dynamic)
        if fixed:
            message = f'Cannot update these configs dynamically: [{", ".join(fixed)}]'
            raise Refused(ErrorCode.INVALID_REQUEST, message)
        changed = _normalized(BROKER, changed, ErrorCode.INVALID_REQUEST)
        settings = Settings(broker.settings.static)
        settings.replace_dynamic({**broker.catalog.broker_configs, name: changed})
        try:
            settings.check()
        except ConfigError as error:
            raise Refused(ErrorCode.INVALID_REQUEST, f'{error.name} {error.allowed}') from None
        _check_groups(broker, settings)
        return changed

    if only:
        judged(broker.catalog.broker_configs.get(name, {}))
        return
    await broker.catalog.alter_broker_configs(name, judged)
    for topic in broker.catalog.topics.values():
        reconfigure(broker, topic)
    for group in broker.catalog.groups.values():
        broker.deliveries.reconfigure(group)


def _check_groups(broker: Broker, settings: Settings) -> None:
    """What groups set for themselves must go with the broker's configs, which give them the rest. Raises Refused."""
    for name, configs in broker.catalog.group_configs.items():
        try:
            check_together(Group(name, 0, configs, settings))
        except ConfigError as error:
            message = f'{error.name} {error.allowed}, in group {name}'
            raise Refused(ErrorCode.INVALID_REQUEST, message) from None


def check_node(broker: Broker, name: str, word: str) -> None:
    """Raises Refused unless `name` is this node's id."""
    if not name.lstrip('-').isdecimal():
        raise Refused(ErrorCode.INVALID_REQUEST, f'{word} id must be an integer, but it is: {name}')
    if int(name) != broker.node.id:
        expected = f'expected {broker.node.id} or empty string' if word == 'Broker' else f'expected {broker.node.id}'
        raise Refused(ErrorCode.INVALID_REQUEST, f'Unexpected broker id, {expected}, but received {name}')


def _normalized(table: Table, configs: Mapping[str, str], code: ErrorCode = ErrorCode.INVALID_CONFIG) -> dict[str, str]:
    try:
        return table.normalized(configs)
    except ConfigError as error:
        raise refused_config(table, error, code) from None
