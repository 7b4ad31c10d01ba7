"""What the catalog knows, for reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acklog.broker.catalog.state import CatalogState, Group, Topic
from acklog.broker.configs import Settings


class CatalogView:
    """Topics, groups and configs as they are now."""

    def __init__(self, state: CatalogState) -> None:
        self._state = state

    @property
    def settings(self) -> Settings:
        """The broker's configs, dynamic ones included."""
        return self._state.settings

    @property
    def cluster_id(self) -> str:
        """22 characters, made at the first start."""
        return self._state.cluster_id

    @property
    def topics(self) -> Mapping[str, Topic]:
        """By name."""
        return self._state.topics

    @property
    def topics_by_id(self) -> Mapping[bytes, Topic]:
        """By the 16 bytes of their ids."""
        return self._state.topics_by_id

    @property
    def groups(self) -> Mapping[str, Group]:
        """By name."""
        return self._state.groups

    @property
    def groups_by_id(self) -> Mapping[int, Group]:
        """By incarnation."""
        return self._state.groups_by_id

    @property
    def partitions(self) -> int:
        """Partitions of all topics together."""
        return self._state.partitions

    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]:
        """Own configs of groups, which may not exist (yet), by name."""
        return self._state.group_configs

    @property
    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """Dynamic broker configs by node id, '' for all nodes."""
        return self._state.broker_configs

    def group_or_default(self, name: str) -> Group:
        """The group, or one that stands for its configs while it does not exist (its id is 0)."""
        found = self.groups.get(name)
        return found if found is not None else Group(name, 0, self.group_configs.get(name, {}), self.settings)

    def notes(self, of: str) -> Mapping[str, Any]:
        """What `record` keeps under `of`, by key."""
        return self._state.notes.get(of, {})
