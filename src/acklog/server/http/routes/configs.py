"""Configs of topics, of groups, and of the server: show and change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from acklog.broker.apis.config_answers import HasConfigs
from acklog.broker.catalog.catalog import ConfigChange
from acklog.broker.catalog.config_changes import change_broker, change_group, change_topic
from acklog.broker.configs import BROKER, CLUSTER, GROUP, TOPIC, Source, Table, text_of
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.routes.topics import find_topic
from acklog.server.http.values import DryRun, GroupName, TopicName

From = Literal['topic', 'group', 'server', 'default']

SOURCES: dict[Source, From] = {
    Source.TOPIC: 'topic',
    Source.GROUP: 'group',
    Source.DYNAMIC_BROKER: 'server',
    Source.DYNAMIC_DEFAULT_BROKER: 'server',
    Source.STATIC_BROKER: 'server',
    Source.DEFAULT: 'default',
}


class ConfigView(Struct):
    """A config in effect."""

    name: str
    value: Annotated[str | None, Meta(description='As text; null: none.')]
    source: Annotated[From, Meta(description='Where the value comes from.')]
    default: Annotated[str | None, Meta(description='The value where nobody sets any.')]
    type: str
    dynamic: Annotated[bool, Meta(description='It can be changed while the server runs.')]
    words: Annotated[str, Meta(description='What it means.')]


class ConfigList(Struct):
    """All configs, by name."""

    items: list[ConfigView]


def _meta(table: Table) -> Meta:
    return Meta(
        description='Values as text by name; null: no value of its own any more. The others stay as they are.',
        extra_json_schema={'propertyNames': {'enum': sorted(table)}},
    )


class TopicConfigChange(Struct, forbid_unknown_fields=True):
    """Changes of a topic's configs; all or none."""

    configs: Annotated[dict[str, str | None], _meta(TOPIC)]
    dry_run: DryRun = False


class GroupConfigChange(Struct, forbid_unknown_fields=True):
    """Changes of a group's configs; all or none."""

    configs: Annotated[dict[str, str | None], _meta(GROUP)]
    dry_run: DryRun = False


class ServerConfigChange(Struct, forbid_unknown_fields=True):
    """Changes of the server's dynamic configs; all or none."""

    configs: Annotated[dict[str, str | None], _meta(BROKER)]
    dry_run: DryRun = False


def _shown(configured: HasConfigs, table: Table) -> ConfigList:
    items = []
    for name in sorted(table):
        definition, place = table[name], configured.synonyms(name)[0]
        kind = definition.kind.name.lower()
        default = text_of(definition.default)
        items.append(
            ConfigView(name, place.text, SOURCES[place.source], default, kind, definition.dynamic, definition.words)
        )
    return ConfigList(items)


def _change(asked: Mapping[str, str | None]) -> ConfigChange:
    def change(configs: Mapping[str, str]) -> dict[str, str]:
        changed = {name: text for name, text in configs.items() if name not in asked}
        return changed | {name: text for name, text in asked.items() if text is not None}

    return change


EXAMPLE = {
    'items': [
        {
            'name': 'acklog.retry.backoff',
            'value': '1s,10s,1m',
            'source': 'group',
            'default': 'none',
            'type': 'string',
            'dynamic': True,
            'words': 'How long a record waits after a failed delivery.',
        }
    ]
}


@endpoint('GET', '/v1/topics/{topic}/configs', tag='configs', refuses=(404,), examples=(None, EXAMPLE))
async def list_topic_configs(call: Call, topic: TopicName) -> ConfigList:
    """List the configs in effect for a topic."""
    return _shown(find_topic(call, 'DESCRIBE_CONFIGS', topic), TOPIC)


@endpoint(
    'PATCH',
    '/v1/topics/{topic}/configs',
    tag='configs',
    refuses=(404, 422),
    examples=({'configs': {'retention.ms': '86400000', 'retention.bytes': None}}, EXAMPLE),
)
async def change_topic_configs(call: Call, topic: TopicName, body: TopicConfigChange) -> ConfigList:
    """Change configs of a topic."""
    call.broker.authorize(call.caller, 'ALTER_CONFIGS', 'TOPIC', topic)
    await change_topic(call.broker, topic, _change(body.configs), only=body.dry_run)
    return _shown(find_topic(call, 'DESCRIBE_CONFIGS', topic), TOPIC)


@endpoint('GET', '/v1/groups/{group}/configs', tag='configs', examples=(None, EXAMPLE))
async def list_group_configs(call: Call, group: GroupName) -> ConfigList:
    """List the configs in effect for a group, which need not exist yet."""
    call.broker.authorize(call.caller, 'DESCRIBE_CONFIGS', 'GROUP', group)
    return _shown(call.broker.catalog.group_or_default(group), GROUP)


@endpoint(
    'PATCH',
    '/v1/groups/{group}/configs',
    tag='configs',
    refuses=(422,),
    examples=({'configs': {'acklog.retry.backoff': '1s,10s,1m', 'share.delivery.count.limit': '10'}}, EXAMPLE),
)
async def change_group_configs(call: Call, group: GroupName, body: GroupConfigChange) -> ConfigList:
    """Change configs of a group.

    It need not exist yet, and its configs stay when it is deleted."""
    call.broker.authorize(call.caller, 'ALTER_CONFIGS', 'GROUP', group)
    await change_group(call.broker, group, _change(body.configs), only=body.dry_run)
    return _shown(call.broker.catalog.group_or_default(group), GROUP)


@endpoint('GET', '/v1/configs', tag='configs', examples=(None, EXAMPLE))
async def list_server_configs(call: Call) -> ConfigList:
    """List the configs of the server."""
    call.broker.authorize(call.caller, 'DESCRIBE_CONFIGS', 'CLUSTER', '')
    return _shown(call.broker.settings, BROKER)


@endpoint(
    'PATCH',
    '/v1/configs',
    tag='configs',
    refuses=(422,),
    examples=({'configs': {'acklog.state.sync': 'all'}}, EXAMPLE),
)
async def change_server_configs(call: Call, body: ServerConfigChange) -> ConfigList:
    """Change dynamic configs of the server.

    They win over what it was started with, and are kept over restarts."""
    call.broker.authorize(call.caller, 'ALTER_CONFIGS', 'CLUSTER', '')
    await change_broker(call.broker, CLUSTER, _change(body.configs), only=body.dry_run)
    return _shown(call.broker.settings, BROKER)


CONFIGS = (
    list_topic_configs,
    change_topic_configs,
    list_group_configs,
    change_group_configs,
    list_server_configs,
    change_server_configs,
)
