"""IncrementalAlterConfigs (44), v0-v1 (KIP-339): set, delete, append to and subtract from configs of topics, groups and
the broker. Each resource is judged by itself and changed as a whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.config_answers import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from acklog.broker.catalog.catalog import ConfigChange
from acklog.broker.catalog.config_changes import change_broker, change_group, change_topic
from acklog.broker.configs import BROKER, GROUP, TOPIC, Kind, Table, text_of
from acklog.broker.eager import Pace
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
TABLES = {TOPIC_RESOURCE: TOPIC, GROUP_RESOURCE: GROUP, BROKER_RESOURCE: BROKER}
KINDS = {TOPIC_RESOURCE: 'TOPIC', GROUP_RESOURCE: 'GROUP', BROKER_RESOURCE: 'CLUSTER'}
CHANGES = {TOPIC_RESOURCE: change_topic, GROUP_RESOURCE: change_group, BROKER_RESOURCE: change_broker}


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    def change_of(entry: Any) -> ConfigChange:
        _check_operations(entry.configs)
        return lambda configs: _changed(broker, entry, configs)

    return {'responses': await alter(broker, caller, request, change_of)}


async def alter(broker: Broker, caller: Caller, request: Any, change_of: Any) -> list[dict[str, Any]]:
    """The answers for all resources of a request; `change_of(entry)` is the change that one asks for, or raises
    Refused."""
    times = Counter((entry.resource_type, entry.resource_name) for entry in request.resources)
    answers, pace = [], Pace()
    for entry in request.resources:
        await pace.keep()
        kind, name = entry.resource_type, entry.resource_name
        answer = {'resource_type': kind, 'resource_name': name, 'error_code': ErrorCode.NONE, 'error_message': None}
        try:
            if times[kind, name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, 'Each resource must appear at most once.')
            if kind not in CHANGES:
                raise Refused(ErrorCode.INVALID_REQUEST, f'Unknown resource type {kind}')
            broker.authorize(caller, 'ALTER_CONFIGS', KINDS[kind], '' if kind == BROKER_RESOURCE else name)
            await CHANGES[kind](broker, name, change_of(entry), only=request.validate_only)
        except (Refused, LogError) as error:
            answer['error_code'], answer['error_message'] = answer_to(error)
        answers.append(answer)
    return answers


def _check_operations(operations: Sequence[Any]) -> None:
    names = [operation.name for operation in operations]
    if len(set(names)) < len(names):
        raise Refused(ErrorCode.INVALID_REQUEST, 'Error due to duplicate config keys')
    missing = [one.name for one in operations if one.value is None and one.config_operation != DELETE]
    if missing:
        raise Refused(ErrorCode.INVALID_REQUEST, f'Null value not supported for : {",".join(missing)}')
    for operation in operations:
        if operation.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
            raise Refused(ErrorCode.INVALID_REQUEST, f'Unknown config operation {operation.config_operation}')


def _changed(broker: Broker, entry: Any, configs: Mapping[str, str]) -> dict[str, str]:
    """The resource's own configs after the operations."""
    table, changed = TABLES[entry.resource_type], dict(configs)
    for operation in entry.configs:
        name, value = operation.name, operation.value
        if operation.config_operation == SET:
            changed[name] = value
        elif operation.config_operation == DELETE:
            changed.pop(name, None)
        else:
            items = _items(broker, table, name, changed, operation.config_operation)
            given = [item.strip() for item in value.split(',') if item.strip()]
            if operation.config_operation == APPEND:
                items += [item for item in given if item not in items]
            else:
                items = [item for item in items if item not in given]
            changed[name] = ','.join(items)
    return changed


def _items(broker: Broker, table: Table, name: str, configs: Mapping[str, str], operation: int) -> list[str]:
    """The list that is in effect for `name`, given the resource's own configs. Raises Refused."""
    definition = table.get(name)
    if definition is None or definition.kind is not Kind.LIST:
        word = 'APPEND to' if operation == APPEND else 'SUBTRACT from'
        message = f"Can't {word} key {name} because its type is not LIST."
        raise Refused(ErrorCode.INVALID_CONFIG, message)
    text = configs.get(name, text_of(broker.settings.config(definition.broker or name)))
    return [item for item in (text or '').split(',') if item]


API = Api(44, 'IncrementalAlterConfigs', (0, 1), handle)
