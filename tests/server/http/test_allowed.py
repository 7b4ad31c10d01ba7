"""What an error names as allowed is found at any depth, through arrays and where a place may hold several kinds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from acklog.server.http.allowed import RULE, known_fields, known_values, rule

Name = Annotated[str, msgspec.Meta(min_length=1, extra={RULE: 'not empty'})]


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    action: Literal['accept', 'release']
    level: Annotated[Literal['low', 'high'] | None, msgspec.Meta(description='how')] = None
    after: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    value: Inner | str | None
    items: list[Inner]


class Named(msgspec.Struct):
    name: Name
    other: Name | None = None
    described: Annotated[Name | None, msgspec.Meta(description='how')] = None
    names: list[Name] = []
    plain: Annotated[str, msgspec.Meta(min_length=1)] = 'x'


@pytest.mark.parametrize(
    ('kind', 'steps', 'words'),
    [
        (Name, [], 'not empty'),
        (Named, ['name'], 'not empty'),
        (Named, ['other'], 'not empty'),
        (Named, ['described'], 'not empty'),
        (Named, ['names', '3'], 'not empty'),
        (list[Named], ['0', 'name'], 'not empty'),
        (Named, ['names'], None),
        (Named, ['plain'], None),
        (Named, [], None),
    ],
)
def test_the_bounds_in_words(kind: Any, steps: list[str], words: str | None) -> None:
    assert rule(kind, steps) == words


INNER = ['action', 'level', 'after']


@pytest.mark.parametrize(
    ('steps', 'fields', 'values'),
    [
        ([], ['value', 'items'], []),
        (['value'], INNER, []),
        (['items'], [], []),
        (['items', '0'], INNER, []),
        (['items', '17', 'action'], [], ['accept', 'release']),
        (['value', 'level'], [], ['high', 'low']),
        (['value', 'after'], [], []),
        (['value', 'after', 'deeper'], [], []),
        (['nothing'], [], []),
    ],
)
def test_what_is_allowed_there(steps: list[str], fields: list[str], values: list[str]) -> None:
    assert known_fields(Outer, steps) == fields
    assert known_values(Outer, steps) == values


@pytest.mark.parametrize('kind', [dict[str, Any], Any, int])
def test_nothing_is_known_of_what_may_be_anything(kind: Any) -> None:
    assert known_fields(kind, ['a']) == known_values(kind, ['a']) == []
