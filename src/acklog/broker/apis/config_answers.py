"""How configs look in answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Protocol

from acklog.broker.configs import Definition, Synonym, Table

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32


class HasConfigs(Protocol):
    """A topic, a group or the broker's settings."""

    def synonyms(self, name: str) -> list[Synonym]: ...


def config_entries(
    configured: HasConfigs,
    table: Table,
    names: Collection[str] | None = None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> Iterator[dict[str, Any]]:
    """Entries of DescribeConfigs for all configs, or those of `names` that exist."""
    for name, definition in table.items():
        if not names or name in names:
            yield config_entry(definition, configured.synonyms(name), synonyms=synonyms, documentation=documentation)


def created_entries(configured: HasConfigs, table: Table) -> list[dict[str, Any]]:
    """Entries of CreateTopics (KIP-525): all configs by name, with less said about each."""
    told = ('name', 'value', 'read_only', 'config_source', 'is_sensitive')
    entries = sorted(config_entries(configured, table), key=lambda entry: str(entry['name']))
    return [{key: entry[key] for key in told} for entry in entries]


def config_entry(
    definition: Definition, places: list[Synonym], *, synonyms: bool = False, documentation: bool = False
) -> dict[str, Any]:
    """One entry; the first of `places` is in effect."""
    shown = [{'name': one.name, 'value': one.text, 'source': one.source} for one in places] if synonyms else []
    return {
        'name': definition.name,
        'value': places[0].text,
        'read_only': not definition.dynamic,
        'config_source': places[0].source,
        'is_sensitive': False,
        'synonyms': shown,
        'config_type': definition.kind,
        'documentation': definition.words if documentation else None,
    }
