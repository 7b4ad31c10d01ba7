"""What a config is: its name, type, default, what is allowed, and words for people.

Strategy: one `Definition` per config and one `Table` per kind of resource (topic, group, broker), as Kafka's config
APIs have them. Values travel and are stored as text, as the protocol does; `Definition.parse` is the one way from text
to value and refuses with a ConfigError that says what would be accepted.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from acklog.errors import ConfigError

Value = bool | int | float | str | tuple[str, ...]


class UnknownConfig(ConfigError):
    """There is no config of that name for that kind of resource."""


class Kind(IntEnum):
    """Type of a config's value; the numbers are DescribeConfigs' `config_type` (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


WHOLE = {
    Kind.SHORT: (-(1 << 15), (1 << 15) - 1),
    Kind.INT: (-(1 << 31), (1 << 31) - 1),
    Kind.LONG: (-(1 << 63), (1 << 63) - 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One config.

    `low`, `high`: bounds of a number, inclusive. `choices`: the only texts allowed, of a LIST each item. `check` looks
    at a parsed value and returns what would be allowed when it is wrong, else None; `accepts`: what it lets through,
    for the reference. `broker`: the broker config that gives the default where this one is not set. `dynamic`: may be
    changed while the server runs. `effective`: False for names that are accepted because tools set them and that change
    nothing; the words say why.
    """

    name: str
    kind: Kind
    default: Value | None
    words: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Value], str | None] | None = None
    accepts: str = ''
    broker: str | None = None
    dynamic: bool = False
    effective: bool = True

    def parse(self, text: str) -> Value:
        """The value that `text` means. Raises ConfigError."""
        try:
            value = self._convert(text)
        except ValueError:
            raise self.wrong(text) from None
        if not self._in_bounds(value):
            raise self.wrong(text)
        allowed = self.check(value) if self.check is not None else None
        if allowed is not None:
            raise ConfigError(self.name, text, allowed)
        return value

    def wrong(self, text: str) -> ConfigError:
        """The error that refuses `text`."""
        return ConfigError(self.name, text, self.allowed())

    def allowed(self) -> str:
        """What is accepted, in words that follow 'must be'."""
        if self.kind is Kind.BOOLEAN:
            return 'must be true or false'
        if self.choices:
            each = 'a list, separated by commas, of' if self.kind is Kind.LIST else 'one of'
            return f'must be {each}: {", ".join(self.choices)}'
        if self.low is not None and self.low == self.high:
            return f'must be {self.low}'
        if self.kind in WHOLE or self.kind is Kind.DOUBLE:
            bits = f'whole number of {WHOLE[self.kind][1].bit_length() + 1} bits' if self.kind in WHOLE else 'number'
            return f'must be a {bits}{self._range()}'
        return 'must be text'

    def _range(self) -> str:
        low, high = self.low, self.high
        if low is not None and high is not None:
            return f', from {low} to {high}'
        if low is not None:
            return f', at least {low}'
        if high is not None:
            return f', at most {high}'
        return ''

    def _convert(self, text: str) -> Value:
        stripped = text.strip()
        if self.kind is Kind.BOOLEAN:
            if stripped.lower() not in ('true', 'false'):
                raise ValueError
            return stripped.lower() == 'true'
        if self.kind in WHOLE:
            return _whole(stripped)
        if self.kind is Kind.DOUBLE:
            return float(stripped)
        if self.kind is Kind.LIST:
            return tuple(item.strip() for item in stripped.split(',')) if stripped else ()
        return stripped

    def _in_bounds(self, value: Value) -> bool:
        if self.choices:
            return all(item in self.choices for item in (value if isinstance(value, tuple) else (value,)))
        if self.kind in WHOLE or self.kind is Kind.DOUBLE:
            assert isinstance(value, int | float)
            low, high = WHOLE.get(self.kind, (None, None))
            bounds = [bound for bound in (low, self.low) if bound is not None]
            tops = [bound for bound in (high, self.high) if bound is not None]
            return all(value >= bound for bound in bounds) and all(value <= bound for bound in tops)
        return True


def _whole(text: str) -> int:
    digits = text[1:] if text[:1] in ('-', '+') else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise ValueError
    return int(text)


def text_of(value: Value | None) -> str | None:
    """A value as the protocol and the files write it."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, tuple):
        return ','.join(value)
    return None if value is None else str(value)


class Table(Mapping[str, Definition]):
    """All configs of one kind of resource, by name."""

    def __init__(self, resource: str, definitions: Iterable[Definition]) -> None:
        self.resource = resource
        self._definitions = {definition.name: definition for definition in definitions}

    def __getitem__(self, name: str) -> Definition:
        return self._definitions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)

    def definition(self, name: str, value: object = None) -> Definition:
        """The definition of `name`. Raises UnknownConfig, naming those that are spelled nearly so."""
        found = self._definitions.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self._definitions, n=3, cutoff=0.7)
            hint = f'; did you mean {" or ".join(near)}?' if near else ''
            raise UnknownConfig(name, value, f'unknown {self.resource} config name{hint}')
        return found

    def normal(self, name: str, text: str) -> str:
        """`text` as it is stored for the config `name`. Raises ConfigError."""
        return text_of(self.definition(name, text).parse(text)) or ''

    def normalized(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Texts as they are stored. Raises ConfigError at the first that is wrong."""
        return {name: self.normal(name, text) for name, text in configs.items()}
