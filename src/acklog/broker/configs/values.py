"""Configs in effect: of the broker (`Settings`), of one topic or group (`Configured`).

Strategy: a value is looked up from the most particular place to the most general, as Kafka does (KIP-226): topic or
group, then broker (this node's dynamic one, the cluster's dynamic one, the one it was started with), then the default.
Parsed values are remembered until anything they may depend on changes, so a look-up costs a dict access.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from acklog.broker.configs.broker_table import BROKER
from acklog.broker.configs.checks import check_endless
from acklog.broker.configs.definitions import Table, Value, text_of
from acklog.errors import ConfigError

T = TypeVar('T')

CLUSTER = ''  # name of the resource that holds the dynamic configs of all nodes


class Source(IntEnum):
    """Where a value comes from; the numbers are DescribeConfigs' `config_source` (KIP-226, KIP-848)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Synonym(NamedTuple):
    """One place that gives a value; the first of several wins."""

    name: str
    text: str | None
    source: Source


class Readable(ABC):
    """Typed reading of configs by name. An unknown name or one of another type is a bug of the caller."""

    @abstractmethod
    def config(self, name: str) -> Value:
        """The value in effect."""

    def integer(self, name: str) -> int:
        value = self.config(name)
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        value = self.config(name)
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        value = self.config(name)
        assert isinstance(value, str), name
        return value

    def items(self, name: str) -> tuple[str, ...]:
        value = self.config(name)
        assert isinstance(value, tuple), name
        return value


class Settings(Readable):
    """The broker's configs: what it was started with, and over them the dynamic ones.

    `static`: texts by name, checked here (ConfigError). `edition` grows with each change, so that others can tell that
    what they derived is old; `on_change` is called after each.
    """

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.static = BROKER.normalized(static or {})
        self._dynamic: dict[str, dict[str, str]] = {}
        self._parsed: dict[str, Value] = {}
        self.edition = 0
        self.on_change: list[Callable[[], None]] = []
        self.check()

    def replace_dynamic(self, dynamic: Mapping[str, Mapping[str, str]]) -> None:
        """Use these dynamic configs, by resource name: `CLUSTER` or the node's id."""
        self._dynamic = {resource: dict(configs) for resource, configs in dynamic.items()}
        self._parsed.clear()
        self.edition += 1
        for callback in self.on_change:
            callback()

    def check(self) -> None:
        """Raises ConfigError where values do not fit together."""
        session, heartbeat = 'group.share.session.timeout.ms', 'group.share.heartbeat.interval.ms'
        if self.integer(session) <= self.integer(heartbeat):
            allowed = f'must be greater than {heartbeat}, which is {self.integer(heartbeat)}'
            raise ConfigError(session, self.integer(session), allowed)
        check_endless(self, 'group.share.delivery.count.limit')

    def config(self, name: str) -> Value:
        value = self._parsed.get(name)
        if value is None:
            definition = BROKER[name]
            text = self.synonyms(name)[0].text
            value = definition.parse(text if text is not None else '')
            self._parsed[name] = value
        return value

    def synonyms(self, name: str) -> list[Synonym]:
        """All places that give `name`, the one in effect first."""
        node = text_of(self._node())
        places = (
            (self._dynamic.get(node or '0', {}), Source.DYNAMIC_BROKER),
            (self._dynamic.get(CLUSTER, {}), Source.DYNAMIC_DEFAULT_BROKER),
            (self.static, Source.STATIC_BROKER),
        )
        found = [Synonym(name, configs[name], source) for configs, source in places if name in configs]
        return [*found, Synonym(name, text_of(BROKER[name].default), Source.DEFAULT)]

    def _node(self) -> int:
        return int(self.static.get('node.id', '0'))


class Configured(Readable):
    """Something with configs of its own over the broker's: a topic or a group."""

    def __init__(self, table: Table, configs: Mapping[str, str], settings: Settings, own: Source) -> None:
        self.configs: dict[str, str] = dict(configs)
        self._table, self._settings, self._own = table, settings, own
        self._parsed: dict[str, Value] = {}
        self._derived: dict[Callable[[Any], Any], Any] = {}
        self._edition = settings.edition

    def replace_configs(self, configs: Mapping[str, str]) -> None:
        """Have these configs of its own from now on."""
        self.configs = dict(configs)
        self._forget()

    def _forget(self) -> None:
        self._parsed.clear()
        self._derived.clear()
        self._edition = self._settings.edition

    def derived(self, make: Callable[[Readable], T]) -> T:
        """What `make` makes of the configs: called only when they have changed since. It must not give None."""
        if self._edition != self._settings.edition:
            self._forget()
        value: T | None = self._derived.get(make)
        if value is None:
            value = self._derived[make] = make(self)
        return value

    def config(self, name: str) -> Value:
        if self._edition != self._settings.edition:
            self._forget()
        value = self._parsed.get(name)
        if value is None:
            value = self._parsed[name] = self._look_up(name)
        return value

    def _look_up(self, name: str) -> Value:
        definition = self._table[name]
        if name in self.configs:
            return definition.parse(self.configs[name])
        if definition.broker is not None:
            return self._settings.config(definition.broker)
        assert definition.default is not None, name
        return definition.default

    def synonyms(self, name: str) -> list[Synonym]:
        """All places that give `name`, the one in effect first."""
        definition = self._table[name]
        found = [Synonym(name, self.configs[name], self._own)] if name in self.configs else []
        if definition.broker is not None:
            return found + self._settings.synonyms(definition.broker)
        return [*found, Synonym(name, text_of(definition.default), Source.DEFAULT)]
