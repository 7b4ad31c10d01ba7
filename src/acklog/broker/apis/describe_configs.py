"""DescribeConfigs (32), v1-v4: configs in effect, where each comes from (KIP-226), type and words (KIP-569).

Resources: topic, group (which need not exist, KIP-848), broker by its id; broker '' is what was set for all nodes.
An answer is a thousand times as long as what asks for it: it is given once, and not for any number of resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.config_answers import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    HasConfigs,
    config_entries,
    config_entry,
)
from acklog.broker.catalog.config_changes import check_node
from acklog.broker.configs import BROKER, CLUSTER, GROUP, TOPIC, Source, Synonym
from acklog.broker.lazily import Lazily
from acklog.broker.refusals import check_group_name, check_topic_name, no_topic
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

MOST_AT_ONCE = 20_000  # resources: as many as there can be topics, by default


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    words = {
        'synonyms': request.include_synonyms,
        'documentation': getattr(request, 'include_documentation', False),
    }
    asked = dict.fromkeys((one.resource_type, one.resource_name, one.configuration_keys) for one in request.resources)

    def describe(numbered: tuple[int, tuple[int, str, Any]]) -> dict[str, Any]:
        number, (kind, name, keys) = numbered
        answer = {
            'resource_type': kind,
            'resource_name': name,
            'error_code': ErrorCode.NONE,
            'error_message': '',
            'configs': [],
        }
        try:
            if number > MOST_AT_ONCE:
                raise Refused(ErrorCode.INVALID_REQUEST, f'At most {MOST_AT_ONCE} resources are described at once.')
            answer['configs'] = _entries(broker, caller, kind, name, keys, words)
        except Refused as error:
            answer['error_code'], answer['error_message'] = answer_to(error)
        return answer

    return {'results': Lazily(describe, list(enumerate(asked, 1)))}


def _entries(
    broker: Broker, caller: Caller, kind: int, name: str, keys: Any, words: dict[str, bool]
) -> list[dict[str, Any]]:
    if kind == TOPIC_RESOURCE:
        return list(config_entries(_topic(broker, caller, name), TOPIC, keys, **words))
    if kind == GROUP_RESOURCE:
        check_group_name(name, ErrorCode.INVALID_REQUEST)
        broker.authorize(caller, 'DESCRIBE_CONFIGS', 'GROUP', name)
        return list(config_entries(broker.catalog.group_or_default(name), GROUP, keys, **words))
    if kind == BROKER_RESOURCE:
        broker.authorize(caller, 'DESCRIBE_CONFIGS', 'CLUSTER', '')
        if name == CLUSTER:
            return _for_all_nodes(broker, keys, words)
        check_node(broker, name, 'Broker')
        return [*config_entries(broker.settings, BROKER, keys, **words), *_listeners(broker, keys, words)]
    raise Refused(ErrorCode.INVALID_REQUEST, f'Unsupported resource type: {kind}')


def _topic(broker: Broker, caller: Caller, name: str) -> HasConfigs:
    check_topic_name(name)
    broker.authorize(caller, 'DESCRIBE_CONFIGS', 'TOPIC', name)
    topic = broker.catalog.topics.get(name)
    if topic is None:
        raise no_topic(name)
    return topic


def _listeners(broker: Broker, keys: Any, words: dict[str, bool]) -> list[dict[str, Any]]:
    """Where the node is reached, under Kafka's names and in its form, for tools that look there."""
    address = f'PLAINTEXT://{broker.node.host}:{broker.node.port}'
    entries = []
    for name, own in (('listeners', 'listen'), ('advertised.listeners', 'advertise')):
        if not keys or name in keys:
            entry = config_entry(BROKER[own], [Synonym(name, address, Source.STATIC_BROKER)], **words)
            entries.append(entry | {'name': name})
    return entries


def _for_all_nodes(broker: Broker, keys: Any, words: dict[str, bool]) -> list[dict[str, Any]]:
    """Only what was set for all nodes."""
    return [
        config_entry(BROKER[name], [Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER)], **words)
        for name, text in broker.catalog.broker_configs.get(CLUSTER, {}).items()
        if not keys or name in keys
    ]


API = Api(32, 'DescribeConfigs', (1, 4), handle)
