"""Readers of structures, made from their layout: one closure per class of kio's and per field that needs one.

What they read is kio's entity; see `acklog.wire.cold` for its values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from acklog.wire import layout
from acklog.wire.layout import Field, Structure
from acklog.wire.primitives import EPOCH
from acklog.wire.reader import CompactReader, Reader

Read = Callable[[Reader], Any]


@functools.cache
def structure_reader(structure: Structure) -> Read:
    """What reads this structure from a message: raises what `refusing_nonsense` turns into ProtocolError."""
    entity = structure.entity
    names = [field.name for field in structure.fields]
    readers = [_field_reader(field, structure.flexible) for field in structure.fields]
    pairs = list(zip(names, readers, strict=True))
    tagged = {field.tag: (field.name, _field_reader(field, structure.flexible)) for field in structure.tagged}
    absent = {field.name: field.absent for field in structure.tagged}

    def read_plain(message: Reader) -> Any:
        values = {name: read(message) for name, read in pairs}
        message.tags()
        return entity(**values)

    def read_with_tags(message: Reader) -> Any:
        values = {name: read(message) for name, read in pairs}
        values.update(absent)
        for tag, contents in message.tagged().items():
            if tag in tagged:
                name, read = tagged[tag]
                inner = CompactReader(contents, message.elements)
                values[name] = read(inner)
                message.elements = inner.elements
        return entity(**values)

    return read_with_tags if structure.tagged else read_plain


def _field_reader(field: Field, flexible: bool) -> Read:
    kinds = CompactReader if flexible else Reader
    if field.structure is not None:
        read = structure_reader(field.structure)
    else:
        read = _value_reader(field.kind, field.nullable and not field.is_array, kinds)
    if field.is_array:
        return _array_reader(read, field)
    if field.structure is not None and field.nullable:
        return _nullable_structure_reader(read)
    return read


def _value_reader(kind: str, nullable: bool, kinds: type[Reader]) -> Read:
    if kind == 'string':
        return kinds.nullable_string if nullable else kinds.string
    if kind in ('bytes', 'records'):
        return _nullable_bytes if nullable else _bytes
    if kind == 'datetime_i64' and nullable:
        return _nullable_datetime
    return _READERS[kind]


def _bytes(message: Reader) -> bytes:
    return bytes(message.view())


def _nullable_bytes(message: Reader) -> bytes | None:
    view = message.nullable_view()
    return None if view is None else bytes(view)


def _uuid(message: Reader) -> UUID | None:
    raw = message.uuid()
    return UUID(bytes=raw) if any(raw) else None


def _duration_i32(message: Reader) -> timedelta:
    return timedelta(milliseconds=message.int32())


def _duration_i64(message: Reader) -> timedelta:
    return timedelta(milliseconds=message.int64())


def _datetime(message: Reader) -> datetime:
    return EPOCH + timedelta(milliseconds=message.int64())


def _nullable_datetime(message: Reader) -> datetime | None:
    ms = message.int64()
    return None if ms == -1 else EPOCH + timedelta(milliseconds=ms)


_READERS: dict[str, Read] = {
    'bool': Reader.boolean,
    'int8': Reader.int8,
    'int16': Reader.int16,
    'int32': Reader.int32,
    'int64': Reader.int64,
    'uint8': Reader.uint8,
    'uint16': Reader.uint16,
    'uint32': Reader.uint32,
    'uint64': Reader.uint64,
    'float64': Reader.float64,
    'error_code': Reader.int16,
    'uuid': _uuid,
    'timedelta_i32': _duration_i32,
    'timedelta_i64': _duration_i64,
    'datetime_i64': _datetime,
}


def _array_reader(read: Read, field: Field) -> Read:
    minimum = layout.minimum(field._replace(is_array=False, nullable=False))

    def read_array(message: Reader) -> tuple[Any, ...]:
        return tuple([read(message) for _ in range(message.array(minimum))])

    def read_nullable_array(message: Reader) -> tuple[Any, ...] | None:
        count = message.nullable_array(minimum)
        return None if count is None else tuple([read(message) for _ in range(count)])

    return read_nullable_array if field.nullable else read_array


def _nullable_structure_reader(read: Read) -> Read:
    def read_nullable(message: Reader) -> Any:
        return None if message.int8() < 0 else read(message)

    return read_nullable
