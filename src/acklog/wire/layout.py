"""The layout of a message, taken from kio's message classes.

kio is the source of what fields an API's version has; its classes are generated from Kafka's own definitions. This
module reads their fields once per class into plain values, `Structure` and `Field`, from which `acklog.wire.cold` makes
readers and writers. kio's modules are imported here only, and only for the version that is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin

from acklog.wire.kio_import import kio
from acklog.wire.newer import NEWER, REQUEST, RESPONSE, newest

__all__ = [
    'REQUEST',
    'RESPONSE',
    'Field',
    'Structure',
    'all_structures',
    'minimum',
    'of_entity',
    'of_message',
    'versions',
]

# Fewest bytes that a field of this kind takes; those of texts and bytes are 1 (compact) or more.
_SIZES = {
    'bool': 1,
    'int8': 1,
    'uint8': 1,
    'int16': 2,
    'uint16': 2,
    'error_code': 2,
    'int32': 4,
    'uint32': 4,
    'timedelta_i32': 4,
    'int64': 8,
    'uint64': 8,
    'float64': 8,
    'timedelta_i64': 8,
    'datetime_i64': 8,
    'uuid': 16,
}


class Field(NamedTuple):
    """One field of a structure.

    `kind`: kio's name of its type, such as 'int32', 'string', 'timedelta_i32', or 'structure'; `default`: what is
    written where no value is given, in terms of what `cold` takes (times are ms); `absent`: what is read where a
    tagged field is not there, in kio's terms.
    """

    name: str
    kind: str
    structure: Structure | None  # of the field, or of the elements of an array
    is_array: bool
    nullable: bool
    tag: int | None
    default: Any
    absent: Any


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A message, or a structure inside one. `minimum`: fewest bytes that it takes."""

    entity: type[Any]  # kio's class
    flexible: bool
    fields: tuple[Field, ...]  # those without a tag, in order
    tagged: tuple[Field, ...]  # by tag
    minimum: int

    @property
    def names(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields + self.tagged)


_STRUCTURES: dict[type[Any], Structure] = {}


@functools.cache
def of_message(api_key: int, version: int, direction: str) -> Structure:
    """The message of this version. `direction`: REQUEST or RESPONSE. Raises LookupError where it is not known."""
    kio()
    from kio.index import KioIndexError, load_request_schema, load_response_schema

    load = load_request_schema if direction == REQUEST else load_response_schema
    try:
        return of_entity(load(api_key, version))
    except KioIndexError as error:
        if (entity := NEWER.get((api_key, version, direction))) is not None:
            return of_entity(entity())
        raise LookupError(f'no {direction} of API {api_key} in version {version}') from error


def versions(api_key: int) -> range:
    """The versions of an API whose messages are known. Raises LookupError for an unknown API."""
    kio()
    from kio.schema.index import api_key_map, schema_name_map

    known = schema_name_map[api_key_map[api_key]]
    return range(min(known), max(*known, newest(api_key)) + 1)


def of_entity(entity: type[Any]) -> Structure:
    """The structure of one of kio's classes."""
    known = _STRUCTURES.get(entity)
    if known is None:
        known = _STRUCTURES[entity] = _structure(entity)
    return known


def _structure(entity: type[Any]) -> Structure:
    fields = [_field(field) for field in dataclasses.fields(entity)]
    untagged = tuple(field for field in fields if field.tag is None)
    tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
    size = sum(map(minimum, untagged)) + (1 if entity.__flexible__ else 0)
    return Structure(entity, entity.__flexible__, untagged, tuple(tagged), max(1, size))


def _field(field: dataclasses.Field[Any]) -> Field:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner = get_args(inner)[0]
    structure: Structure | None = None
    if isinstance(inner, type) and dataclasses.is_dataclass(inner):
        structure = of_entity(inner)
    kind = 'structure' if structure else field.metadata['kafka_type']
    tag = field.metadata.get('tag')
    default = _default(field, kind, is_array, nullable)
    absent = None if tag is None else _absent(field, structure, default)
    return Field(field.name, kind, structure, is_array, nullable, tag, default, absent)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    inner = [part for part in get_args(annotation) if part is not type(None)]
    return inner[0], True


def _default(field: dataclasses.Field[Any], kind: str, is_array: bool, nullable: bool) -> Any:
    if is_array:
        return None if field.default is None else ()
    if field.default is None or kind == 'structure':
        return None  # of a structure that cannot be null: one whose fields are all left out
    if field.default is not dataclasses.MISSING:
        return _in_ms(field.default)
    if kind in ('string', 'bytes', 'records', 'uuid'):
        return None if nullable or kind == 'uuid' else '' if kind == 'string' else b''
    return 0


def _absent(field: dataclasses.Field[Any], structure: Structure | None, default: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return default if structure is None else _empty(structure)


def _empty(structure: Structure) -> Any:
    """kio's entity of a structure whose fields are all left out."""
    values = {}
    for field in structure.fields + structure.tagged:
        is_structure = field.structure is not None and not field.is_array and not field.nullable
        values[field.name] = _empty(field.structure) if is_structure and field.structure else field.default
    return structure.entity(**values)


def _in_ms(value: Any) -> Any:
    if hasattr(value, 'total_seconds'):
        return round(value.total_seconds() * 1000)
    if hasattr(value, 'timestamp'):
        return round(value.timestamp() * 1000)
    return value


def minimum(field: Field) -> int:
    """Fewest bytes that a field takes."""
    if field.is_array:
        return 1
    if field.structure is not None:
        return 1 if field.nullable else field.structure.minimum
    return _SIZES.get(field.kind, 1)


def all_structures(structure: Structure) -> Iterator[Structure]:
    """A structure and all inside it."""
    yield structure
    for field in structure.fields + structure.tagged:
        if field.structure is not None:
            yield from all_structures(field.structure)
