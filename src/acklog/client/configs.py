"""Configs of topics and groups, read and changed through a server's config APIs (KIP-133, KIP-339, KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping

from acklog.client.arguments import check_configs, check_text
from acklog.client.calls import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Cold
from acklog.client.cluster import Cluster
from acklog.client.descriptions import Config
from acklog.client.errors import check

TOPIC, GROUP = 2, 32  # resource types
_KINDS = {TOPIC: 'topic', GROUP: 'group'}
SET, DELETE = 0, 1  # operations of IncrementalAlterConfigs

_SOURCES = {1: 'topic', 2: 'broker', 3: 'cluster', 4: 'static', 5: 'default', 6: 'broker-logger', 8: 'group'}
_OWN_SOURCES = {TOPIC: 1, GROUP: 8}


async def configs_of(cluster: Cluster, kind: int, name: str) -> list[Config]:
    """All configs of a topic or group, defaults included, by name. Raises NotFound."""
    check_text(f'the name of a {_KINDS[kind]}', name)
    resource = {'resource_type': kind, 'resource_name': name, 'configuration_keys': None}
    fields = {'resources': [resource], 'include_synonyms': False, 'include_documentation': True}
    answer = await cluster.call(Cold(DESCRIBE_CONFIGS, fields))
    result = answer.results[0]
    check(result.error_code, _subject(kind, name), result.error_message)
    own = _OWN_SOURCES[kind]
    configs = [
        Config(
            name=config.name,
            value=None if config.is_sensitive else config.value,
            is_set=config.config_source == own,
            source=_SOURCES.get(config.config_source, 'unknown'),
            read_only=config.read_only,
            documentation=getattr(config, 'documentation', None),
        )
        for config in result.configs
    ]
    return sorted(configs, key=lambda config: config.name)


async def alter_configs(cluster: Cluster, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
    """Set configs of a topic or group, or take them back to the default (None). All or none are changed. Raises
    NotFound."""
    check_text(f'the name of a {_KINDS[kind]}', name)
    check_configs(changes, unset=True)
    configs = [
        {'name': key, 'config_operation': DELETE if value is None else SET, 'value': value}
        for key, value in changes.items()
    ]
    resource = {'resource_type': kind, 'resource_name': name, 'configs': configs}
    fields = {'resources': [resource], 'validate_only': False}
    answer = await cluster.call(Cold(INCREMENTAL_ALTER_CONFIGS, fields))
    result = answer.responses[0]
    check(result.error_code, _subject(kind, name), result.error_message)


def _subject(kind: int, name: str) -> str:
    return f'{_KINDS[kind]} {name!r}'
