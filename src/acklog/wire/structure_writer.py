"""Writers of structures, made from their layout: one closure per class of kio's and per field that needs one.

What they write is a dict of kio's field names; see `acklog.wire.cold` for its values. What has arrays may be long: its
writer is a generator that pauses after each stretch of the message.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Generator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from acklog.wire import layout
from acklog.wire.layout import REQUEST, RESPONSE, Field, Structure
from acklog.wire.primitives import EPOCH, MILLISECOND, STRETCH, Buffer
from acklog.wire.writer import CompactWriter, Writer

Fields = Mapping[str, Any]
Write = Callable[[Writer, Any], Any]
Writing = Generator[None, None, None]


def structure_writer(structure: Structure) -> Callable[[Writer, Fields | None], Writing]:
    """What writes a dict as this structure. Raises TypeError for a name that no version has."""
    write, long = _structure_writer(structure)
    if long:
        return write

    def write_short(message: Writer, values: Fields | None) -> Writing:
        yield from ()
        write(message, values)

    return write_short


@functools.cache
def _structure_writer(structure: Structure) -> tuple[Write, bool]:
    """What writes it, and whether that is long: a generator."""
    fields = [(field.name, *_field_writer(field, structure.flexible), field.default) for field in structure.fields]
    tagged = [(field, *_field_writer(field, structure.flexible)) for field in structure.tagged]
    names = structure.names

    def write_short(message: Writer, values: Fields | None) -> None:
        given: Fields = values or {}
        if not given.keys() <= names:
            _check_names(structure, given)
        get = given.get
        for name, put, _, default in fields:
            put(message, get(name, default))
        message.tags()

    def write_long(message: Writer, values: Fields | None) -> Writing:
        given: Fields = values or {}
        if not given.keys() <= names:
            _check_names(structure, given)
        get = given.get
        for name, put, long, default in fields:
            if long:
                yield from put(message, get(name, default))
            else:
                put(message, get(name, default))
        if tagged:
            message.tagged((yield from _tagged(tagged, given, type(message))))
        else:
            message.tags()

    long = bool(tagged) or any(long for _, _, long, _ in fields)
    return (write_long if long else write_short), long


def _tagged(
    tagged: list[tuple[Field, Write, bool]], given: Fields, kind: type[Writer]
) -> Generator[None, None, list[tuple[int, Buffer]]]:
    """The tagged fields that have another value than their default, each written by a writer of this kind."""
    found: list[tuple[int, Buffer]] = []
    for field, put, long in tagged:
        value = given.get(field.name)
        if value is None or value == field.default or (field.is_array and not value):
            continue
        contents = kind()
        if long:
            yield from put(contents, value)
        else:
            put(contents, value)
        found.append((field.tag or 0, contents.out))
    return found


def _field_writer(field: Field, flexible: bool) -> tuple[Write, bool]:
    write: Write
    if field.structure is not None:
        write, long = _structure_writer(field.structure)
    else:
        write, long = _value_writer(field.kind, field.nullable and not field.is_array, flexible), False
    if field.is_array:
        return _array_writer(write, long, field.nullable), True
    if field.structure is not None and field.nullable:
        return _nullable_structure_writer(write, long), True
    return write, long


def _value_writer(kind: str, nullable: bool, flexible: bool) -> Write:
    kinds = CompactWriter if flexible else Writer
    if kind == 'string':
        return kinds.string if nullable else _or_empty(kinds.string, '')
    if kind in ('bytes', 'records'):
        return kinds.bytes if nullable else _or_empty(kinds.bytes, b'')
    return _WRITERS[kind]


def _or_empty(write: Callable[[Writer, Any], None], empty: Any) -> Write:
    def write_or_empty(message: Writer, value: Any) -> None:
        write(message, empty if value is None else value)

    return write_or_empty


def _put_uuid(message: Writer, value: UUID | bytes | None) -> None:
    message.uuid(bytes(16) if value is None else value.bytes if isinstance(value, UUID) else value)


def _put_duration_i32(message: Writer, value: int | timedelta) -> None:
    message.int32(value // MILLISECOND if isinstance(value, timedelta) else value)


def _put_duration_i64(message: Writer, value: int | timedelta) -> None:
    message.int64(value // MILLISECOND if isinstance(value, timedelta) else value)


def _put_datetime(message: Writer, value: int | datetime | None) -> None:
    if value is None:
        message.int64(-1)
    else:
        message.int64((value - EPOCH) // MILLISECOND if isinstance(value, datetime) else value)


_WRITERS: dict[str, Write] = {
    'bool': Writer.boolean,
    'int8': Writer.int8,
    'int16': Writer.int16,
    'int32': Writer.int32,
    'int64': Writer.int64,
    'uint8': Writer.uint8,
    'uint16': Writer.uint16,
    'uint32': Writer.uint32,
    'uint64': Writer.uint64,
    'float64': Writer.float64,
    'error_code': Writer.int16,
    'uuid': _put_uuid,
    'timedelta_i32': _put_duration_i32,
    'timedelta_i64': _put_duration_i64,
    'datetime_i64': _put_datetime,
}


def _array_writer(write: Write, long: bool, nullable: bool) -> Write:
    def write_array(message: Writer, values: Collection[Any] | None) -> Writing:
        if values is None:
            message.array(-1 if nullable else 0)
            return
        message.array(len(values))
        for value in values:
            if long:
                yield from write(message, value)
            else:
                write(message, value)
            if len(message.out) > message.pause:
                message.pause = len(message.out) + STRETCH
                yield

    return write_array


def _nullable_structure_writer(write: Write, long: bool) -> Write:
    def write_nullable(message: Writer, value: Fields | None) -> Writing:
        if value is None:
            message.int8(-1)
            return
        message.int8(1)
        if long:
            yield from write(message, value)
        else:
            write(message, value)

    return write_nullable


def _check_names(structure: Structure, given: Fields) -> None:
    entity = structure.entity
    for name in given.keys() - structure.names:
        if not _is_known_elsewhere(int(entity.__api_key__), entity.__name__, name):
            raise TypeError(f'{entity.__name__} has no field {name!r} in any version')


@functools.cache
def _is_known_elsewhere(api_key: int, structure_name: str, name: str) -> bool:
    """Whether another version of this structure has such a field: looked for from the newest version down."""
    for version in reversed(layout.versions(api_key)):
        for direction in (REQUEST, RESPONSE):
            for structure in layout.all_structures(layout.of_message(api_key, version, direction)):
                if structure.entity.__name__ == structure_name and name in structure.names:
                    return True
    return False
