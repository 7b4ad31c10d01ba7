"""Readers of structures, made from their layout: one closure per class of kio's and per field that needs one.

What they read is kio's entity; see `acklog.wire.cold` for its values. What has arrays may be long: its reader is a
generator that pauses after each stretch of the message and returns what it read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from acklog.wire import layout
from acklog.wire.layout import Field, Structure
from acklog.wire.primitives import EPOCH, STRETCH
from acklog.wire.reader import CompactReader, Reader

Read = Callable[[Reader], Any]
Reading = Generator[None, None, Any]


def structure_reader(structure: Structure) -> Callable[[Reader], Reading]:
    """What reads this structure from a message: raises what `refusing_nonsense` turns into ProtocolError."""
    read, long = _structure_reader(structure)
    if long:
        return read

    def read_short(message: Reader) -> Reading:
        yield from ()
        return read(message)

    return read_short


@functools.cache
def _structure_reader(structure: Structure) -> tuple[Read, bool]:
    """What reads it, and whether that is long: a generator."""
    entity = structure.entity
    fields = [(field.name, *_field_reader(field, structure.flexible)) for field in structure.fields]
    tagged = {field.tag: (field.name, *_field_reader(field, structure.flexible)) for field in structure.tagged}
    absent = {field.name: field.absent for field in structure.tagged}

    def read_short(message: Reader) -> Any:
        values = {name: read(message) for name, read, _ in fields}
        message.tags()
        return entity(**values)

    def read_long(message: Reader) -> Reading:
        values = {}
        for name, read, long in fields:
            values[name] = (yield from read(message)) if long else read(message)
        values.update(absent)
        for tag, contents in message.tagged().items():
            if tag in tagged:
                name, read, long = tagged[tag]
                inner = CompactReader(contents, message.elements)
                values[name] = (yield from read(inner)) if long else read(inner)
                message.elements = inner.elements
        return entity(**values)

    long = bool(tagged) or any(long for _, _, long in fields)
    return (read_long if long else read_short), long


def _field_reader(field: Field, flexible: bool) -> tuple[Read, bool]:
    kinds = CompactReader if flexible else Reader
    read: Read
    if field.structure is not None:
        read, long = _structure_reader(field.structure)
    else:
        read, long = _value_reader(field.kind, field.nullable and not field.is_array, kinds), False
    if field.is_array:
        return _array_reader(read, long, field), True
    if field.structure is not None and field.nullable:
        return _nullable_structure_reader(read, long), True
    return read, long


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


def _array_reader(read: Read, long: bool, field: Field) -> Read:
    minimum = layout.minimum(field._replace(is_array=False, nullable=False))
    nullable = field.nullable

    def read_array(message: Reader) -> Reading:
        count = message.nullable_array(minimum) if nullable else message.array(minimum)
        if count is None:
            return None
        elements = []
        for _ in range(count):
            elements.append((yield from read(message)) if long else read(message))
            if message.position > message.pause:
                message.pause = message.position + STRETCH
                yield
        return tuple(elements)

    return read_array


def _nullable_structure_reader(read: Read, long: bool) -> Read:
    def read_nullable(message: Reader) -> Reading:
        if message.int8() < 0:
            return None
        return (yield from read(message)) if long else read(message)

    return read_nullable
