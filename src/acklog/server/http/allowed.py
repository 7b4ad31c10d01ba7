"""What a body might have said at a place where it says something else: for the words of an error.

Strategy: the type of the operation is walked along the pointer, when there is an error and only then. What cannot be
followed (a place that may hold anything, a map with names of its own) gives nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.inspect import Field, LiteralType, Metadata, StructType, Type, UnionType, type_info

Steps = Sequence[str]

RULE = 'rule'  # in the `extra` of a type: its bounds, in words that the other interfaces have too


def known_fields(kind: Any, steps: Steps) -> list[str]:
    """The names of fields of the object there, in the order of their definition."""
    return [field.encode_name for each in _at(type_info(kind), steps) for field in _fields(each)]


def known_values(kind: Any, steps: Steps) -> list[str]:
    """The words of which one may stand there, by the alphabet."""
    literals = [each for each in _at(type_info(kind), steps) if isinstance(each, LiteralType)]
    return [str(value) for each in literals for value in each.values]


def rule(kind: Any, steps: Steps) -> str | None:
    """The bounds of what stands there, where they have words of their own."""
    found = [each for each in _at(type_info(kind), steps, inside=False) if isinstance(each, Metadata)]
    return next((each.extra[RULE] for each in found if each.extra and RULE in each.extra), None)


def _at(kind: Type, steps: Steps, *, inside: bool = True) -> list[Type]:
    """The types that may be there; `inside`: without what is said about them."""
    if isinstance(kind, Metadata):
        said = [] if inside or steps else [kind]
        return said + _at(kind.type, steps, inside=inside)
    if isinstance(kind, UnionType):
        return [found for each in kind.types for found in _at(each, steps, inside=inside)]
    if not steps:
        return [kind]
    return [found for inner in _inner(kind, steps[0]) for found in _at(inner, steps[1:], inside=inside)]


def _inner(kind: Type, step: str) -> list[Type]:
    item = getattr(kind, 'item_type', None)  # of an array
    return [item] if item is not None else [field.type for field in _fields(kind) if field.encode_name == step]


def _fields(kind: Type) -> Sequence[Field]:
    return kind.fields if isinstance(kind, StructType) else ()
